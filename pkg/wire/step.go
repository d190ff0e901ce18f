package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The step's channel: the harness has the broker start `thermite-worker step`
// as a role's user, to do with files what only that user may: the judge's
// folders and the lanes are their roles' own, and the harness is neither root
// nor them. The job is what the process reads, as JSON; the result is what it
// writes to descriptor 3.

// StepJob is done in its order, up to the first operation that fails.
type StepJob struct {
	Ops []StepOp `json:"ops"`
}

// StepOp is one operation: exactly one field besides GoOn is set. Paths are
// absolute.
type StepOp struct {
	// GoOn: the job goes on when this operation fails.
	GoOn bool `json:"go_on,omitzero"`
	// Empty removes what is in a folder, if it is there, and leaves the folder.
	Empty string `json:"empty,omitzero"`
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
	// List gives what is in a folder and those below it, but for the folders
	// themselves and a git folder at its root.
	List string `json:"list,omitzero"`
	// Write writes a file, whole or not at all, in folders that it makes.
	Write *StepWrite `json:"write,omitzero"`
	// Read writes a file's bytes to standard output.
	Read *StepRead `json:"read,omitzero"`
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

// StepCopy copies the plain files below From to the folder To, which is made:
// those that match a glob of Only, if it has any, and none of Without. Others
// are passed over or, if it is Strict, refused. Mode is To's; folders below it have 0755, files 0644, or
// 0755 if they may be executed.
type StepCopy struct {
	From    string   `json:"from"`
	To      string   `json:"to"`
	Mode    uint32   `json:"mode"`
	Only    []string `json:"only,omitzero"`
	Without []string `json:"without,omitzero"`
	Strict  bool     `json:"strict,omitzero"`
	// Most is how many bytes the files may have together, if it is set: more
	// is refused.
	Most int64 `json:"most,omitzero"`
	// Link has To's files be links to From's instead.
	Link bool `json:"link,omitzero"`
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
	// Need are paths that must be there after a command that ended well.
	Need []string `json:"need,omitzero"`
}

// StepPack packs a folder, without what matches a glob of Without. A hard
// link is refused, as it is in a candidate.
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

// StepRead reads a plain file of a folder by its path there, through no link.
type StepRead struct {
	Folder string `json:"folder"`
	Path   string `json:"path"`
}

// StepResult has an entry for each operation that was begun.
type StepResult struct {
	Ops []StepDone `json:"ops"`
}

// StepDone is the result of an operation.
type StepDone struct {
	// Error is why it failed; empty for one that did not.
	Error string `json:"error,omitzero"`
	// Refused: it failed for what a folder or an archive holds, which is whose
	// it is to answer for, and not for anything of this machine.
	Refused bool `json:"refused,omitzero"`
	// Absent: it failed because what it is about is not there.
	Absent bool `json:"absent,omitzero"`
	// Missing are the paths of Need that are not there.
	Missing []string `json:"missing,omitzero"`
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

// OK says whether the command ended well.
func (r StepRan) OK() bool { return r.Code == 0 && !r.TimedOut && !r.TooLong }

// StepEntry is one entry of a folder.
type StepEntry struct {
	// Path is relative to the folder, with slashes.
	Path string `json:"path"`
	// Mode is the file's mode and type as Go's fs.FileMode has it.
	Mode uint32 `json:"mode"`
	Size int64  `json:"size"`
}

// EncodeStepJob gives j as JSON, after its check.
func EncodeStepJob(j StepJob) ([]byte, error) {
	if err := j.Check(); err != nil {
		return nil, fmt.Errorf("encoding a step's job: %w", err)
	}
	b, err := Canonical(j)
	if err != nil {
		return nil, fmt.Errorf("encoding a step's job: %w", err)
	}
	return b, nil
}

// DecodeStepJob reads a job strictly and checks it.
func DecodeStepJob(b []byte) (StepJob, error) {
	var j StepJob
	if err := DecodeStrict(b, &j); err != nil {
		return j, fmt.Errorf("reading a step's job: %w", err)
	}
	if err := j.Check(); err != nil {
		return j, fmt.Errorf("reading a step's job: %w", err)
	}
	return j, nil
}

// EncodeStepResult gives r as JSON. What a command printed need not be text:
// what of it is none is replaced.
func EncodeStepResult(r StepResult) ([]byte, error) {
	b, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encoding a step's result: %w", err)
	}
	return b, nil
}

// DecodeStepResult reads a result.
func DecodeStepResult(b []byte) (StepResult, error) {
	var r StepResult
	if err := DecodeStrict(b, &r); err != nil {
		return r, fmt.Errorf("reading a step's result: %w", err)
	}
	return r, nil
}

// Bounds of a job.
const (
	maxStepOps  = 10_000
	maxStepKeep = 1 << 20
)

// Check says what is wrong with the job, by its operation.
func (j StepJob) Check() error {
	if len(j.Ops) == 0 || len(j.Ops) > maxStepOps {
		return fmt.Errorf("ops has %d entries, where it may have 1 to %d", len(j.Ops), maxStepOps)
	}
	for i, op := range j.Ops {
		if err := op.check(); err != nil {
			return fmt.Errorf("ops[%d]: %w", i, err)
		}
	}
	return nil
}

func (op StepOp) check() error {
	set := 0
	for _, is := range []bool{op.Empty != "", op.Remove != "", op.Make != nil, op.Unpack != nil, op.Copy != nil, op.Run != nil, op.Pack != nil, op.List != "", op.Write != nil, op.Read != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("one of empty, remove, make, unpack, copy, run, pack, list, write, read is given; this has %d of them", set)
	}
	switch {
	case op.Empty != "":
		return checkDeep("empty", op.Empty)
	case op.Remove != "":
		return checkDeep("remove", op.Remove)
	case op.Make != nil:
		return errors.Join(checkDeep("make.folder", op.Make.Folder), checkMode("make.mode", op.Make.Mode))
	case op.Unpack != nil:
		return errors.Join(checkPath("unpack.archive", op.Unpack.Archive), checkDeep("unpack.folder", op.Unpack.Folder), checkMode("unpack.mode", op.Unpack.Mode))
	case op.Copy != nil:
		return op.Copy.check()
	case op.Run != nil:
		return op.Run.check()
	case op.Pack != nil:
		return checkDeep("pack.folder", op.Pack.Folder)
	case op.List != "":
		return checkDeep("list", op.List)
	case op.Read != nil:
		return errors.Join(checkDeep("read.folder", op.Read.Folder), checkPath("read.path", path.Join("/", op.Read.Path)))
	}
	return errors.Join(checkDeep("write.path", op.Write.Path), checkMode("write.mode", op.Write.Mode))
}

func (c StepCopy) check() error {
	err := errors.Join(checkDeep("copy.from", c.From), checkDeep("copy.to", c.To), checkMode("copy.mode", c.Mode))
	if c.Most < 0 || c.Most > MaxInteger {
		err = errors.Join(err, fmt.Errorf("copy.most %d: 0 or more", c.Most))
	}
	return err
}

func (r StepRun) check() error {
	var errs []error
	if len(r.Argv) == 0 || len(r.Argv) > maxArgs || r.Argv[0] == "" {
		errs = append(errs, fmt.Errorf("run.argv has %d parts, where it may have 1 to %d", len(r.Argv), maxArgs))
	}
	if r.Dir != "" {
		errs = append(errs, checkPath("run.dir", r.Dir))
	}
	if r.Timeout <= 0 || r.Timeout > maxDeadline {
		errs = append(errs, fmt.Errorf("run.timeout %v: more than 0, at most %v", r.Timeout, maxDeadline))
	}
	if r.Keep < 0 || r.Keep > maxStepKeep {
		errs = append(errs, fmt.Errorf("run.keep %d: 0 to %d", r.Keep, maxStepKeep))
	}
	for _, p := range r.Need {
		errs = append(errs, checkPath("run.need", p))
	}
	return errors.Join(errs...)
}

// checkDeep refuses / besides what is no path.
func checkDeep(field, p string) error {
	if p == "/" {
		return fmt.Errorf("%s: / is everything", field)
	}
	return checkPath(field, p)
}

func checkMode(field string, mode uint32) error {
	if mode == 0 || fs.FileMode(mode)&^fs.ModePerm != 0 {
		return fmt.Errorf("%s %#o: plain permissions, such as 0700", field, mode)
	}
	return nil
}
