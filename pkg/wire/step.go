package wire

import "time"

// The step's channel: the harness has the broker start `thermite-worker step`
// as a role's user, to do with files what only that user may: the judge's
// folders and the lanes are their roles' own, and the harness is neither root
// nor them. The job is what the process reads, as JSON; the result is what it
// writes to descriptor 3.

// StepJob is done in its order, up to the first operation that fails.
type StepJob struct {
	Ops []StepOp `json:"ops"`
}

// StepOp is one operation: exactly one field is set. Paths are absolute.
type StepOp struct {
	// Remove removes a folder or file with all it holds, if it is there.
	Remove string `json:"remove,omitzero"`
	// Make makes a folder and those above it that lack.
	Make *StepMake `json:"make,omitzero"`
	// Unpack writes an archive's tree into a folder that it makes.
	Unpack *StepUnpack `json:"unpack,omitzero"`
	// Copy copies a folder's plain files.
	Copy *StepCopy `json:"copy,omitzero"`
	// Run runs a command.
	Run *StepRun `json:"run,omitzero"`
	// Pack writes a folder's tree as an archive to standard output.
	Pack *StepPack `json:"pack,omitzero"`
	// List gives a folder's entries.
	List string `json:"list,omitzero"`
	// Write writes a file, in folders that it makes.
	Write *StepWrite `json:"write,omitzero"`
}

// StepMake makes a folder with this mode, such as 0o700.
type StepMake struct {
	Folder string `json:"folder"`
	Mode   uint32 `json:"mode"`
}

// StepUnpack writes the tree of an archive that pkg/kit made.
type StepUnpack struct {
	Archive string `json:"archive"`
	Folder  string `json:"folder"`
	Mode    uint32 `json:"mode"`
}

// StepCopy copies the plain files below From to To: those that match a glob
// of Only, if it has any, and none of Without.
type StepCopy struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Mode    uint32   `json:"mode"`
	Only    []string `json:"only,omitzero"`
	Without []string `json:"without,omitzero"`
}

// StepRun runs a command and ends all it started.
type StepRun struct {
	Argv    []string          `json:"argv"`
	Env     map[string]string `json:"env,omitzero"`
	Dir     string            `json:"dir,omitzero"`
	Timeout time.Duration     `json:"timeout,format:sec"`
	// Keep is how many bytes of each of its outputs the result has: of its
	// standard output the first, with an error if there are more, and of its
	// standard error the last.
	Keep int `json:"keep,omitzero"`
	// Need are paths that must be there afterwards.
	Need []string `json:"need,omitzero"`
	// Go on: a command that fails does not end the job.
	GoOn bool `json:"go_on,omitzero"`
}

// StepPack packs a folder, without what matches a glob of Without.
type StepPack struct {
	Folder  string   `json:"folder"`
	Without []string `json:"without,omitzero"`
}

// StepWrite writes a file.
type StepWrite struct {
	Path string `json:"path"`
	Data []byte `json:"data"`
	Mode uint32 `json:"mode"`
}

// StepResult has an entry for each operation that was begun.
type StepResult struct {
	Ops []StepDone `json:"ops"`
}

// StepDone is the result of an operation.
type StepDone struct {
	// Error is why it failed; empty for one that did not.
	Error string `json:"error,omitzero"`
	// Run is set for a command that was started.
	Run *StepRan `json:"run,omitzero"`
	// List is set for a list, sorted by path.
	List []StepEntry `json:"list,omitzero"`
}

// StepRan is how a command ended.
type StepRan struct {
	// Code is its exit code, or -1 with the Signal that ended it.
	Code     int           `json:"code"`
	Signal   string        `json:"signal,omitzero"`
	TimedOut bool          `json:"timed_out,omitzero"`
	Wall     time.Duration `json:"wall,format:sec"`
	Stdout   string        `json:"stdout,omitzero"`
	Stderr   string        `json:"stderr,omitzero"`
	// TooLong: its standard output has more than was to be kept.
	TooLong bool `json:"too_long,omitzero"`
}

// StepEntry is one entry of a folder.
type StepEntry struct {
	// Path is relative to the folder, with slashes.
	Path string `json:"path"`
	// Mode is the file's mode and type as Go's fs.FileMode has it.
	Mode uint32 `json:"mode"`
	Size int64  `json:"size"`
}
