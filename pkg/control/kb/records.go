package kb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thermite/pkg/wire"
)

// Kinds are the kinds of event that items are made from.
var Kinds = []string{
	wire.KindKBItem, wire.KindRunCreated, wire.KindRunEnded, wire.KindAttempt, wire.KindVerdict, wire.KindChampion, wire.KindDisqualified,
	wire.KindAdvice, wire.KindSource, wire.KindDocument,
}

// record is what an event says, as one of Thermite's records of its run.
type record struct {
	key, title, text string
	tags             []string
	// of is the record that the title is about, if that has a better one.
	of string
}

// recordOf makes the record of an event of one of Kinds. What it holds may be
// read by other runs' agents, so it says no more of secret cases than an agent
// of the run itself is told.
func recordOf(e wire.Event) (record, error) {
	switch e.Kind {
	case wire.KindRunCreated:
		return recordAs(e, func(b wire.RunCreated) record { return created(e.Run, b) })
	case wire.KindRunEnded:
		return recordAs(e, func(b wire.RunEnded) record {
			return record{key: "end", title: "Run " + e.Run + " ended: " + spaced(b.Outcome), text: b.Why, tags: []string{"end", b.Outcome}}
		})
	case wire.KindAttempt:
		return recordAs(e, attempt)
	case wire.KindVerdict:
		return recordAs(e, verdict)
	case wire.KindChampion:
		return recordAs(e, champion)
	case wire.KindDisqualified:
		return recordAs(e, func(b wire.Disqualified) record {
			return record{key: numbered("disqualified", b.Attempt), of: numbered("attempt", b.Attempt),
				title: fmt.Sprintf("Attempt %d is disqualified", b.Attempt), text: b.Why, tags: []string{"disqualified"}}
		})
	case wire.KindAdvice:
		return recordAs(e, func(b wire.Advice) record {
			return record{key: numbered("advice", e.ID), title: b.Title, text: b.Text, tags: []string{"advice"}}
		})
	case wire.KindSource:
		return recordAs(e, func(b wire.Source) record {
			return record{key: numbered("source", e.ID), title: b.Title, text: strings.TrimSpace(b.URL + "\n\n" + b.Text), tags: []string{"source"}}
		})
	case wire.KindDocument:
		return recordAs(e, func(b wire.Document) record {
			return record{key: numbered("document", e.ID), title: b.Title, text: b.Text, tags: []string{"document"}}
		})
	}
	return record{}, fmt.Errorf("no record is made of %s", e.Kind)
}

func recordAs[B wire.Body](e wire.Event, words func(B) record) (record, error) {
	b, err := wire.ReadBody[B](e)
	if err != nil {
		return record{}, err
	}
	return words(b), nil
}

func created(run string, b wire.RunCreated) record {
	var t facts
	t.add("Kit", strings.TrimSpace(b.Kit+" "+b.KitVersion))
	t.add("Campaign", b.Campaign)
	if m := b.Metric; m != nil {
		better := "higher is better"
		if m.Direction == wire.DirectionMin {
			better = "lower is better"
		}
		t.add("Score", strings.TrimSpace(m.Name+" "+m.Unit)+", "+better)
		if m.Bound != nil {
			t.add("Bound", number(*m.Bound))
		}
	}
	t.add("Worker", b.Worker)
	return record{key: "run", title: strings.TrimSuffix("Run "+run+": "+b.Title, ": "), text: t.String(), tags: list("run", b.Kit)}
}

func attempt(b wire.Attempt) record {
	var t facts
	t.add("Why", b.Why)
	if b.Parent > 0 {
		t.add("Set out from", fmt.Sprintf("attempt %d", b.Parent))
	}
	if b.Files > 0 {
		t.add("Change", fmt.Sprintf("%d files, %d lines added, %d removed", b.Files, b.Added, b.Removed))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Tunables)) {
		t.add(name, b.Tunables[name])
	}
	return record{key: numbered("attempt", b.Attempt), title: cmp.Or(b.Title, fmt.Sprintf("Attempt %d", b.Attempt)), text: t.String(), tags: []string{"attempt"}}
}

// unconfirmed is said of every attempt that was judged on secret cases, or may
// have been, and did not become the champion: whatever it failed by.
const unconfirmed = "it is not the champion; of secret cases no more is told"

// verdict says of a judging what its run's agents may know. Two verdicts that
// differ only in what secret cases gave make the same record.
func verdict(b wire.Verdict) record {
	r := record{key: numbered("verdict", b.Attempt), of: numbered("attempt", b.Attempt)}
	var t facts
	outcome := "not_promoted"
	switch {
	case b.Outcome == wire.VerdictPromoted:
		outcome = b.Outcome
		t.add("Outcome", "promoted: the new champion")
		t.score(b.Score)
	case b.Outcome == "not_better":
		outcome = b.Outcome
		t.add("Outcome", "not better than the champion")
		t.score(b.Score)
		t.add("Why", b.Why)
	case beforeCases(b.Step):
		outcome = b.Outcome
		t.add("Outcome", spaced(b.Outcome)+" at "+b.Step)
		t.add("Why", b.Why)
	default:
		t.add("Outcome", unconfirmed)
	}
	r.title, r.text = fmt.Sprintf("Attempt %d: %s", b.Attempt, spaced(outcome)), t.String()
	r.tags = []string{"verdict", outcome}
	return r
}

// beforeCases says whether a judging that ended in the step saw no case.
func beforeCases(step string) bool { return step == "overlay" || step == "build" }

func champion(b wire.Champion) record {
	var t facts
	t.score(b.Score)
	t.add("Why", b.Why)
	r := record{key: numbered("champion", b.Attempt), of: numbered("attempt", b.Attempt), title: fmt.Sprintf("Attempt %d became the champion", b.Attempt),
		text: t.String(), tags: []string{"champion"}}
	if b.Attempt == 0 {
		r.title, r.of = "The kit's base is the champion", ""
	}
	return r
}

// facts are lines, each with its name.
type facts struct{ strings.Builder }

func (f *facts) add(name, words string) {
	if words = strings.TrimSpace(words); words != "" {
		fmt.Fprintf(f, "%s: %s\n", name, words)
	}
}

func (f *facts) score(s *float64) {
	if s != nil {
		f.add("Score", number(*s))
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func numbered(what string, n uint64) string { return what + "-" + strconv.FormatUint(n, 10) }

func spaced(s string) string { return strings.ReplaceAll(s, "_", " ") }

// list leaves the empty ones out.
func list(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}
