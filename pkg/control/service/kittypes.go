package service

// KitSummary is a kit in the list of those that ship.
type KitSummary struct {
	Name         string    `json:"name" doc:"The kit's name" example:"circle-packing-26"`
	Version      string    `json:"version" doc:"Its version" example:"1"`
	Title        string    `json:"title" doc:"What it asks for, in a line"`
	Summary      string    `json:"summary" doc:"The same at length"`
	Metric       KitMetric `json:"metric" doc:"What a score is"`
	FixtureCount int       `json:"fixture_count" doc:"How many candidates ship with it: planted cheats, an honest win, an identical one"`
	TunableCount int       `json:"tunable_count" doc:"How many values the worker tune may turn"`
	Model        bool      `json:"model" doc:"Whether its candidates call a model, which the rig must then have a route to"`
}

// KitList is the kits that ship.
type KitList struct {
	Kits []KitSummary `json:"kits" nullable:"false" doc:"The kits, by name"`
}

// KitMetric is one figure that a kit measures.
type KitMetric struct {
	Name       string   `json:"name" doc:"What is measured" example:"sum"`
	Unit       string   `json:"unit,omitzero" doc:"Its unit" example:"of radii"`
	Direction  string   `json:"direction" enum:"min,max" doc:"Which scores are better"`
	Source     string   `json:"source" doc:"Where it comes from: check, or what the judge measures of a run: wall, cpu, rss"`
	Primary    bool     `json:"primary" doc:"Whether it is the score"`
	Noise      string   `json:"noise" enum:"none,measured" doc:"measured: champion and candidate are compared in pairs"`
	Repeats    int      `json:"repeats,omitzero" doc:"The least pairs of runs that a promotion is decided by"`
	MinEffect  float64  `json:"min_effect" doc:"How much better a champion must be: in the metric's unit, or with relative as a fraction"`
	Relative   bool     `json:"relative" doc:"Whether min_effect is a fraction of the champion's score"`
	Confidence float64  `json:"confidence,omitzero" doc:"The confidence of the interval that must clear min_effect" example:"0.99"`
	Bound      *float64 `json:"bound,omitzero" doc:"A score past this is suspect, and waits for the owner"`
}

// KitTunable is a value that the worker tune may turn.
type KitTunable struct {
	Name  string   `json:"name" doc:"Its name" example:"restarts"`
	File  string   `json:"file" doc:"The project's file that has it" example:"optimise/optimise.go"`
	Kind  string   `json:"kind" enum:"int,float,choice" doc:"What its values are"`
	Range []string `json:"range" nullable:"false" doc:"The least and the most, or the words to choose from"`
	Scale string   `json:"scale" enum:"linear,log" doc:"How its range is searched"`
	Base  string   `json:"base,omitzero" doc:"Its value in the kit's base"`
}

// KitFixture is a candidate that ships with a kit, and what must become of it.
type KitFixture struct {
	Name   string `json:"name" doc:"Its name" example:"public-answer"`
	Title  string `json:"title" doc:"What it does"`
	Expect string `json:"expect" enum:"refused,promoted,not_promoted" doc:"What must become of it"`
	By     string `json:"by,omitzero" doc:"What refuses it: overlay, build, run, check, or launcher for the walls around a process"`
	Seeds  string `json:"seeds,omitzero" doc:"On which cases it is refused: public or secret"`
}

// KitStep is a step of a kit, with what it may use.
type KitStep struct {
	Name        string   `json:"name" doc:"setup, build, cases, run or check"`
	Commands    []string `json:"commands" nullable:"false" doc:"What it runs"`
	TimeoutMS   int64    `json:"timeout_ms" doc:"How long it may take"`
	MemoryBytes int64    `json:"memory_bytes" doc:"How much memory it may use"`
	CPUs        float64  `json:"cpus" doc:"How many processors"`
	PIDs        int      `json:"pids" doc:"How many processes"`
	DiskBytes   int64    `json:"disk_bytes" doc:"How much it may write"`
}

// KitProgram is a program that a kit needs on the rig.
type KitProgram struct {
	Name  string `json:"name" doc:"The program" example:"go"`
	Least string `json:"least,omitzero" doc:"The least version that will do" example:"1.22"`
}

// KitView is all that control shows of a kit.
type KitView struct {
	KitSummary
	Statement   string       `json:"statement,omitzero" doc:"The task as an agent is told it, in Markdown"`
	Editable    []string     `json:"editable" nullable:"false" doc:"What of the project a candidate may change, as globs"`
	Requires    []KitProgram `json:"requires" nullable:"false" doc:"The programs that a rig needs for it"`
	PublicSeeds []uint64     `json:"public_seeds" nullable:"false" doc:"The seeds of the cases that anyone may see"`
	SecretCases int          `json:"secret_cases" doc:"How many fresh secret cases a judging draws"`
	Steps       []KitStep    `json:"steps" nullable:"false" doc:"Its steps, in their order"`
	Metrics     []KitMetric  `json:"metrics" nullable:"false" doc:"All that it measures"`
	Tunables    []KitTunable `json:"tunables" nullable:"false" doc:"What the worker tune may turn"`
	Fixtures    []KitFixture `json:"fixtures" nullable:"false" doc:"The candidates that ship with it, and what must become of each"`
}
