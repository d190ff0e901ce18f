package screens_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/control/screens"
	"thermite/pkg/wire"
)

func trial(n uint64) wire.TrialRef { return wire.TrialRef{Run: "run-1", Trial: n} }

func screen(n uint64, text string) wire.Screen {
	return wire.Screen{TrialRef: trial(n), At: wire.At(time.Now()), Text: text}
}

// Promise: a trial is watched from a look on and for a while after the last
// one; its newest screen is what a look gives; of a trial that nobody watches
// nothing is kept, and one rig's trials are not another's.
func TestWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := screens.New(time.Now)
		if got := s.Take("alpha", []wire.Screen{screen(1, "unasked")}); got != nil {
			t.Errorf("nobody watches, and %v are", got)
		}
		if got, err := s.Look(t.Context(), "alpha", trial(1), time.Time{}, 0); got != nil || err != nil {
			t.Errorf("the first look gives %+v, %v", got, err)
		}
		if got := s.Take("beta", nil); got != nil {
			t.Errorf("beta is asked for %v", got)
		}
		if diff := cmp.Diff([]wire.TrialRef{trial(1)}, s.Take("alpha", nil)); diff != "" {
			t.Errorf("watched (-want +got):\n%s", diff)
		}
		go func() {
			<-time.After(time.Second)
			s.Take("alpha", []wire.Screen{screen(1, "one"), screen(2, "unasked")})
		}()
		got, err := s.Look(t.Context(), "alpha", trial(1), time.Time{}, 10*time.Second)
		if err != nil || got == nil || got.Text != "one" {
			t.Errorf("a look that waits gives %+v, %v", got, err)
		}
		began := time.Now()
		if got, err = s.Look(t.Context(), "alpha", trial(1), got.At.Time(), 5*time.Second); err != nil || got.Text != "one" || time.Since(began) != 5*time.Second {
			t.Errorf("with no later one it gives %+v, %v after %v", got, err, time.Since(began))
		}
		<-time.After(screens.Lapse + time.Second)
		if got := s.Take("alpha", []wire.Screen{screen(1, "late")}); got != nil {
			t.Errorf("after a while %v are watched", got)
		}
		if got, err := s.Look(t.Context(), "alpha", trial(1), time.Time{}, 0); got != nil || err != nil {
			t.Errorf("what nobody watched was kept: %+v, %v", got, err)
		}
	})
}

// Promise: no more trials of a rig are watched than fit an ask.
func TestMostWatched(t *testing.T) {
	s := screens.New(time.Now)
	for n := range uint64(wire.MaxScreens) {
		if _, err := s.Look(t.Context(), "alpha", trial(n+1), time.Time{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Look(t.Context(), "alpha", trial(99), time.Time{}, 0); !errors.Is(err, screens.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	if _, err := s.Look(t.Context(), "beta", trial(99), time.Time{}, 0); err != nil {
		t.Errorf("another rig's: %v", err)
	}
}
