package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json"

	"thermite/pkg/bus"
	"thermite/pkg/files"
	"thermite/pkg/wire"
)

// controlPort is where control listens unless told or taken.
const controlPort = 8443

// ports are where everything listens. A rig is told them once, so the next
// start takes them again.
type ports struct {
	Control int `json:"control"`
	Bus     int `json:"bus"`
}

const portsFile = "ports.json"

func (u *up) portsPath() string { return filepath.Join(u.folders.state, portsFile) }

// lastPorts are those of the last start, 0 where there was none.
func (u *up) lastPorts() (ports, error) {
	var p ports
	b, err := os.ReadFile(u.portsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return ports{}, fmt.Errorf("reading where the last start listened, from %s: %w", u.portsPath(), err)
	}
	return p, nil
}

func (u *up) keepPorts(p ports) error {
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("keeping where this start listens: %w", err)
	}
	return files.Write(u.portsPath(), append(b, '\n'), 0o600)
}

// host is what to listen on: every address if other machines reach this one.
func (u *up) host() string {
	if u.cfg.Address != "" {
		return ""
	}
	return "127.0.0.1"
}

// listen opens control's address: the one it was told; else the last start's
// port, the usual one, or one the system picks.
func (u *up) listen(last int) (net.Listener, error) {
	if u.cfg.Listen != "" {
		l, err := net.Listen("tcp", u.cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("listening for the pages and the API: %w", err)
		}
		return l, nil
	}
	var l net.Listener
	var err error
	for _, port := range candidates(last, controlPort) {
		if l, err = net.Listen("tcp", net.JoinHostPort(u.host(), strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("listening for the pages and the API: %w", err)
}

// candidates are the ports to try in turn.
func candidates(last, usual int) []int {
	if last == 0 || last == usual {
		return []int{usual, 0}
	}
	return []int{last, usual, 0}
}

// startBus starts the bus's server on the port it was told; else on the last
// start's, the usual one, or one the system picks.
func (u *up) startBus(ctx context.Context, last int) (*bus.Server, error) {
	settings := bus.Settings{Dir: u.folders.bus, StoreDir: filepath.Join(u.folders.bus, "jetstream"), Host: u.host()}
	if settings.Host == "" {
		settings.Host = "0.0.0.0"
	}
	try := []int{max(u.cfg.BusPort, 0)}
	if u.cfg.BusPort == 0 {
		try = candidates(last, wire.BusPort)
	}
	for i, port := range try {
		more := i < len(try)-1
		if more && !free(settings.Host, port) {
			continue
		}
		if settings.Port = port; port == 0 {
			settings.Port = -1
		}
		server, err := bus.StartServer(ctx, settings, u.log("bus"))
		// Another program may have come between the look and the start.
		if err != nil && more && !free(settings.Host, port) {
			continue
		}
		return server, err
	}
	return nil, errors.New("starting the bus: there is no port to try")
}

// free says whether a port can be listened on.
func free(host string, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// portOf gives the port of a listener's address, or of a bus's.
func portOf(hostPort string) (int, error) {
	a, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return 0, fmt.Errorf("reading the address %q: %w", hostPort, err)
	}
	return int(a.Port()), nil
}
