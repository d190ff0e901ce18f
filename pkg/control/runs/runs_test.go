package runs_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	"pgregory.net/rapid"

	"thermite/pkg/control/runs"
	"thermite/pkg/control/store"
	"thermite/pkg/wire"
)

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func open(t testing.TB) (*store.Store, *runs.Registry) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, read(t, s)
}

func read(t testing.TB, s *store.Store) *runs.Registry {
	t.Helper()
	r, err := runs.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// made is an event that makes the run, in the campaign.
func made(run, campaign string) wire.Event {
	return wire.Event{ID: 1, Time: wire.At(began), Kind: wire.KindRunCreated, Actor: "controller", Run: run,
		Body: fmt.Appendf(nil, `{"campaign":%q,"kit":"k","title":"t"}`, campaign)}
}

// step is one thing that happens to the registry.
type step struct {
	assign, campaign bool
	rig, run, in     string
}

func do(t testing.TB, s *store.Store, r *runs.Registry, steps ...step) {
	t.Helper()
	for _, st := range steps {
		var err error
		switch {
		case st.campaign:
			err = s.Write(t.Context(), func(tx *sqlx.Tx) error { return s.AddCampaign(t.Context(), tx, st.in, began) })
		case st.assign:
			err = r.Assign(t.Context(), st.run, st.rig, st.in, began)
		default:
			err = r.Take(t.Context(), st.rig, []wire.Event{made(st.run, st.in)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// entries gives each run's "rig origin campaign".
func entries(r *runs.Registry, names ...string) map[string][]string {
	all := map[string][]string{}
	for _, name := range names {
		for _, run := range r.Named(name) {
			all[name] = append(all[name], run.Rig+" "+run.Origin+" "+run.Campaign)
		}
	}
	return all
}

// Promise: the registry's rules, each.
func TestTheRegistrysRules(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"a run a rig makes is its own": {[]step{{rig: "a", run: "r", in: "c"}}, []string{"a made c"}},
		"made twice, it stays as it was first": {[]step{{rig: "a", run: "r", in: "c"}, {rig: "a", run: "r", in: "d"}},
			[]string{"a made c"}},
		"two rigs may each make a run of one name": {[]step{{rig: "a", run: "r", in: "c"}, {rig: "b", run: "r", in: "d"}},
			[]string{"a made c", "b made d"}},
		"a run assigned to another rig is not taken": {[]step{{assign: true, rig: "b", run: "r", in: "c"}, {rig: "a", run: "r", in: "d"}},
			[]string{"b assigned c"}},
		"a run assigned to the rig, and another, is the rig's, in its assignment's campaign": {
			[]step{{assign: true, rig: "b", run: "r", in: "c"}, {assign: true, rig: "a", run: "r", in: "c"}, {rig: "a", run: "r", in: "d"}},
			[]string{"b assigned c", "a assigned c"}},
		"assigned after it was made, it is the assignment's": {[]step{{rig: "a", run: "r", in: "d"}, {assign: true, rig: "a", run: "r", in: "c"}},
			[]string{"a assigned c"}},
		"no campaign named: its own":                {[]step{{rig: "a", run: "r"}}, []string{"a made r"}},
		"a name that no campaign can have: its own": {[]step{{rig: "a", run: "r", in: "No.Campaign"}}, []string{"a made r"}},
		"control's own campaign: its own":           {[]step{{campaign: true, in: "c"}, {rig: "a", run: "r", in: "c"}}, []string{"a made r"}},
		"a campaign of another rig's run: its own": {[]step{{rig: "b", run: "q", in: "c"}, {rig: "a", run: "r", in: "c"}},
			[]string{"a made r"}},
		"a campaign of another run of the rig: the event's": {[]step{{rig: "a", run: "q", in: "c"}, {rig: "a", run: "r", in: "c"}},
			[]string{"a made c"}},
		"the campaign of a run that control assigned the rig: its own": {
			[]step{{assign: true, rig: "a", run: "q", in: "c"}, {rig: "a", run: "r", in: "c"}}, []string{"a made r"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := open(t)
			do(t, s, r, c.steps...)
			if diff := cmp.Diff(c.want, entries(r, "r")["r"]); diff != "" {
				t.Errorf("the registry (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(entries(r, "r"), entries(read(t, s), "r")); diff != "" {
				t.Errorf("read again (-before +after):\n%s", diff)
			}
		})
	}
}

// Promise: only events that make a run enter one, and the runs of one page
// are entered together.
func TestOnlyRunsThatWereMadeAreEntered(t *testing.T) {
	_, r := open(t)
	other := made("r", "c")
	other.Kind = wire.KindRunEnded
	none := made("", "c")
	if err := r.Take(t.Context(), "a", []wire.Event{other, none, made("p", "c"), made("q", "c"), made("p", "d")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"q", "p"}, r.RunsOf("a")); diff != "" {
		t.Errorf("the rig's runs (-want +got):\n%s", diff)
	}
}

// Promise: what is entered in a transaction that is not committed is not
// read.
func TestAnEntryIsReadOnceItIsCommitted(t *testing.T) {
	s, r := open(t)
	rolledBack := fmt.Errorf("rolled back")
	err := s.Write(t.Context(), func(tx *sqlx.Tx) error {
		if _, err := r.TakeIn(t.Context(), tx, "a", []wire.Event{made("r", "c")}); err != nil {
			t.Fatal(err)
		}
		return rolledBack
	})
	if err != rolledBack || r.Holds("r", "a") {
		t.Errorf("it gave %v, and the run is the rig's: %v", err, r.Holds("r", "a"))
	}
	var keep func()
	err = s.Write(t.Context(), func(tx *sqlx.Tx) (err error) {
		keep, err = r.TakeIn(t.Context(), tx, "a", []wire.Event{made("r", "c")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	keep()
	if !r.Holds("r", "a") {
		t.Error("the run is not the rig's")
	}
}

// Promise: the registry is what a naive reading of the rules gives, and the
// same after a start; where an event goes follows from it.
func TestTheRegistryAgainstANaiveOne(t *testing.T) {
	rigs, names, campaigns := []string{"a", "b", "c"}, []string{"p", "q", "r"}, []string{"", "x", "y", "p"}
	rapid.Check(t, func(rt *rapid.T) {
		s, r := open(t)
		type entry struct{ rig, run, origin, campaign string }
		var list []entry
		own := map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			st := step{rig: rapid.SampledFrom(rigs).Draw(rt, "rig"), run: rapid.SampledFrom(names).Draw(rt, "run"),
				in: rapid.SampledFrom(campaigns).Draw(rt, "campaign")}
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				st.campaign, st.in = true, "x"
			case 1:
				st.assign, st.in = true, "y"
			}
			do(t, s, r, st)
			has := slices.IndexFunc(list, func(e entry) bool { return e.rig == st.rig && e.run == st.run })
			switch {
			case st.campaign:
				own[st.in] = true
			case st.assign:
				if has >= 0 {
					list = slices.Delete(list, has, has+1)
				}
				list = append(list, entry{st.rig, st.run, store.RunAssigned, st.in})
			case has >= 0:
			case slices.ContainsFunc(list, func(e entry) bool { return e.run == st.run && e.origin == store.RunAssigned }):
			default:
				known := own[st.in] || slices.ContainsFunc(list, func(e entry) bool {
					return e.campaign == st.in && (e.rig != st.rig || e.origin == store.RunAssigned)
				})
				if known || st.in == "" {
					st.in = st.run
				}
				list = append(list, entry{st.rig, st.run, store.RunMade, st.in})
			}
		}
		for _, r := range []*runs.Registry{r, read(t, s)} {
			want := map[string][]string{}
			for _, e := range list {
				want[e.run] = append(want[e.run], e.rig+" "+e.origin+" "+e.campaign)
			}
			if diff := cmp.Diff(want, entries(r, names...)); diff != "" {
				rt.Fatalf("the registry (-want +got):\n%s", diff)
			}
			for _, rig := range rigs {
				var newest []string
				for _, e := range slices.Backward(list) {
					if e.rig == rig {
						newest = append(newest, e.run)
					}
				}
				if diff := cmp.Diff(newest, r.RunsOf(rig)); diff != "" && len(newest) > 0 {
					rt.Fatalf("rig %s's runs (-want +got):\n%s", rig, diff)
				}
				for _, run := range names {
					holds := slices.ContainsFunc(list, func(e entry) bool { return e.rig == rig && e.run == run })
					nobodys := !slices.ContainsFunc(list, func(e entry) bool { return e.run == run })
					if r.Holds(run, rig) != holds || r.Publishes(run, rig) != (holds || nobodys) {
						rt.Fatalf("run %s of rig %s: holds %v, publishes %v", run, rig, r.Holds(run, rig), r.Publishes(run, rig))
					}
				}
			}
		}
	})
}
