package supervisor

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"thermite/pkg/supervisor/daily"
	"thermite/pkg/wire"
)

// Config is a supervisor's settings, and what it is given to work with. A
// setting's env tag is its name in the environment.
type Config struct {
	// Rig is the rig's name, as control knows it.
	Rig string `env:"THERMITE_RIG"`
	// ControlURL is control's address.
	ControlURL string `env:"THERMITE_CONTROL_URL"`
	// BusURL is the bus's address.
	BusURL string `env:"THERMITE_NATS_URL"`
	// TokenFile holds the rig's token, which control gave its owner.
	TokenFile string `env:"THERMITE_TOKEN_FILE" envDefault:"/etc/thermite/rig.token"`
	// Authority is the certificate that control and the bus are known by.
	Authority string `env:"THERMITE_AUTHORITY" envDefault:"/etc/thermite/authority.pem"`
	// Socket is where the rig's harness listens.
	Socket string `env:"THERMITE_HARNESS_SOCKET" envDefault:"/run/thermite-harness/api.sock"`
	// StateDir holds the rig's keys on the bus; it is the supervisor's alone.
	StateDir string `env:"THERMITE_SUPERVISOR_STATE" envDefault:"/var/lib/thermite-supervisor"`
	// Inbox is the folder in which the rig's harness takes what commands
	// bring; without one no kit is staged from git.
	Inbox string `env:"THERMITE_SUPERVISOR_INBOX"`
	// LocalKits lets a command name a folder of this machine as a kit's
	// repository.
	LocalKits bool `env:"THERMITE_SUPERVISOR_LOCAL_KITS" envDefault:"false"`
	// Poll is how often the supervisor reports and sends its figures.
	Poll Seconds `env:"THERMITE_POLL_SECONDS" envDefault:"60"`
	// DailyAt is when a day ends for the rig's daily report, in UTC.
	DailyAt daily.TimeOfDay `env:"THERMITE_DAILY_AT" envDefault:"00:00"`
	// ModelRoutePoll is how often the supervisor looks whether its harness has
	// the rig's config.
	ModelRoutePoll Seconds `env:"THERMITE_MODEL_ROUTE_POLL_SECONDS" envDefault:"5"`
	// LiveInterval is how often the supervisor publishes its harness's new
	// live lines; 0 is wire.LiveInterval.
	LiveInterval Millis `env:"THERMITE_LIVE_INTERVAL_MS" envDefault:"3000"`

	// Build is the supervisor's version.
	Build string
	// Now is the clock, and Rand gives random bits for keys and nonces.
	Now  func() time.Time
	Rand io.Reader
	Log  *slog.Logger
	// Times are for tests; zero ones are the seed's.
	Times Times
	// OnState is told, in a few words, what the supervisor is at: for the
	// service manager. It may be nil, and must not block.
	OnState func(words string)
}

// Times are how long the supervisor waits for others.
type Times struct {
	// Register is the pause between tries to register.
	Register time.Duration
	// Call ends a call to control's API, Ask an ask, Publish a page that the
	// bus gives no answer to, and Harness a call to the harness.
	Call, Ask, Publish, Harness time.Duration
	// Reconnect is the pause between tries to reach the bus.
	Reconnect time.Duration
	// DailyLook is how often it looks whether a daily report is due.
	DailyLook time.Duration
	// GitAccess is how long staging waits for a Git access.
	GitAccess time.Duration
	// Space is how often it tells what the rig keeps.
	Space time.Duration
	// ScreensWatched is how often it sends watched screens, and ScreensIdle
	// how often it asks whether one is.
	ScreensWatched, ScreensIdle time.Duration
}

// The waits that the seed does not name.
const (
	// publishTimeout leaves a page of 8 MiB time over a slow line.
	publishTimeout = time.Minute
	harnessTimeout = time.Minute
)

// withDefaults gives the times with the zero ones set.
func (t Times) withDefaults() Times {
	for _, d := range []struct {
		at       *time.Duration
		fallback time.Duration
	}{
		{&t.Register, wire.RegisterRetry}, {&t.Call, wire.CallTimeout}, {&t.Ask, wire.AskTimeout},
		{&t.Publish, publishTimeout}, {&t.Harness, harnessTimeout},
		{&t.DailyLook, wire.DailyLook}, {&t.Space, wire.SpaceEvery},
		{&t.ScreensWatched, wire.ScreensWatched}, {&t.ScreensIdle, wire.ScreensIdle},
	} {
		if *d.at == 0 {
			*d.at = d.fallback
		}
	}
	return t
}

// Bounds of Poll.
const (
	minPoll = Seconds(time.Millisecond)
	maxPoll = Seconds(time.Hour)
)

// Bounds of LiveInterval.
const (
	minLive = Millis(10 * time.Millisecond)
	maxLive = Millis(time.Minute)
)

// live is how often live lines are published.
func (c Config) live() time.Duration {
	if c.LiveInterval == 0 {
		return wire.LiveInterval
	}
	return time.Duration(c.LiveInterval)
}

// Validate says what is wrong with the settings, each by its field.
func (c Config) Validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("the supervisor's setting %s: %w", field, fmt.Errorf(format, args...)))
	}
	if err := wire.CheckName("rig", c.Rig); err != nil {
		wrong("Rig", "%w", err)
	}
	if err := checkURL(c.ControlURL, "https", "http"); err != nil {
		wrong("ControlURL", "%w", err)
	} else if u, _ := url.Parse(c.ControlURL); u.Scheme == "http" && !isLoopback(u.Hostname()) {
		wrong("ControlURL", "%q would send the rig's token in the clear: use https, or http on this machine's loopback", c.ControlURL)
	}
	if c.BusURL == "" {
		wrong("BusURL", "it is not set: a rig reports to control on the message bus alone, so a supervisor does not start without its address, such as nats://control:4222")
	} else if err := checkURL(c.BusURL, "nats", "tls"); err != nil {
		wrong("BusURL", "%w", err)
	}
	for _, p := range []struct{ field, path string }{
		{"TokenFile", c.TokenFile}, {"Authority", c.Authority}, {"Socket", c.Socket}, {"StateDir", c.StateDir},
	} {
		if !filepath.IsAbs(p.path) {
			wrong(p.field, "%q must be an absolute path", p.path)
		}
	}
	if c.Inbox != "" && !filepath.IsAbs(c.Inbox) {
		wrong("Inbox", "%q must be an absolute path", c.Inbox)
	}
	if c.Poll < minPoll || c.Poll > maxPoll {
		wrong("Poll", "%s seconds, where it may be %s to %s", c.Poll, minPoll, maxPoll)
	}
	// Who makes a Config without reading settings leaves it 0: the default.
	if c.ModelRoutePoll != 0 && c.ModelRoutePoll < minPoll || c.ModelRoutePoll > maxPoll {
		wrong("ModelRoutePoll", "%s seconds, where it may be %s to %s", c.ModelRoutePoll, minPoll, maxPoll)
	}
	if c.LiveInterval != 0 && (c.LiveInterval < minLive || c.LiveInterval > maxLive) {
		wrong("LiveInterval", "%s milliseconds, where it may be %s to %s", c.LiveInterval, minLive, maxLive)
	}
	if c.Build == "" || len(c.Build) > 100 {
		wrong("Build", "%d characters, where it may have 1 to 100", len(c.Build))
	}
	if c.Now == nil || c.Rand == nil || c.Log == nil {
		wrong("Now, Rand, Log", "each must be given")
	}
	return errors.Join(errs...)
}

// checkURL says whether s is an address of one of the schemes, and no more.
func checkURL(s string, schemes ...string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		// The error would hold the address, and that may hold a password.
		return fmt.Errorf("it must be %s://host:port", schemes[0])
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q may hold no user, query or fragment", u.Redacted())
	case u.Hostname() == "" || !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("%q must be %s://host:port", s, schemes[0])
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c Config) busKeyPath() string  { return filepath.Join(c.StateDir, "bus-key.seed") }
func (c Config) dailyPath() string   { return filepath.Join(c.StateDir, "daily.json") }
func (c Config) sealKeyPath() string { return filepath.Join(c.StateDir, "bus-seal.pem") }

// Seconds is a time that is written as a number of seconds, such as 60 or
// 0.5.
type Seconds time.Duration

// String gives the number.
func (s Seconds) String() string {
	return strconv.FormatFloat(time.Duration(s).Seconds(), 'f', -1, 64)
}

// UnmarshalText reads the number.
func (s *Seconds) UnmarshalText(b []byte) error {
	n, err := strconv.ParseFloat(string(b), 64)
	if most := maxPoll; err != nil || !(n >= 0 && n <= time.Duration(most).Seconds()) {
		return fmt.Errorf("%q must be a number of seconds, at most %s", b, most)
	}
	*s = Seconds(n * float64(time.Second))
	return nil
}

// Set reads the number from a flag.
func (s *Seconds) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// Type names the form to a flag's reader.
func (*Seconds) Type() string { return "seconds" }

// Millis is a time that is written as a whole number of milliseconds.
type Millis time.Duration

// String gives the number.
func (m Millis) String() string { return strconv.FormatInt(time.Duration(m).Milliseconds(), 10) }

// UnmarshalText reads the number.
func (m *Millis) UnmarshalText(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if most := time.Duration(maxLive).Milliseconds(); err != nil || n < 0 || n > most {
		return fmt.Errorf("%q must be a whole number of milliseconds, at most %d", b, most)
	}
	*m = Millis(time.Duration(n) * time.Millisecond)
	return nil
}

// Set reads the number from a flag.
func (m *Millis) Set(text string) error { return m.UnmarshalText([]byte(text)) }

// Type names the form to a flag's reader.
func (*Millis) Type() string { return "milliseconds" }
