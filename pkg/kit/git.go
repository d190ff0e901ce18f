package kit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// git runs the git program in a folder, with nothing of the machine's
// settings, no hooks, no prompts, and no protocol but those named.
type git struct {
	dir       string
	protocols string // as GIT_ALLOW_PROTOCOL has them; empty allows none
	access    *Access
}

// gitSettings are what every call sets: what a repository's own settings or
// contents could make git run or follow is off.
var gitSettings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
	"core.symlinks=false", "core.autocrlf=false", "core.safecrlf=false", "core.protectHFS=true", "core.protectNTFS=true",
	"submodule.recurse=false", "fetch.recurseSubmodules=false", "fetch.fsckObjects=true", "transfer.fsckObjects=true",
	"gc.auto=0", "maintenance.auto=false", "protocol.ext.allow=never", "credential.helper=", "init.defaultBranch=main",
	"safe.directory=*", "apply.whitespace=nowarn", "diff.external=", "commit.gpgSign=false",
	// What git writes here can be made again.
	"core.fsync=none", "fastimport.unpackLimit=1",
}

// networkEnv is how the machine says to reach a network, which a fetch keeps.
var networkEnv = []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"}

func (g git) command(ctx context.Context, args ...string) *exec.Cmd {
	var all []string
	for _, s := range gitSettings {
		all = append(all, "-c", s)
	}
	if g.protocols != "" {
		all = append(all, g.access.settings()...)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir = g.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_SSH_COMMAND=ssh -oBatchMode=yes",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0", "GIT_LFS_SKIP_SMUDGE=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.dir),
		"GIT_ALLOW_PROTOCOL=" + g.protocols,
	}
	if g.protocols != "" {
		for _, name := range networkEnv {
			if v, ok := os.LookupEnv(name); ok {
				cmd.Env = append(cmd.Env, name+"="+v)
			}
		}
		cmd.Env = append(cmd.Env, g.access.env()...)
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (g git) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := g.command(ctx, args...)
	bounded := make(chan struct{})
	cmd.Stdin = &gated{bounded, bytes.NewReader(stdin)}
	var out bytes.Buffer
	var words tail
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Start()
	if err == nil {
		bound(cmd.Process.Pid)
		close(bounded)
		err = cmd.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("running git %s: %w%s", args[0], err, g.access.hide(words.said()))
	}
	return out.Bytes(), nil
}

// gated reads nothing before its gate is open.
type gated struct {
	gate <-chan struct{}
	io.Reader
}

func (g *gated) Read(p []byte) (int, error) {
	<-g.gate
	return g.Reader.Read(p)
}

// maxGitMemory bounds git's memory: a small patch can say that it unpacks to
// any size.
const maxGitMemory = 2 << 30

// bound sets what the process may use. Where the kernel has no such limits
// there is nothing to set.
func bound(pid int) {
	for _, l := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_AS, maxGitMemory}, {unix.RLIMIT_FSIZE, maxFetch}, {unix.RLIMIT_CORE, 0}} {
		_ = unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}, nil)
	}
}

// tail keeps the beginning of what git says of an error.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2000
	if room := most - len(t.b); room > 0 {
		t.b = append(t.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (t *tail) said() string {
	if s := strings.TrimSpace(string(t.b)); s != "" {
		return ": " + strings.ReplaceAll(s, "\n", "; ")
	}
	return ""
}

// maxFetch bounds what a fetch may bring onto the disk.
const maxFetch = 4 * MaxTreeBytes

// fetch brings one commit of a repository into the bare one at g.dir.
func (g git) fetch(ctx context.Context, url, commit string) error {
	if _, err := g.run(ctx, nil, "init", "--quiet", "--bare", "--template=", "--object-format="+format(commit), "."); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go g.watch(ctx, cancel)
	if _, err := g.run(ctx, nil, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--end-of-options", url, commit); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}

func format(commit string) string {
	if len(commit) == 64 {
		return "sha256"
	}
	return "sha1"
}

// watch ends a fetch that brings too much.
func (g git) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if dirBytes(g.dir) > maxFetch {
				cancel(fmt.Errorf("fetching from git: the commit brings more than %d bytes", maxFetch))
				return
			}
		}
	}
}

// dirBytes is what the folder's files have, as far as it can be read.
func dirBytes(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// tree reads a commit's tree out of the repository, without a work tree, so
// that nothing in it is obeyed: no attributes, filters, links or submodules.
func (g git) tree(ctx context.Context, commit string) (Tree, error) {
	full, err := g.run(ctx, nil, "rev-parse", "--verify", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return nil, err
	}
	if got := strings.TrimSpace(string(full)); got != commit {
		return nil, fmt.Errorf("commit %s is %s", commit, clip(got))
	}
	list, err := g.run(ctx, nil, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	tree, ids, err := parseList(list)
	if err != nil {
		return nil, err
	}
	return tree, g.blobs(ctx, tree, ids)
}

// parseList reads what ls-tree prints, and refuses what is no plain file
// before any of it is read.
func parseList(list []byte) (tree Tree, ids []string, err error) {
	var faults []Fault
	total := int64(0)
	for line := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if line == "" {
			continue
		}
		about, path, _ := strings.Cut(line, "\t")
		f := strings.Fields(about)
		if len(f) != 4 {
			return nil, nil, fmt.Errorf("reading git's list of files: %q", clip(line))
		}
		size, _ := strconv.ParseInt(f[3], 10, 64)
		mode, why := gitMode(f[0])
		switch {
		case why != "":
			faults = append(faults, Fault{clip(path), why})
		case size > MaxFileBytes:
			faults = append(faults, Fault{clip(path), fmt.Sprintf("has %d bytes, at most %d", size, MaxFileBytes)})
		}
		total += size
		tree, ids = append(tree, File{Path: path, Mode: mode}), append(ids, f[2])
	}
	if total > MaxTreeBytes {
		faults = append(faults, Fault{Why: fmt.Sprintf("it has %d bytes, at most %d", total, MaxTreeBytes)})
	}
	return tree, ids, refuse("the tree", append(faults, tree.faults()...))
}

// gitMode gives the mode of a file in git's way of writing it, or why there
// may be none.
func gitMode(s string) (fs.FileMode, string) {
	switch s {
	case "100644", "100664":
		return modePlain, ""
	case "100755":
		return modeExecutable, ""
	case "120000":
		return modePlain, "is a symbolic link"
	case "160000":
		return modePlain, "is a submodule"
	}
	return modePlain, "has the special mode " + clip(s)
}

// blobs fills in the files' data, in one call.
func (g git) blobs(ctx context.Context, tree Tree, ids []string) error {
	cmd := g.command(ctx, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	var words tail
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("running git cat-file: %w", err)
	}
	in := bufio.NewReader(out)
	for i := range tree {
		if tree[i].Data, err = readBlob(in); err != nil {
			err = fmt.Errorf("reading %s out of git: %w", tree[i].Path, err)
			break
		}
	}
	_, _ = io.Copy(io.Discard, in)
	if wait := cmd.Wait(); wait != nil {
		err = errors.Join(err, fmt.Errorf("running git cat-file: %w%s", wait, words.said()))
	}
	tree.sort()
	return err
}

func readBlob(in *bufio.Reader) ([]byte, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(head)
	if len(f) != 3 || f[1] != "blob" {
		return nil, fmt.Errorf("git says %q", clip(strings.TrimSpace(head)))
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size < 0 || size > MaxFileBytes {
		return nil, fmt.Errorf("git says %q", clip(strings.TrimSpace(head)))
	}
	b := make([]byte, size+1)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, err
	}
	return b[:size], nil
}

// commits writes each tree as a commit on the one before, onto main of the
// bare repository at g.dir, and gives their ids. The same trees give the
// same ids.
func (g git) commits(ctx context.Context, subject string, trees ...Tree) ([]string, error) {
	if _, err := g.run(ctx, nil, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1", "."); err != nil {
		return nil, err
	}
	var in bytes.Buffer
	for i, tree := range trees {
		fmt.Fprintf(&in, "commit refs/heads/main\nmark :%d\ncommitter Thermite <kits@thermite.invalid> 1764547200 +0000\ndata %d\n%s\n", i+1, len(subject), subject)
		importTree(&in, tree)
		fmt.Fprintf(&in, "get-mark :%d\n", i+1)
	}
	in.WriteString("done\n")
	out, err := g.run(ctx, in.Bytes(), "fast-import", "--quiet", "--done", "--cat-blob-fd=1")
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(trees) {
		return nil, fmt.Errorf("running git fast-import: it gave %q for %d commits", clip(string(out)), len(trees))
	}
	return ids, nil
}

// importTree writes for fast-import that a commit has the tree and nothing
// else.
func importTree(in *bytes.Buffer, tree Tree) {
	in.WriteString("deleteall\n")
	for _, f := range tree {
		mode := "100644"
		if f.Mode&0o100 != 0 {
			mode = "100755"
		}
		fmt.Fprintf(in, "M %s inline %s\ndata %d\n", mode, f.Path, len(f.Data))
		in.Write(f.Data)
		in.WriteByte('\n')
	}
}
