package systemd

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"thermite/pkg/broker/launch"
	"thermite/pkg/wire"
)

// A state is what systemd says of a unit.
type state struct {
	loaded       bool
	sub, result  string
	code, status int32
	start, end   time.Time // of its main process
	cpu          time.Duration
	memory, peak int64
	tasks        int64
}

// look reads the unit's state.
func (p *Process) look(ctx context.Context) (state, error) {
	all, err := p.manager.GetAllPropertiesContext(ctx, p.unit)
	if err != nil {
		return state{}, fmt.Errorf("asking systemd for %s: %w", p.unit, err)
	}
	return stateOf(all), nil
}

func stateOf(all map[string]any) state {
	words := func(name string) string { s, _ := all[name].(string); return s }
	small := func(name string) int32 { n, _ := all[name].(int32); return n }
	large := func(name string) int64 {
		n, _ := all[name].(uint64)
		if n > math.MaxInt64 { // systemd's word for not known
			return 0
		}
		return int64(n)
	}
	at := func(name string) time.Time {
		if us := large(name); us > 0 {
			return time.UnixMicro(us)
		}
		return time.Time{}
	}
	return state{loaded: words("LoadState") == "loaded", sub: words("SubState"), result: words("Result"),
		code: small("ExecMainCode"), status: small("ExecMainStatus"),
		start: at("ExecMainStartTimestamp"), end: at("ExecMainExitTimestamp"),
		cpu: time.Duration(large("CPUUsageNSec")), memory: large("MemoryCurrent"), peak: large("MemoryPeak"), tasks: large("TasksCurrent")}
}

// over says whether its main process has ended, or nothing is known of it.
func (s state) over() bool {
	switch s.sub {
	case "exited", "failed", "dead":
		return true
	}
	return !s.loaded
}

func (s state) wall(now time.Time) time.Duration {
	if !s.end.IsZero() {
		now = s.end
	}
	if s.start.IsZero() {
		return 0
	}
	return max(now.Sub(s.start), 0)
}

// Values of ExecMainCode: those of waitid.
const exitedByItself = 1 // CLD_EXITED

// exit gives the end of a unit that is over.
func (s state) exit() launch.Exit {
	if !s.loaded {
		return launch.Exit{Code: -1, Signal: unix.SignalName(unix.SIGKILL), Lost: true}
	}
	x := launch.Exit{Code: int(s.status), Wall: s.wall(s.end), CPU: s.cpu, RSS: s.peak, TimedOut: s.result == "timeout"}
	if s.code != exitedByItself {
		x.Code, x.Signal = -1, unix.SignalName(unix.Signal(s.status))
	}
	if s.result == "oom-kill" {
		x.OOM, x.Over = true, wire.OverMemory
	}
	return x
}
