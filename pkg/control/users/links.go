package users

import (
	"sync"
	"time"

	"thermite/pkg/bus"
)

// links are the rigs' connections as control last saw them.
type links struct {
	mu    sync.Mutex
	known bool
	rigs  map[string]link
}

type link struct {
	connected bool
	since     time.Time
}

// rig gives the rig's connection.
func (l *links) rig(rig string) (connected bool, since time.Time, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rigs[rig]
	return r.connected && l.known, r.since, l.known
}

// lost says that control could not look.
func (l *links) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = false
}

// saw takes what control saw at now.
func (l *links) saw(rigs map[string]bus.RigConnection, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = true
	if l.rigs == nil {
		l.rigs = map[string]link{}
	}
	for rig, has := range l.rigs {
		if _, still := rigs[rig]; !still && has.connected {
			l.rigs[rig] = link{false, now}
		}
	}
	for rig, c := range rigs {
		since := c.Since
		if has := l.rigs[rig]; since.IsZero() {
			if since = now; has.connected {
				since = has.since
			}
		}
		l.rigs[rig] = link{true, since}
	}
}
