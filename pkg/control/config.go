package control

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

	"thermite/pkg/wire"
)

// Config is control's settings, and what it is given to work with. A
// setting's env tag is its name in the environment.
type Config struct {
	// StateDir holds the store and control's keys; it is control's alone.
	StateDir string `env:"THERMITE_CONTROL_STATE" envDefault:"/var/lib/thermite-control"`
	// BusDir is the folder that the bus's server reads: control writes the
	// server's users and certificate there.
	BusDir string `env:"THERMITE_NATS_DIR" envDefault:"/var/lib/thermite-nats"`
	// BusURL is where control reaches the bus's server.
	BusURL string `env:"THERMITE_NATS_URL" envDefault:"nats://127.0.0.1:4222"`
	// BusPublicURL is where rigs reach it; empty: the host of PublicURL, or
	// BusURL where there is none.
	BusPublicURL string `env:"THERMITE_NATS_PUBLIC_URL"`
	// Listen is the address of control's pages and API, unless control is
	// handed a socket.
	Listen string `env:"THERMITE_CONTROL_LISTEN" envDefault:"127.0.0.1:8443"`
	// PublicURL is where rigs and people reach them; empty: the address
	// control listens on.
	PublicURL string `env:"THERMITE_CONTROL_PUBLIC_URL"`
	// Names are further names and addresses that control and the bus's server
	// are reached by, for their certificates.
	Names []string `env:"THERMITE_CONTROL_NAMES" envSeparator:","`
	// Plain serves HTTP without TLS: for a proxy on the same machine.
	Plain bool `env:"THERMITE_CONTROL_PLAIN" envDefault:"false"`
	// KBFloor is how many mebibytes of the disk stay free: at less, control
	// takes no file of the knowledge base.
	KBFloor uint64 `env:"THERMITE_CONTROL_KB_FLOOR_MIB" envDefault:"1024"`
	// Live is how many mebibytes of live lines the bus keeps at most, and keeps
	// free for them: a bus with a small store wants less. 0 is 256.
	Live uint64 `env:"THERMITE_CONTROL_LIVE_MIB" envDefault:"256"`

	// Build is control's version.
	Build string
	// Listener is the socket it was handed, if any.
	Listener net.Listener
	// Now is the clock, and Rand gives random bits for keys and tokens.
	Now  func() time.Time
	Rand io.Reader
	Log  *slog.Logger
	// OnState is told, in a few words, what control is at: for the service
	// manager. It may be nil, and must not block.
	OnState func(words string)
	// OnReady is called when control serves its pages. It may be nil.
	OnReady func()
}

// maxLive is the most mebibytes of live lines.
const maxLive = 1 << 20

func (c Config) liveBytes() int64 { return int64(c.Live) << 20 }

// Validate says what is wrong with the settings, each by its field.
func (c Config) Validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("control's setting %s: %w", field, fmt.Errorf(format, args...)))
	}
	for field, dir := range map[string]string{"StateDir": c.StateDir, "BusDir": c.BusDir} {
		if !filepath.IsAbs(dir) {
			wrong(field, "%q must be an absolute path", dir)
		}
	}
	if filepath.Clean(c.StateDir) == filepath.Clean(c.BusDir) {
		wrong("BusDir", "it is StateDir too, whose keys the bus's server may not read")
	}
	if err := checkURL(c.BusURL, "nats", "tls"); err != nil {
		wrong("BusURL", "%w", err)
	}
	if err := checkURL(c.BusPublicURL, "nats", "tls"); c.BusPublicURL != "" && err != nil {
		wrong("BusPublicURL", "%w", err)
	}
	if err := checkURL(c.PublicURL, "https", "http"); c.PublicURL != "" && err != nil {
		wrong("PublicURL", "%w", err)
	}
	if c.Listener == nil {
		if _, port, err := net.SplitHostPort(c.Listen); err != nil {
			wrong("Listen", "%q must be host:port", c.Listen)
		} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			wrong("Listen", "%q names no port", c.Listen)
		}
	}
	if c.Plain && c.Listener == nil && !isLoopback(c.Listen) {
		wrong("Plain", "without TLS control listens on this machine's loopback alone, not on %q", c.Listen)
	}
	if c.Live > maxLive {
		wrong("Live", "%d mebibytes of live lines, at most %d", c.Live, maxLive)
	}
	if c.Build == "" || len(c.Build) > 100 {
		wrong("Build", "%d characters, where it may have 1 to 100", len(c.Build))
	}
	if c.Now == nil || c.Rand == nil || c.Log == nil {
		wrong("Now, Rand, Log", "each must be given")
	}
	return errors.Join(errs...)
}

// checkURL says whether s is an address of one of the schemes.
func checkURL(s string, schemes ...string) error {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("%q must be %s://host:port", s, schemes[0])
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q may hold no user, query or fragment", u.Redacted())
	}
	return nil
}

func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// hostOf gives the host of an address that was checked, "" of an empty one.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// loopbacks are the names by which this machine reaches itself.
var loopbacks = []string{"localhost", "127.0.0.1", "::1"}

// names gives every name, once, in a certificate for the addresses.
func (c Config) names(addresses ...string) []string {
	names := slices.Concat(loopbacks, c.Names)
	for _, a := range addresses {
		if host := hostOf(a); host != "" {
			names = append(names, host)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// busNames are the names that the bus's server is reached by.
func (c Config) busNames() []string { return c.names(c.BusURL, c.busPublicURL()) }

// apiNames are the names that control's pages and API are reached by.
func (c Config) apiNames() []string { return c.names(c.PublicURL) }

// busPublicURL is where rigs reach the bus.
func (c Config) busPublicURL() string {
	switch {
	case c.BusPublicURL != "":
		return c.BusPublicURL
	case c.PublicURL != "":
		return "nats://" + net.JoinHostPort(hostOf(c.PublicURL), strconv.Itoa(wire.BusPort))
	default:
		return c.BusURL
	}
}

// publicURL is where rigs and people reach control, which listens on addr.
func (c Config) publicURL(addr net.Addr) string {
	switch {
	case c.PublicURL != "":
		return c.PublicURL
	case c.Plain:
		return "http://" + addr.String()
	default:
		return "https://" + addr.String()
	}
}

func (c Config) storePath() string  { return filepath.Join(c.StateDir, "control.db") }
func (c Config) kbFilesDir() string { return filepath.Join(c.StateDir, "kb-files") }
func (c Config) lockPath() string   { return filepath.Join(c.StateDir, "control.lock") }
