package kit

import (
	"bytes"
	"fmt"
)

// MaxCandidateBytes bounds what a candidate changes and adds.
const MaxCandidateBytes = 8 << 20

// A Change is one file that a candidate has otherwise than the base.
type Change struct {
	Path string
	// Op is added, changed or removed.
	Op string
}

// The values of Change.Op.
const (
	OpAdded   = "added"
	OpChanged = "changed"
	OpRemoved = "removed"
)

// Overlay lays what a candidate changes over the base: its editable files,
// and nothing else. A candidate that holds a link, a device or a special
// mode, a path that is none or only looks like another, too much, or any
// change outside what is editable is refused, with which path and why.
//
// The result has the base's modes: what may be executed is not a
// candidate's to say.
func Overlay(p Project, base, candidate Tree) (Tree, []Change, error) {
	candidate = candidate.Without(p.Ignore)
	candidate.sort()
	faults := candidate.faults()
	var changes []Change
	var result Tree
	size := 0
	change := func(path, op, words string) {
		if !matchAny(p.Editable, path) {
			faults = append(faults, Fault{clip(path), words + ", and is not editable"})
		}
		changes = append(changes, Change{path, op})
	}
	for _, f := range candidate {
		was, ok := base.File(f.Path)
		switch {
		case !ok:
			change(f.Path, OpAdded, "is added")
			was.Mode = modePlain
		case !bytes.Equal(was.Data, f.Data):
			change(f.Path, OpChanged, "is changed")
		case was.Mode.Perm() != f.Mode.Perm() && !matchAny(p.Editable, f.Path):
			faults = append(faults, Fault{clip(f.Path), "has another mode, and is not editable"})
		}
		if !ok || !bytes.Equal(was.Data, f.Data) {
			size += len(f.Data)
		}
		result = append(result, File{f.Path, was.Mode, f.Data})
	}
	for _, f := range base.Without(p.Ignore) {
		if _, ok := candidate.File(f.Path); !ok {
			change(f.Path, OpRemoved, "is removed")
		}
	}
	for _, f := range base {
		if matchAny(p.Ignore, f.Path) {
			result = append(result, f)
		}
	}
	if size > MaxCandidateBytes {
		faults = append(faults, Fault{Why: fmt.Sprintf("it changes %d bytes, at most %d", size, MaxCandidateBytes)})
	}
	if err := refuse("the candidate", faults); err != nil {
		return nil, nil, err
	}
	result.sort()
	return result, changes, nil
}
