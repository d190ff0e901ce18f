package harness

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"thermite/pkg/harness/sample"
	"thermite/pkg/wire"
)

// Config is a harness's settings, and what it is given to work with. A
// setting's env tag is its name in the environment.
type Config struct {
	// Rig is the rig's name, as control knows it.
	Rig string `env:"THERMITE_RIG"`
	// StateDir holds the ledger and the report key; it is the harness's alone.
	StateDir string `env:"THERMITE_HARNESS_STATE" envDefault:"/var/lib/thermite-harness"`
	// Socket is where the harness listens for its supervisor, unless it is
	// handed a socket.
	Socket string `env:"THERMITE_HARNESS_SOCKET" envDefault:"/run/thermite-harness/api.sock"`
	// Sample is how many events the harness makes up, to show Thermite at
	// work or to test it; 0 makes none.
	Sample uint64 `env:"THERMITE_HARNESS_SAMPLE" envDefault:"0"`
	// SampleRate is how many of them a second; 0 is as fast as it goes.
	SampleRate float64 `env:"THERMITE_HARNESS_SAMPLE_RATE" envDefault:"20"`
	// SampleSeed seeds what they say: the same seed and rig, the same events.
	SampleSeed uint64 `env:"THERMITE_HARNESS_SAMPLE_SEED" envDefault:"1"`

	// Build is the harness's version.
	Build string
	// Listener is the socket it was handed, if any.
	Listener net.Listener
	// Now is the clock, and Rand gives random bits for keys and ids.
	Now  func() time.Time
	Rand io.Reader
	Log  *slog.Logger
}

// Validate says what is wrong with the settings, each by its field.
func (c Config) Validate() error {
	wrong := func(field, format string, args ...any) error {
		return fmt.Errorf("the harness's setting %s: %w", field, fmt.Errorf(format, args...))
	}
	var errs []error
	if err := wire.CheckName("rig", c.Rig); err != nil {
		errs = append(errs, wrong("Rig", "%w", err))
	}
	if !filepath.IsAbs(c.StateDir) {
		errs = append(errs, wrong("StateDir", "%q must be an absolute path", c.StateDir))
	}
	if c.Listener == nil && !filepath.IsAbs(c.Socket) {
		errs = append(errs, wrong("Socket", "%q must be an absolute path", c.Socket))
	}
	if err := c.sample().Validate(); err != nil {
		errs = append(errs, wrong("Sample", "%w", err))
	}
	if c.Build == "" || len(c.Build) > 100 {
		errs = append(errs, wrong("Build", "%d characters, where it may have 1 to 100", len(c.Build)))
	}
	if c.Now == nil || c.Rand == nil || c.Log == nil {
		errs = append(errs, wrong("Now, Rand, Log", "each must be given"))
	}
	return errors.Join(errs...)
}

func (c Config) sample() sample.Config {
	return sample.Config{Rig: c.Rig, Total: c.Sample, Rate: c.SampleRate, Seed: c.SampleSeed, Log: c.Log}
}

func (c Config) ledgerPath() string { return filepath.Join(c.StateDir, "ledger.db") }
func (c Config) keyPath() string    { return filepath.Join(c.StateDir, "report.key") }
