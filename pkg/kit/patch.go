package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MaxPatchBytes bounds a patch.
const MaxPatchBytes = 16 << 20

// Candidate reads a lane's folder and lays it over the base.
func Candidate(p Project, base Tree, dir string) (Tree, []Change, error) {
	tree, err := readDir(dir, false, p.Ignore)
	if err != nil {
		return nil, nil, err
	}
	return Overlay(p, base, tree)
}

// MakePatch gives the patch that makes base into tree; it is empty where
// they are the same. The same trees give the same patch.
func MakePatch(ctx context.Context, base, tree Tree) (patch []byte, err error) {
	if err := refuse("the tree", append(base.faults(), tree.faults()...)); err != nil {
		return nil, err
	}
	err = withGit("", func(g git) error {
		ids, err := g.commits(ctx, "a patch", base, tree)
		if err != nil {
			return err
		}
		patch, err = g.run(ctx, nil, "diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-color",
			"--no-ext-diff", "--no-textconv", "--diff-algorithm=histogram", "-U3", "--src-prefix=a/", "--dst-prefix=b/", ids[0], ids[1])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making a patch: %w", err)
	}
	return patch, nil
}

// ApplyPatch lays a patch over the base, by the rules of Overlay. A patch
// that git can't apply is refused too.
func ApplyPatch(ctx context.Context, p Project, base Tree, patch []byte) (Tree, []Change, error) {
	if err := refuse("the patch", patchFaults(patch)); err != nil {
		return nil, nil, err
	}
	if len(bytes.TrimSpace(patch)) == 0 {
		return Overlay(p, base, base)
	}
	var tree Tree
	err := inFolder(base, func(g git) (err error) {
		if err = g.named(ctx, p, patch); err != nil {
			return err
		}
		if _, err = g.run(ctx, patch, "apply", "--whitespace=nowarn", "-"); err != nil {
			if ctx.Err() != nil {
				return err
			}
			return refuse("the patch", []Fault{{Why: err.Error()}})
		}
		tree, err = ReadDir(g.dir)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("applying a patch: %w", err)
	}
	return Overlay(p, base, tree)
}

// inFolder gives do a folder with the tree in it, which goes again.
func inFolder(tree Tree, do func(git) error) error {
	return withGit("", func(g git) error {
		g.dir = filepath.Join(g.dir, "tree")
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			return err
		}
		if err := tree.Write(g.dir); err != nil {
			return err
		}
		return do(g)
	})
}

// named refuses a patch by the paths that git reads in it, before any of it
// is written.
func (g git) named(ctx context.Context, p Project, patch []byte) error {
	out, err := g.run(ctx, patch, "apply", "--numstat", "-z", "-")
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return refuse("the patch", []Fault{{Why: err.Error()}})
	}
	var faults []Fault
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if len(faults) > maxFaults {
			break
		}
		parts := strings.SplitN(entry, "\t", 3)
		path := parts[len(parts)-1]
		if err := CheckPath(path); err != nil {
			faults = append(faults, Fault{Why: err.Error()})
		} else if !matchAny(p.Editable, path) {
			faults = append(faults, Fault{path, "is not editable"})
		}
	}
	return refuse("the patch", faults)
}

// patchFaults says what a patch's own words rule out: modes that are no
// plain file's, and binary parts that say they unpack to too much.
func patchFaults(patch []byte) []Fault {
	if len(patch) > MaxPatchBytes {
		return []Fault{{Why: fmt.Sprintf("it has %d bytes, at most %d", len(patch), MaxPatchBytes)}}
	}
	var faults []Fault
	file, unpacked := "", int64(0)
	for line := range strings.Lines(string(patch)) {
		line = strings.TrimRight(line, "\r\n")
		if name, ok := strings.CutPrefix(line, "diff --git "); ok {
			file = clip(name)
			continue
		}
		for _, head := range []string{"new file mode ", "new mode ", "old mode ", "deleted file mode "} {
			if mode, ok := strings.CutPrefix(line, head); ok {
				if _, why := gitMode(mode); why != "" {
					faults = append(faults, Fault{file, why})
				}
			}
		}
		for _, head := range []string{"literal ", "delta "} {
			if size, ok := strings.CutPrefix(line, head); ok {
				n, err := strconv.ParseInt(size, 10, 64)
				if unpacked += n; err != nil || n < 0 || n > MaxFileBytes || unpacked > 2*MaxTreeBytes {
					faults = append(faults, Fault{file, fmt.Sprintf("unpacks to %s bytes, at most %d", clip(size), MaxFileBytes)})
				}
			}
		}
	}
	return faults
}

// IsRefused says whether the error is a refusal, which the candidate earned,
// and not a failure of this machine.
func IsRefused(err error) bool {
	var r *Refused
	return errors.As(err, &r)
}

// Stats is how large a patch is: files, and lines added and removed.
type Stats struct{ Files, Added, Removed uint64 }

// PatchStats counts a patch that MakePatch made. A file that is no text has
// no lines.
func PatchStats(patch []byte) Stats {
	var s Stats
	before, after := 0, 0 // lines that the hunk at hand still has
	for line := range bytes.Lines(patch) {
		switch {
		case before > 0 || after > 0:
			switch line[0] {
			case '+':
				s.Added++
				after--
			case '-':
				s.Removed++
				before--
			case ' ':
				before--
				after--
			}
		case bytes.HasPrefix(line, []byte("diff --git ")):
			s.Files++
		case bytes.HasPrefix(line, []byte("@@ -")):
			before, after = hunk(string(line))
		}
	}
	return s
}

// hunk reads how many lines a hunk has of the file before and after it.
func hunk(line string) (before, after int) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return 0, 0
	}
	lines := func(s string) int {
		_, n, ok := strings.Cut(s, ",")
		if !ok {
			return 1
		}
		count, _ := strconv.Atoi(n)
		return count
	}
	return lines(f[1]), lines(f[2])
}
