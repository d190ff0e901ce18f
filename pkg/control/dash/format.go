package dash

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"thermite/pkg/wire"
)

// funcs are what templates call.
func (d *Dash) funcs() template.FuncMap {
	return template.FuncMap{
		"static":  d.staticAddress,
		"at":      at,
		"count":   count[uint64],
		"number":  count[int64],
		"whole":   count[int],
		"bytes":   bytesOf[uint64],
		"memory":  bytesOf[int64],
		"score":   score,
		"ms":      millis,
		"spaced":  func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"pretty":  pretty,
		"plural":  plural,
		"dict":    dict,
		"state":   stateOf,
		"doing":   doing,
		"clock":   func(d time.Duration) string { return millis(uint64(d.Milliseconds())) },
		"percent": func(v float64) string { return score(100*v) + " %" },
		"span":    func(ms int64) string { return span(time.Duration(ms) * time.Millisecond) },
		"fine":    fine,
		"plus":    func(a, b uint64) uint64 { return a + b },
		"minus":   func(a, b uint64) uint64 { return a - b },
		"brief":   brief,
		"shown":   shown,

		"joinFiles": joinFiles, "joinBroker": joinBroker, "joinHarness": joinHarness, "joinSupervisor": joinSupervisor,
	}
}

// moment is a time for the template "time".
type moment struct{ ISO, Title, Words string }

// at gives a time's moment, as seen at now.
func at(now time.Time, t wire.Time) *moment {
	if t.IsZero() {
		return nil
	}
	when := t.Time().UTC()
	return &moment{ISO: when.Format("2006-01-02T15:04:05.000Z"), Title: when.Format("2006-01-02 15:04:05 UTC"), Words: ago(now, when)}
}

// ago says in words how long before now t was. The script says the same words
// as time goes on.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		if d = -d; d < time.Second {
			return "now"
		}
		return "in " + span(d)
	}
	if d < time.Second {
		return "now"
	}
	if d > 60*24*time.Hour {
		return t.Format("2006-01-02")
	}
	return span(d) + " ago"
}

func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}

// count writes a number with its thousands apart.
func count[N uint64 | int64 | int](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func bytesOf[N uint64 | int64](n N) string {
	const units = "KMGTPE"
	v, unit := float64(n), -1
	for v >= 1024 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	if unit < 0 {
		return fmt.Sprintf("%d B", n)
	}
	if v >= 100 {
		return fmt.Sprintf("%.0f %ciB", v, units[unit])
	}
	return fmt.Sprintf("%.1f %ciB", v, units[unit])
}

// score writes a score with six digits.
func score(v any) string {
	switch v := v.(type) {
	case *float64:
		if v == nil {
			return "–"
		}
		return score(*v)
	case float64:
		if a := math.Abs(v); a >= 1e6 && a < 1e15 && v == math.Trunc(v) {
			return count(int64(v))
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	default:
		return ""
	}
}

// millis writes a duration given in milliseconds.
func millis(ms uint64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
}

// fine writes a duration given in milliseconds, finely.
func fine(ms float64) string {
	switch {
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64) + " ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
}

// brief cuts a long text for a place that has room for a line or two.
func brief(most int, s string) string {
	words := []rune(s)
	if len(words) <= most {
		return s
	}
	return string(words[:most]) + "…"
}

func plural(n any, one, many string) string {
	if fmt.Sprint(n) == "1" {
		return one
	}
	return many
}

// dict gives a part of a page more than one thing.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("a name without a value")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// look is how a state looks: a mark of its own shape beside its word.
type look struct{ Mark, Tone, Words string }

// looks are the states of connections, parts, runs and verdicts.
var looks = map[string]look{
	"connected": {"dot", "good", "connected"}, "working": {"dot", "good", "working"}, "ok": {"dot", "good", "ok"}, "running": {"dot", "good", "running"},
	"new": {"ring", "calm", "new"}, "seen": {"ring", "calm", "seen"}, "unknown": {"ring", "warn", "unknown"},
	"idle":   {"ring", "calm", "waiting"},
	"paused": {"bars", "warn", "paused"}, "waiting": {"bars", "warn", "waiting"}, "degraded": {"triangle", "bad", "degraded"},
	"broken": {"triangle", "bad", "broken"}, "away": {"triangle", "bad", "away"}, "stopped": {"triangle", "bad", "stopped"}, "failing": {"triangle", "bad", "failing"},
	"failed": {"cross", "bad", "failed"}, "refused": {"cross", "bad", "refused"}, "suspect": {"triangle", "warn", "suspect"},
	"retired": {"square", "calm", "retired"}, "ended": {"square", "calm", "ended"}, "proposed": {"ring", "calm", "proposed"},
	"passed": {"dot", "good", "passed"}, "not_promoted": {"bar", "calm", "not promoted"},
	"promoted": {"star", "good", "promoted"}, "better": {"up", "good", "better"}, "not_better": {"bar", "calm", "not better"},
	"finished": {"square", "calm", "finished"}, "dropped": {"cross", "calm", "dropped"}, "done": {"dot", "calm", "done"},
	"timed_out": {"triangle", "warn", "timed out"}, "lost": {"triangle", "warn", "lost"},
	"pending": {"ring", "calm", "pending"}, "applied": {"dot", "good", "applied"}, "not_applied": {"cross", "bad", "not applied"},
	"rejected": {"cross", "bad", "rejected"}, "expired": {"cross", "warn", "expired"}, "cancelled": {"square", "calm", "cancelled"},
}

// mostState is how long a state's word may be.
const mostState = 24

// stateOf gives a state's look; one that this control does not know is shown
// by its word.
func stateOf(name string) look {
	if l, ok := looks[name]; ok {
		return l
	}
	words := []rune(strings.ReplaceAll(name, "_", " "))
	if len(words) > mostState {
		words = append(words[:mostState], '…')
	}
	return look{"ring", "calm", string(words)}
}
