package kit

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"thermite/pkg/wire"
)

// Bounds of a kit.
const (
	maxTitle    = 300
	maxText     = 4000
	maxWords    = 100 // of a command
	maxList     = 200
	maxSecret   = 1000
	maxRepeats  = 1000
	maxTimeout  = 24 * 60 * 60e9
	maxCPUs     = 1024
	maxPIDs     = 100_000
	versionForm = `[0-9]+(?:\.[0-9]+)*`
)

var (
	isVersion = regexp.MustCompile(`\A` + versionForm + `\z`)
	isEnv     = regexp.MustCompile(`\A[A-Z][A-Z0-9_]{0,63}\z`)
	isMetric  = regexp.MustCompile(`\A[a-z][a-z0-9_]{0,39}\z`)
)

// checker gathers what is wrong.
type checker struct{ problems []*Problem }

func (c *checker) say(key, format string, args ...any) {
	c.problems = append(c.problems, &Problem{File: FileName, Key: key, Words: fmt.Sprintf(format, args...)})
}

func (c *checker) err(key string, err error) {
	if err != nil {
		c.say(key, "%v", err)
	}
}

func (c *checker) text(key, s string, most int, needed bool) {
	switch {
	case s == "" && needed:
		c.say(key, "is missing")
	case len(s) > most:
		c.say(key, "has %d bytes, at most %d", len(s), most)
	}
}

func (c *checker) oneOf(key, s string, of []string) {
	if s == "" {
		c.say(key, "is missing: one of %s", strings.Join(of, ", "))
	} else if !slices.Contains(of, s) {
		c.say(key, "%q is none of %s", clip(s), strings.Join(of, ", "))
	}
}

func (c *checker) name(key, s string) { c.err(key, wire.CheckName("a", s)) }

func (c *checker) globs(key string, globs []string) {
	if len(globs) > maxList {
		c.say(key, "has %d globs, at most %d", len(globs), maxList)
	}
	for _, g := range globs {
		c.err(key, CheckGlob(g))
	}
}

func (c *checker) timeout(key string, d Duration) {
	if d > maxTimeout {
		c.say(key, "is more than a day")
	}
}

// command checks an argument list and the words in it.
func (c *checker) command(key string, argv []string, words []string) {
	if len(argv) == 0 || argv[0] == "" {
		c.say(key, "is missing: a list of a program and its arguments")
		return
	}
	if len(argv) > maxWords {
		c.say(key, "has %d words, at most %d", len(argv), maxWords)
	}
	for _, a := range argv {
		c.words(key, a, words)
	}
}

func (c *checker) words(key, s string, words []string) {
	if strings.ContainsRune(s, 0) || len(s) > maxText {
		c.say(key, "%q can't be a program's argument", clip(s))
	}
	for _, w := range wordsIn(s) {
		if !slices.Contains(words, w) {
			c.say(key, "%s is not given to this step, which has %s", w, strings.Join(words, ", "))
		}
	}
}

// check says everything that is wrong with the kit, by its keys.
func (k *Kit) check() []*Problem {
	c := &checker{}
	c.name("kit.name", k.About.Name)
	c.text("kit.version", k.About.Version, 40, true)
	c.text("kit.title", k.About.Title, maxTitle, true)
	c.text("kit.summary", k.About.Summary, maxText, false)
	for _, name := range slices.Sorted(maps.Keys(k.Requires)) {
		p := k.Requires[name]
		c.command("requires."+name+".version", p.Version, nil)
		if !isVersion.MatchString(p.Least) {
			c.say("requires."+name+".least", "%q is no version such as 1.22", clip(p.Least))
		}
	}
	c.project(&k.Project)
	for _, name := range slices.Sorted(maps.Keys(k.Env)) {
		if !isEnv.MatchString(name) || slices.Contains(reservedEnv, name) || strings.HasPrefix(name, "LD_") {
			c.say("env."+name, "can't be set")
		}
		c.words("env."+name, k.Env[name], everyWord)
	}
	c.command("build.command", k.Build.Command, stepWords[StepBuild])
	c.timeout("build.timeout", k.Build.Timeout)
	c.oneOf("build.cache", k.Build.Cache, Caches)
	for _, o := range k.Build.Outputs {
		c.err("build.outputs", CheckPath(o))
	}
	c.cases(&k.Cases)
	c.command("run.command", k.Run.Command, stepWords[StepRun])
	c.timeout("run.timeout", k.Run.Timeout)
	c.globs("run.reads", k.Run.Reads)
	c.globs("run.writes", k.Run.Writes)
	c.command("check.command", k.Check.Command, stepWords[StepCheck])
	c.timeout("check.timeout", k.Check.Timeout)
	c.metrics(k.Metrics)
	c.limits(&k.Limits)
	c.worker(&k.Worker, k.Project.Editable)
	c.fixtures(k.Fixtures)
	return c.problems
}

// reservedEnv is what the judge sets itself.
var reservedEnv = []string{"PATH", "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"}

func (c *checker) project(p *Project) {
	switch {
	case (p.Path == "") == (p.Git == ""):
		c.say("project", "has either path or git")
	case p.Path != "":
		c.err("project.path", CheckPath(p.Path))
		if p.Commit != "" {
			c.say("project.commit", "belongs to git: a path is of the kit's own commit")
		}
	default:
		c.err("project.git", checkURL(p.Git))
		c.err("project.commit", CheckCommit(p.Commit))
	}
	if len(p.Editable) == 0 {
		c.say("project.editable", "is missing: globs of what a candidate may change")
	}
	c.globs("project.editable", p.Editable)
	c.globs("project.ignore", p.Ignore)
	for i, argv := range p.Setup {
		c.command(fmt.Sprintf("project.setup[%d]", i), argv, stepWords[StepSetup])
	}
	c.timeout("project.setup_timeout", p.SetupTimeout)
}

// checkURL takes what git fetches over a network that says who is there.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "ssh" {
		return fmt.Errorf("%q is no https:// or ssh:// address", clip(s))
	}
	if strings.HasPrefix(u.Host, "-") {
		return fmt.Errorf("%q has no host", clip(s))
	}
	if _, secret := u.User.Password(); secret {
		return fmt.Errorf("an address holds no password")
	}
	return nil
}

// CheckCommit says whether s is a commit's full id.
func CheckCommit(s string) error {
	if b, err := hex.DecodeString(s); err != nil || len(b) != 20 && len(b) != 32 || strings.ToLower(s) != s {
		return fmt.Errorf("%q is no full commit: 40 (or 64) of 0-9 and a-f", clip(s))
	}
	return nil
}

func (c *checker) cases(s *Cases) {
	c.command("cases.command", s.Command, stepWords[StepCases])
	c.timeout("cases.timeout", s.Timeout)
	if len(s.Public) == 0 || len(s.Public) > maxList {
		c.say("cases.public", "has %d seeds, 1 to %d", len(s.Public), maxList)
	}
	seen := map[uint64]bool{}
	for _, seed := range s.Public {
		if seed > wire.MaxInteger {
			c.say("cases.public", "seed %d is more than %d", seed, uint64(wire.MaxInteger))
		}
		if seen[seed] {
			c.say("cases.public", "has seed %d twice", seed)
		}
		seen[seed] = true
	}
	if s.Secret < 1 || s.Secret > maxSecret {
		c.say("cases.secret", "is %d, 1 to %d", s.Secret, maxSecret)
	}
	c.globs("cases.hidden", s.Hidden)
}

func (c *checker) metrics(all []Metric) {
	if len(all) == 0 {
		c.say("metric", "is missing: say what is better")
	}
	primary := 0
	seen := map[string]bool{}
	for i, m := range all {
		at := fmt.Sprintf("metric[%d].", i)
		if !isMetric.MatchString(m.Name) {
			c.say(at+"name", "%q: use 1 to 40 of a-z, 0-9 and _, starting with a letter", clip(m.Name))
		}
		if seen[m.Name] {
			c.say(at+"name", "%q is there twice", clip(m.Name))
		}
		seen[m.Name] = true
		c.text(at+"unit", m.Unit, 40, false)
		c.oneOf(at+"direction", m.Direction, Directions)
		c.oneOf(at+"source", m.Source, Sources)
		c.oneOf(at+"across", m.Across, Acrosses)
		c.oneOf(at+"noise", m.Noise, Noises)
		if m.Repeats < 1 || m.Repeats > maxRepeats {
			c.say(at+"repeats", "is %d, 1 to %d", m.Repeats, maxRepeats)
		}
		if !(m.Confidence > 0.5 && m.Confidence < 1) {
			c.say(at+"confidence", "is %v, more than 0.5 and less than 1", m.Confidence)
		}
		if e := m.MinEffect.Value; !(e >= 0) || math.IsInf(e, 0) || m.MinEffect.Relative && e >= 1 {
			c.say(at+"min_effect", "is %v, 0 or more, and less than 100%%", e)
		}
		if b := m.Bound; b != nil && (math.IsNaN(*b) || math.IsInf(*b, 0)) {
			c.say(at+"bound", "is no number")
		}
		if m.Primary {
			primary++
		}
	}
	if primary != 1 && len(all) > 0 {
		c.say("metric", "%d are primary, where one is", primary)
	}
}

func (c *checker) limits(l *Limits) {
	for _, s := range []struct {
		key string
		l   Limit
	}{{"setup", l.Setup}, {"build", l.Build}, {"cases", l.Cases}, {"run", l.Run}, {"check", l.Check}} {
		at := "limits." + s.key + "."
		if !(s.l.CPUs > 0 && s.l.CPUs <= maxCPUs) {
			c.say(at+"cpus", "is %v, more than 0 and at most %d", s.l.CPUs, maxCPUs)
		}
		if s.l.PIDs < 1 || s.l.PIDs > maxPIDs {
			c.say(at+"pids", "is %d, 1 to %d", s.l.PIDs, maxPIDs)
		}
	}
}

func (c *checker) worker(w *Worker, editable []string) {
	if w.Prompt != "" {
		c.err("worker.prompt", CheckPath(w.Prompt))
	}
	seen := map[string]bool{}
	for i, t := range w.Tunables {
		at := fmt.Sprintf("worker.tunable[%d].", i)
		c.name(at+"name", t.Name)
		if seen[t.Name] {
			c.say(at+"name", "%q is there twice", clip(t.Name))
		}
		seen[t.Name] = true
		if err := CheckPath(t.File); err != nil {
			c.err(at+"file", err)
		} else if !matchAny(editable, t.File) {
			c.say(at+"file", "%s is not editable", t.File)
		}
		c.text(at+"marker", t.Marker, 200, true)
		c.oneOf(at+"kind", t.Kind, TunableKinds)
		c.oneOf(at+"scale", t.Scale, Scales)
		if slices.Contains(TunableKinds, t.Kind) {
			c.err(at+"range", t.checkRange())
		}
	}
}

func (c *checker) fixtures(all []Fixture) {
	seen := map[string]bool{}
	for i, f := range all {
		at := fmt.Sprintf("fixture[%d].", i)
		c.name(at+"name", f.Name)
		if seen[f.Name] {
			c.say(at+"name", "%q is there twice", clip(f.Name))
		}
		seen[f.Name] = true
		c.text(at+"title", f.Title, maxTitle, false)
		c.err(at+"patch", CheckPath(f.Patch))
		c.oneOf(at+"expect", f.Expect, Expects)
		if f.Expect == ExpectRefused {
			c.oneOf(at+"by", f.By, Bys)
			c.oneOf(at+"seeds", f.Seeds, Seedses)
		} else if slices.Contains(Expects, f.Expect) && (f.By != "" || f.Seeds != "") {
			c.say(at+"by", "and seeds are of a fixture that is refused")
		}
	}
}
