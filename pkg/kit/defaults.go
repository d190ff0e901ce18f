package kit

import "time"

// Defaults of what a kit may leave out.
const (
	defaultSetupTimeout = Duration(10 * time.Minute)
	defaultBuildTimeout = Duration(5 * time.Minute)
	defaultStepTimeout  = Duration(time.Minute)
	defaultSecret       = 5
	defaultConfidence   = 0.99
	defaultRepeats      = 5
)

// Limits of a step that compiles, and of one that does not.
var (
	defaultBuildLimit = Limit{Memory: 4 << 30, CPUs: 2, PIDs: 512, Disk: 2 << 30}
	defaultStepLimit  = Limit{Memory: 1 << 30, CPUs: 1, PIDs: 64, Disk: 256 << 20}
)

func setDefault[T comparable](at *T, to T) {
	var zero T
	if *at == zero {
		*at = to
	}
}

func (l *Limit) setDefaults(to Limit) {
	setDefault(&l.Memory, to.Memory)
	setDefault(&l.CPUs, to.CPUs)
	setDefault(&l.PIDs, to.PIDs)
	setDefault(&l.Disk, to.Disk)
}

func (k *Kit) setDefaults() {
	setDefault(&k.Project.SetupTimeout, defaultSetupTimeout)
	setDefault(&k.Build.Timeout, defaultBuildTimeout)
	setDefault(&k.Build.Cache, CacheCopies)
	setDefault(&k.Cases.Timeout, defaultStepTimeout)
	setDefault(&k.Cases.Secret, defaultSecret)
	setDefault(&k.Run.Timeout, defaultStepTimeout)
	setDefault(&k.Check.Timeout, defaultStepTimeout)
	if k.Run.Reads == nil {
		k.Run.Reads = []string{"**"}
	}
	if k.Run.Writes == nil {
		k.Run.Writes = []string{"**"}
	}
	k.Limits.Setup.setDefaults(defaultBuildLimit)
	k.Limits.Build.setDefaults(defaultBuildLimit)
	k.Limits.Cases.setDefaults(defaultStepLimit)
	k.Limits.Run.setDefaults(defaultStepLimit)
	k.Limits.Check.setDefaults(defaultStepLimit)
	for i := range k.Metrics {
		k.Metrics[i].setDefaults(len(k.Metrics) == 1)
	}
	for i := range k.Worker.Tunables {
		setDefault(&k.Worker.Tunables[i].Scale, Scales[0])
	}
	for i := range k.Fixtures {
		if f := &k.Fixtures[i]; f.Expect == ExpectRefused {
			setDefault(&f.Seeds, SeedsPublic)
		}
	}
}

func (m *Metric) setDefaults(alone bool) {
	setDefault(&m.Source, "check")
	setDefault(&m.Across, "mean")
	setDefault(&m.Confidence, defaultConfidence)
	if alone {
		m.Primary = true
	}
	// What is measured of a process is never twice the same.
	noise, repeats := "none", 1
	if m.Source != "check" {
		noise = "measured"
	}
	setDefault(&m.Noise, noise)
	if m.Noise == "measured" {
		repeats = defaultRepeats
	}
	setDefault(&m.Repeats, repeats)
}
