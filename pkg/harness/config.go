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

	// Broker is the broker's socket; without one the harness keeps its ledger
	// and does no work.
	Broker string `env:"THERMITE_HARNESS_BROKER"`
	// Work is the folder of the kits, lanes and judgings; roles' users pass
	// through it. Empty is work in StateDir.
	Work string `env:"THERMITE_HARNESS_WORK"`
	// Inbox is where the supervisor puts what commands bring.
	Inbox string `env:"THERMITE_HARNESS_INBOX"`
	// ControlKey is a file with control's public key, as a line; without it
	// the harness takes no command.
	ControlKey string `env:"THERMITE_CONTROL_KEY"`
	// TrialListen is where the trial API listens; its address is for this
	// machine's workers, so it is on loopback.
	TrialListen string `env:"THERMITE_HARNESS_TRIAL_LISTEN" envDefault:"127.0.0.1:8371"`
	// Worker is the program thermite-worker; empty is the one beside the
	// harness's own. Roles' users must be able to run it.
	Worker string `env:"THERMITE_HARNESS_WORKER"`
	// Path is the PATH of what the kits' and workers' commands find.
	Path string `env:"THERMITE_HARNESS_PATH" envDefault:"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"`

	// WorkerArgs are words between the worker's program and its subcommand,
	// for a program that is more than the worker.
	WorkerArgs []string
	// Roles is the broker's client; without one no work is done.
	Roles Broker
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
	errs = append(errs, c.validateWork(wrong)...)
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

// validateWork says what is wrong with the settings of a harness that works.
func (c Config) validateWork(wrong func(field, format string, args ...any) error) []error {
	var errs []error
	for field, p := range map[string]string{"Broker": c.Broker, "Work": c.Work, "Inbox": c.Inbox, "ControlKey": c.ControlKey, "Worker": c.Worker} {
		if p != "" && !filepath.IsAbs(p) {
			errs = append(errs, wrong(field, "%q must be an absolute path", p))
		}
	}
	if (c.Broker == "") != (c.Roles == nil) {
		errs = append(errs, wrong("Broker", "%q is a socket, and a client of the broker is given: %v; both, or none", c.Broker, c.Roles != nil))
	}
	if c.Roles == nil {
		return errs
	}
	if host, _, err := net.SplitHostPort(c.TrialListen); err != nil || !net.ParseIP(host).IsLoopback() {
		errs = append(errs, wrong("TrialListen", "%q must be an address and port of this machine's loopback", c.TrialListen))
	}
	if c.Path == "" {
		errs = append(errs, wrong("Path", "it is empty"))
	}
	return errs
}

func (c Config) sample() sample.Config {
	return sample.Config{Rig: c.Rig, Total: c.Sample, Rate: c.SampleRate, Seed: c.SampleSeed, Log: c.Log}
}

// work is the folder of the work.
func (c Config) work() string {
	if c.Work != "" {
		return c.Work
	}
	return filepath.Join(c.StateDir, "work")
}

func (c Config) ledgerPath() string   { return filepath.Join(c.StateDir, "ledger.db") }
func (c Config) keyPath() string      { return filepath.Join(c.StateDir, "report.key") }
func (c Config) judgeKeyPath() string { return filepath.Join(c.StateDir, "judge.key") }
