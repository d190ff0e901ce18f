package bustest

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// A bus for tests takes every role's connection, through a proxy too.
func TestStart(t *testing.T) {
	b := Start(t, Options{Rigs: []string{"alpha", "beta"}})
	for name, nc := range map[string]*nats.Conn{"control": b.Control(), "system": b.System(), "backup": b.Backup(), "alpha": b.Rig("alpha"), "beta": b.Rig("beta")} {
		if err := nc.FlushTimeout(Wait); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := b.Proxy()
	d := b.RigDial("alpha")
	d.URL = p.URL()
	nc := b.Connect(d)
	if err := nc.FlushTimeout(Wait); err != nil {
		t.Error(err)
	}
}
