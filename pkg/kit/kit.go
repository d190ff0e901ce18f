package kit

import (
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
)

// A Kit is what kit.toml states, with its defaults. A number that is 0 there
// is absent.
type Kit struct {
	About    About              `toml:"kit"`
	Requires map[string]Program `toml:"requires"`
	Project  Project            `toml:"project"`
	// Env is the environment of every step, by name; values may name folders
	// as commands do. The judge adds PATH and nothing else.
	Env      map[string]string `toml:"env"`
	Build    Build             `toml:"build"`
	Cases    Cases             `toml:"cases"`
	Run      Run               `toml:"run"`
	Check    Check             `toml:"check"`
	Metrics  []Metric          `toml:"metric"`
	Limits   Limits            `toml:"limits"`
	Worker   Worker            `toml:"worker"`
	Fixtures []Fixture         `toml:"fixture"`
}

// About says what the kit is.
type About struct {
	Name    string `toml:"name"`
	Version string `toml:"version"`
	Title   string `toml:"title"`
	Summary string `toml:"summary"`
}

// Program is a program that a rig needs for the kit.
type Program struct {
	// Version prints the program's version.
	Version []string `toml:"version"`
	// Least is the least version that will do.
	Least string `toml:"least"`
}

// Project says which tree the candidates change: a folder of the kit, or a
// commit of a git repository.
type Project struct {
	Path   string `toml:"path"`
	Git    string `toml:"git"`
	Commit string `toml:"commit"`
	// Editable are globs of what a candidate may change, add and remove.
	Editable []string `toml:"editable"`
	// Ignore are globs of what is left out of a lane's folder when it is
	// submitted: results of builds there.
	Ignore []string `toml:"ignore"`
	// Setup are commands that run in turn, once, on the base.
	Setup        [][]string `toml:"setup"`
	SetupTimeout Duration   `toml:"setup_timeout"`
}

// Build makes a candidate's tree ready to run.
type Build struct {
	Command []string `toml:"command"`
	Timeout Duration `toml:"timeout"`
	Network bool     `toml:"network"`
	// Cache says how a build has {cache}: as copies of what setup left there,
	// or as links to it, which is faster. What a build adds is its own, and it
	// can't change what a link leads to.
	Cache string `toml:"cache"`
	// Outputs are paths of {project} that the build must have made.
	Outputs []string `toml:"outputs"`
}

// Cases says what a candidate is run on.
type Cases struct {
	// Command makes one case from {seed}.
	Command []string `toml:"command"`
	Timeout Duration `toml:"timeout"`
	// Public are the seeds whose cases anyone may see.
	Public []uint64 `toml:"public"`
	// Secret is how many fresh seeds a judging draws; they are drawn outside
	// Public.
	Secret int `toml:"secret"`
	// Hidden are globs of a case's files that only judge roles may read.
	Hidden []string `toml:"hidden"`
}

// Run is a candidate's work on one case.
type Run struct {
	Command []string `toml:"command"`
	Timeout Duration `toml:"timeout"`
	// Reads are globs of the case's files that the run gets, and Writes of
	// the files it may leave in {out}; another file there ends the run as
	// failed.
	Reads  []string `toml:"reads"`
	Writes []string `toml:"writes"`
	// Model says that the run may reach the rig's model route, and nothing
	// else. It gets OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL.
	Model bool `toml:"model"`
}

// Check says whether a run's output is right, and what it is worth.
type Check struct {
	Command []string `toml:"command"`
	Timeout Duration `toml:"timeout"`
}

// Metric is one figure of a judging.
type Metric struct {
	Name      string `toml:"name"`
	Unit      string `toml:"unit"`
	Direction string `toml:"direction"`
	// Source is where the figure comes from: a value of the check, or what
	// the judge measured of the run: wall and cpu in seconds, rss in bytes.
	Source string `toml:"source"`
	// Across says how the cases' figures become one.
	Across string `toml:"across"`
	// Noise is measured when two runs of the same thing, or of two of the same
	// worth, differ: then champion and candidate are compared in pairs, each
	// of a run of both on one case.
	Noise string `toml:"noise"`
	// Repeats is how many such pairs there are at least. Where they are more
	// than a judging's secret cases, there are as many cases as pairs.
	Repeats int `toml:"repeats"`
	// MinEffect is how much better a champion must be.
	MinEffect  Effect  `toml:"min_effect"`
	Confidence float64 `toml:"confidence"`
	// Bound is a score past which one is suspect.
	Bound   *float64 `toml:"bound"`
	Primary bool     `toml:"primary"`
}

// The values of Build.Cache.
const (
	CacheCopies = "copies"
	CacheLinks  = "links"
)

// Caches are the values of Build's Cache.
var Caches = []string{CacheCopies, CacheLinks}

// The values of Metric's Direction, Source, Across and Noise.
var (
	Directions = []string{"min", "max"}
	Sources    = []string{"check", "wall", "cpu", "rss"}
	Acrosses   = []string{"mean", "sum", "min", "max"}
	Noises     = []string{"none", "measured"}
)

// Limits are what each step may use.
type Limits struct {
	Setup Limit `toml:"setup"`
	Build Limit `toml:"build"`
	Cases Limit `toml:"cases"`
	Run   Limit `toml:"run"`
	Check Limit `toml:"check"`
}

// Limit is what one step may use.
type Limit struct {
	Memory Size    `toml:"memory"`
	CPUs   float64 `toml:"cpus"`
	PIDs   int     `toml:"pids"`
	Disk   Size    `toml:"disk"`
}

// Worker is what the workers are told.
type Worker struct {
	// Prompt is a file of the kit that tells an agent the task.
	Prompt   string    `toml:"prompt"`
	Tunables []Tunable `toml:"tunable"`
}

// Tunable is one value in the project that a worker without a model may
// turn: the word after Marker, which is in File once.
type Tunable struct {
	Name   string `toml:"name"`
	File   string `toml:"file"`
	Marker string `toml:"marker"`
	Kind   string `toml:"kind"`
	// Range is the least and the most, or a choice's words.
	Range []any `toml:"range"`
	// Scale is linear or log: how the range is best searched.
	Scale string `toml:"scale"`
}

// The values of Tunable's Kind and Scale.
const (
	KindInt    = "int"
	KindFloat  = "float"
	KindChoice = "choice"
)

var (
	TunableKinds = []string{KindInt, KindFloat, KindChoice}
	Scales       = []string{"linear", "log"}
)

// Fixture is a candidate that ships with the kit, and what must become of it.
type Fixture struct {
	Name  string `toml:"name"`
	Title string `toml:"title"`
	// Patch is a file of the kit; an empty one is the base itself.
	Patch  string `toml:"patch"`
	Expect string `toml:"expect"`
	// By is what refuses a cheat.
	By string `toml:"by"`
	// Seeds says on which seeds it is refused; on the public ones it passes
	// when this is secret.
	Seeds string `toml:"seeds"`
}

// The values of Fixture's Expect, By and Seeds. Overlay is the rules of what
// a candidate may hold; launcher is the walls around a process, which a rig
// without role users lacks.
const (
	ExpectRefused     = "refused"
	ExpectPromoted    = "promoted"
	ExpectNotPromoted = "not_promoted"
	ByOverlay         = "overlay"
	ByBuild           = "build"
	ByRun             = "run"
	ByCheck           = "check"
	ByLauncher        = "launcher"
	SeedsPublic       = "public"
	SeedsSecret       = "secret"
)

var (
	Expects = []string{ExpectRefused, ExpectPromoted, ExpectNotPromoted}
	Bys     = []string{ByOverlay, ByBuild, ByRun, ByCheck, ByLauncher}
	Seedses = []string{SeedsPublic, SeedsSecret}
)

// PrimaryMetric is what a score is.
func (k Kit) PrimaryMetric() Metric {
	return k.Metrics[slices.IndexFunc(k.Metrics, func(m Metric) bool { return m.Primary })]
}

// Duration is a time such as 5m.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	t, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no time such as 90s or 5m", clip(string(b)))
	}
	if t <= 0 {
		return fmt.Errorf("%q is no time that ends anything", clip(string(b)))
	}
	*d = Duration(t)
	return nil
}

// Size is a number of bytes such as 512MiB.
type Size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(b []byte) error {
	n, err := humanize.ParseBytes(string(b))
	if err != nil || n == 0 || n > 1<<50 {
		return fmt.Errorf("%q is no size such as 512MiB", clip(string(b)))
	}
	*s = Size(n)
	return nil
}

// Effect is a difference: of the metric's unit, or, relative, a fraction of
// the champion's score.
type Effect struct {
	Value    float64
	Relative bool
}

// UnmarshalTOML takes a number, or a string such as 2%.
func (e *Effect) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case float64:
		e.Value = v
	case int64:
		e.Value = float64(v)
	case string:
		var percent float64
		var end string
		if n, _ := fmt.Sscanf(v, "%g%s", &percent, &end); n != 2 || end != "%" {
			return fmt.Errorf("%q is no difference such as 0.01 or 2%%", clip(v))
		}
		*e = Effect{Value: percent / 100, Relative: true}
	default:
		return fmt.Errorf("%v is no difference such as 0.01 or 2%%", v)
	}
	return nil
}

// clip keeps what a stranger wrote short enough for a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
