package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Repository is a bare git repository of ours, with one branch, main. What
// is in it can be made again: git does not wait for the disk.
type Repository struct{ Dir string }

// A Commit is one that a repository gets.
type Commit struct {
	Tree    Tree
	Message string
	Time    time.Time
}

func (r Repository) git() git { return git{dir: r.Dir} }

// Count is how many commits main has; none where there is no repository.
func (r Repository) Count(ctx context.Context) (int, error) {
	if _, err := os.Stat(filepath.Join(r.Dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	// A main without commits is no revision, and an --all of no refs is none.
	out, err := r.git().run(ctx, nil, "rev-list", "--count", "--all")
	if err != nil {
		return 0, err
	}
	n := 0
	if _, err := fmt.Sscan(string(out), &n); err != nil {
		return 0, fmt.Errorf("counting commits: git says %q", clip(string(out)))
	}
	return n, nil
}

// Append puts commits onto main, in their order. The same commits on the same
// ones get the same ids.
func (r Repository) Append(ctx context.Context, commits ...Commit) error {
	before, err := r.Count(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	if _, err := r.git().run(ctx, nil, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1", "."); err != nil {
		return err
	}
	var in bytes.Buffer
	for i, c := range commits {
		if err := refuse("the tree", c.Tree.faults()); err != nil {
			return err
		}
		message := strings.ReplaceAll(c.Message, "\x00", "")
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Thermite <thermite@thermite.invalid> %d +0000\ndata %d\n%s\n", c.Time.Unix(), len(message), message)
		if i == 0 && before > 0 {
			in.WriteString("from refs/heads/main^0\n")
		}
		importTree(&in, c.Tree)
	}
	in.WriteString("done\n")
	_, err = r.git().run(ctx, in.Bytes(), "-c", "fastimport.unpackLimit=100", "fast-import", "--quiet", "--done")
	return err
}

// Bundle gives main with all its commits as a file that git clones from.
func (r Repository) Bundle(ctx context.Context) ([]byte, error) {
	return r.git().run(ctx, nil, "bundle", "create", "--quiet", "-", "refs/heads/main", "HEAD")
}
