package daily

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"thermite/pkg/wire"
)

// Markdown writes the report, at most wire.MaxDailyCharacters characters.
// What agents and owners wrote is in it as plain text.
func (r *Report) Markdown() string {
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	put("# %s, %s", plain(r.Rig), r.Day.Name)
	put("")
	put("From %s to %s, from ledger `%s`.", when(r.Day.From), when(r.Day.To), r.Ledger)
	put("")
	if !r.Began.IsZero() {
		words := "This ledger began in the day"
		if r.Before != "" {
			words += ", in place of `" + r.Before + "`, whose events of the day are not in this report"
		}
		put("%s, at %s.\n", words, when(r.Began.Time()))
	}
	r.putSums(put)
	for _, run := range r.Runs {
		run.put(put)
	}
	if r.MoreRuns > 0 {
		put("%d more runs had events.\n", r.MoreRuns)
	}
	if r.Applied+r.NotApplied+r.Rejected > 0 {
		put("## Commands\n")
		put("%d applied, %d not applied, %d rejected.\n", r.Applied, r.NotApplied, r.Rejected)
		r.Refusals.put(put)
	}
	if len(r.Notices) > 0 {
		put("## What the rig says of itself\n")
		for _, n := range r.Notices[:min(len(r.Notices), mostNotice)] {
			put("- %s", plain(n))
		}
		put("")
	}
	return clipped(b.String(), wire.MaxDailyCharacters)
}

func (r *Report) putSums(put func(string, ...any)) {
	if r.Events == 0 {
		put("Nothing happened: the rig recorded no event.\n")
		return
	}
	var sum Run
	sum.TrialsEnded, sum.Verdicts = map[string]uint64{}, map[string]uint64{}
	began, ended, champions := 0, 0, uint64(0)
	for _, run := range r.Runs {
		sum.Trials += run.Trials
		sum.Attempts += run.Attempts
		for outcome, n := range run.Verdicts {
			sum.Verdicts[outcome] += n
		}
		if run.Created != nil {
			began++
		}
		if run.Ended != nil {
			ended++
		}
		champions += uint64(len(run.Champions)) + run.More
	}
	put("| What | How many |")
	put("|---|---:|")
	put("| Events | %d |", r.Events)
	put("| Runs with events | %d |", uint64(len(r.Runs))+r.MoreRuns)
	put("| Runs begun, ended | %d, %d |", began, ended)
	put("| Trials begun | %d |", sum.Trials)
	put("| Attempts | %d |", sum.Attempts)
	put("| New champions | %d |", champions)
	put("| Verdicts | %s |", counts(sum.Verdicts))
	if r.Calls > 0 {
		put("| Model calls | %d, %d failed |", r.Calls, r.FailedCalls)
		put("| Spent on models | %s |", dollars(r.MicroDollars))
	}
	put("")
	if r.Unread > 0 {
		put("%d of the events could not be read by this build.\n", r.Unread)
	}
}

func (r *Run) put(put func(string, ...any)) {
	put("## Run %s\n", plain(r.Name))
	if c := r.Created; c != nil {
		put("It began: %s, with the kit %s.\n", plain(c.Title), plain(c.Kit))
	}
	switch {
	case r.Ended != nil:
		put("It ended, %s: %s.\n", plain(r.Ended.Outcome), plain(r.Ended.Why))
	case r.Paused != nil:
		put("It is paused: %s.\n", plain(*r.Paused))
	}
	put("%d %s, of which ended: %s. %d %s: %s.%s\n", r.Trials, words(r.Trials, "trial began", "trials began"), counts(r.TrialsEnded),
		r.Attempts, words(r.Attempts, "attempt", "attempts"), counts(r.Verdicts), spent(r.MicroDollars))
	if len(r.Champions) > 0 {
		put("| Champion | Score | At | What |")
		put("|---|---:|---|---|")
		if r.More > 0 {
			put("| %d earlier ones | | | |", r.More)
		}
		for _, c := range r.Champions {
			who := "attempt " + strconv.FormatUint(c.Attempt, 10)
			if c.Attempt == 0 {
				who = "the kit's base"
			}
			put("| %s | %s | %s | %s |", who, score(c.Score), c.At.Time().Format(time.TimeOnly), plain(c.Title))
		}
		put("")
	}
	r.Notes.put(put)
}

func (l lines) put(put func(string, ...any)) {
	for _, n := range l.First {
		put("- %s", plain(n.ours+n.said))
	}
	if l.More > 0 {
		put("- and %d more", l.More)
	}
	if len(l.First) > 0 {
		put("")
	}
}

func noteOf(what string, n uint64, outcome string) string {
	return fmt.Sprintf("%s %d, %s: ", what, n, strings.ReplaceAll(outcome, "_", " "))
}

// counts writes how many there are of each, by name.
func counts(m map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[name], plain(strings.ReplaceAll(name, "_", " "))))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func words(n uint64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func spent(micro uint64) string {
	if micro == 0 {
		return ""
	}
	return " Its models cost " + dollars(micro) + "."
}

func dollars(micro uint64) string { return fmt.Sprintf("$%.2f", float64(micro)/1e6) }

func score(s *float64) string {
	if s == nil {
		return "none"
	}
	return strconv.FormatFloat(*s, 'g', 10, 64)
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// mostPlain is how much of one text a report has, in characters.
const mostPlain = 300

// plain gives a text as one line that Markdown shows as it is.
func plain(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	if utf8.RuneCountInString(s) > mostPlain {
		s = string([]rune(s)[:mostPlain]) + "…"
	}
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune("\\`*_{}[]<>()#+!|~&-.:@/", c) && !strings.ContainsRune("-.:/", c) {
			b.WriteByte('\\')
		}
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		b.WriteRune(c)
	}
	return b.String()
}

// clipped cuts a text to so many characters, at a line's end.
func clipped(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	const note = "\nThe report was longer: it is cut here.\n"
	s = string([]rune(s)[:most-len(note)])
	return s[:strings.LastIndexByte(s, '\n')+1] + note
}
