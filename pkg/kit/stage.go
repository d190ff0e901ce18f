package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A Source says where a kit is: a commit of a git repository, a plain
// folder, or one that ships.
type Source struct {
	Git      string
	Commit   string
	Dir      string
	Embedded string
	// Local allows git's address to be a folder of this machine.
	Local bool
	// Access, if not nil, is what git signs in with.
	Access *Access
}

// Staged is a kit whose files and project are there to work with.
type Staged struct {
	Kit Kit
	// Commit is the kit's commit; a plain folder has none.
	Commit string
	// Digest names the kit's files and the project's by what they hold.
	Digest string
	// Files is the kit's own tree, and Base the project's.
	Files, Base Tree
	// KitDir and ProjectDir are where they are written.
	KitDir, ProjectDir string
}

// Stage reads a kit and its project and writes them into the folder, which
// must be empty or absent: to kit and project in it. What fails leaves
// nothing there.
func Stage(ctx context.Context, s Source, into string) (*Staged, error) {
	staged, err := Load(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := emptyDir(into); err != nil {
		return nil, fmt.Errorf("staging the kit %s: %w", staged.Kit.About.Name, err)
	}
	staged.KitDir, staged.ProjectDir = filepath.Join(into, "kit"), filepath.Join(into, "project")
	if err := errors.Join(staged.Files.Write(staged.KitDir), staged.Base.Write(staged.ProjectDir)); err != nil {
		return nil, errors.Join(fmt.Errorf("staging the kit %s: %w", staged.Kit.About.Name, err), clear(into))
	}
	return staged, nil
}

// Load reads a kit and its project and checks them, and writes nothing that
// stays.
func Load(ctx context.Context, s Source) (*Staged, error) {
	files, commit, err := s.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("staging a kit from %s: %w", s, err)
	}
	if err := refuse("the kit", files.faults()); err != nil {
		return nil, fmt.Errorf("staging a kit from %s: %w", s, err)
	}
	main, ok := files.File(FileName)
	if !ok {
		return nil, fmt.Errorf("staging a kit from %s: it has no %s", s, FileName)
	}
	k, err := Decode(main.Data)
	if err != nil {
		return nil, fmt.Errorf("staging a kit from %s: %w", s, err)
	}
	base, err := project(ctx, k.Project, files, s.Access)
	if err != nil {
		return nil, fmt.Errorf("staging the project of the kit %s: %w", k.About.Name, err)
	}
	staged := &Staged{Kit: k, Commit: commit, Files: files, Base: base}
	if err := staged.finish(); err != nil {
		return nil, fmt.Errorf("staging the kit %s: %w", k.About.Name, err)
	}
	return staged, nil
}

// Open reads what Stage wrote into the folder, with the same checks. Whoever
// knows what it must be compares its Digest. It knows no commit.
func Open(dir string) (*Staged, error) {
	staged := &Staged{KitDir: filepath.Join(dir, "kit"), ProjectDir: filepath.Join(dir, "project")}
	if err := staged.open(); err != nil {
		return nil, fmt.Errorf("opening the staged kit in %s: %w", dir, err)
	}
	return staged, nil
}

func (s *Staged) open() (err error) {
	if s.Files, err = readStaged(s.KitDir); err != nil {
		return err
	}
	if s.Base, err = readStaged(s.ProjectDir); err != nil {
		return err
	}
	main, ok := s.Files.File(FileName)
	if !ok {
		return fmt.Errorf("it has no %s", FileName)
	}
	if s.Kit, err = Decode(main.Data); err != nil {
		return err
	}
	return s.finish()
}

// readStaged reads a folder that Stage wrote. Another may have written it
// since, so nothing in it is taken on trust.
func readStaged(dir string) (Tree, error) {
	tree, err := readDir(dir, false, nil)
	if err != nil {
		return nil, err
	}
	return tree, refuse("the folder", tree.faults())
}

// finish checks what is staged, and names it.
func (s *Staged) finish() error {
	if err := s.check(); err != nil {
		return err
	}
	s.Digest = Tree{{Path: "kit", Data: []byte(s.Files.Digest())}, {Path: "project", Data: []byte(s.Base.Digest())}}.Digest()
	return nil
}

// String names the source.
func (s Source) String() string {
	switch {
	case s.Embedded != "":
		return "the kit " + clip(s.Embedded) + " that ships"
	case s.Dir != "":
		return s.Dir
	}
	return clip(s.Git) + " at " + clip(s.Commit)
}

func (s Source) read(ctx context.Context) (files Tree, commit string, err error) {
	switch {
	case s.Embedded != "":
		return readEmbedded(ctx, s.Embedded)
	case s.Dir != "":
		files, err = ReadDir(s.Dir)
		return files, "", err
	}
	if err := CheckCommit(s.Commit); err != nil {
		return nil, "", err
	}
	protocols := "https:ssh"
	if s.Local && filepath.IsAbs(s.Git) {
		protocols = "file"
	} else if err := checkURL(s.Git); err != nil {
		return nil, "", err
	}
	files, err = fetched(ctx, s.Git, s.Commit, protocols, s.Access)
	return files, s.Commit, err
}

// fetched reads a commit's tree through a repository of its own, which goes
// again.
func fetched(ctx context.Context, url, commit, protocols string, access *Access) (tree Tree, err error) {
	err = withGit(protocols, func(g git) error {
		g.access = access
		if err := g.fetch(ctx, url, commit); err != nil {
			return err
		}
		tree, err = g.tree(ctx, commit)
		return err
	})
	return tree, err
}

// withGit gives do a repository's folder that goes again.
func withGit(protocols string, do func(git) error) error {
	dir, err := os.MkdirTemp("", "thermite-kit-*")
	if err != nil {
		return err
	}
	return errors.Join(do(git{dir: dir, protocols: protocols}), os.RemoveAll(dir))
}

// project reads the project's tree. A kit's own files name no folder of this
// machine: its project is in the kit, or on a network.
func project(ctx context.Context, p Project, files Tree, access *Access) (Tree, error) {
	if p.Git != "" {
		return fetched(ctx, p.Git, p.Commit, "https:ssh", access)
	}
	base := files.Sub(p.Path)
	if len(base) == 0 {
		return nil, fmt.Errorf("the kit has no folder %s", p.Path)
	}
	return base, nil
}

// check holds what kit.toml says of files against them.
func (s *Staged) check() error {
	var errs []error
	there := func(key, path string) {
		if _, ok := s.Files.File(path); !ok {
			errs = append(errs, &Problem{File: FileName, Key: key, Words: "the kit has no file " + path})
		}
	}
	if s.Kit.Worker.Prompt != "" {
		there("worker.prompt", s.Kit.Worker.Prompt)
	}
	for i, f := range s.Kit.Fixtures {
		there(fmt.Sprintf("fixture[%d].patch", i), f.Patch)
	}
	if _, err := s.Kit.ReadTunables(s.Base); err != nil {
		errs = append(errs, &Problem{File: FileName, Key: "worker.tunable", Words: err.Error()})
	}
	return errors.Join(errs...)
}
