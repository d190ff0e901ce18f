package events_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"thermite/pkg/bus/bustest"
	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// Promise: events are read by their places, in those's order and as the
// stream holds them; what is another rig's, or not there any more, is not
// given.
func TestEventsAtTheirPlaces(t *testing.T) {
	s := open(t, bustest.Start(t, bustest.Options{}).JS(), 0)
	own := func(*wire.Event) bool { return true }
	s.publish("a", "aaaaaaaaaaaaaaaaaaaaaaaaaa", 3, own)
	s.publish("b", "bbbbbbbbbbbbbbbbbbbbbbbbbb", 2, own)
	s.publish("a", "aaaaaaaaaaaaaaaaaaaaaaaaaa", 2, own)
	s.purge(s.subjects[1], 2) // the first event goes
	got, err := s.reader.At(t.Context(), "a", []uint64{7, 1, 4, 2, 99})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]views.Message{s.all[6], s.all[1]}, got, cmpopts.EquateComparable(wire.Time{})); d != "" {
		t.Error(d)
	}
	if got, err := s.reader.At(t.Context(), "a", nil); err != nil || len(got) > 0 {
		t.Errorf("no places are the events %v, %v", got, err)
	}
}
