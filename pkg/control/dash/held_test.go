package dash_test

import (
	"strings"
	"testing"

	"thermite/pkg/control/commands"
	"thermite/pkg/control/dash"
	"thermite/pkg/wire"
)

// Promise: a rig's page says how many of its commands wait for the message
// bus, and why, and Needs you has a card of it.
func TestARigsPageSaysThatCommandsWait(t *testing.T) {
	w := newWorld(t, dash.Options{})
	w.rig("alpha", figures)
	v := w.signedIn(w.owner)
	// Nobody publishes here, so those past the last turn are held.
	for range wire.MaxCommandTurns + 2 {
		if _, err := w.commands.Issue(t.Context(), commands.Order{Rig: "alpha", Args: wire.RunPause{Run: "run-1"}, By: "owner"}); err != nil {
			t.Fatal(err)
		}
	}
	page := v.get("/rigs/alpha").body
	if !strings.Contains(page, "commands wait for the message bus.</strong> 100 commands already wait their turn to be published") {
		t.Errorf("the rig's page does not say that commands wait")
	}
	if needs := v.get("/needs").body; !strings.Contains(needs, "Commands wait") || !strings.Contains(needs, "commands wait for the message bus: 100 commands") {
		t.Errorf("Needs you has no card of it")
	}
}
