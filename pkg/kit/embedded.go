package kit

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"thermite/pkg/wire"
)

// shipped holds the kits that ship and the starter. The go tool passes over
// a folder whose name begins with _.
//
//go:embed all:_kits
var shipped embed.FS

const (
	shippedDir = "_kits"
	starterDir = "_starter"
	// embedSuffix ends the name of a file that may not be embedded by its own:
	// a go.mod makes its folder another module's.
	embedSuffix = ".embed"
)

// Names are the kits that ship, in order.
func Names() []string {
	entries, err := shipped.ReadDir(shippedDir)
	if err != nil {
		panic(err) // it is compiled in
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "_") {
			names = append(names, e.Name())
		}
	}
	return names
}

// embedded gives the files of a folder that is compiled in.
func embedded(name string) (Tree, error) {
	var tree Tree
	dir := path.Join(shippedDir, name)
	err := fs.WalkDir(shipped, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := shipped.ReadFile(p)
		if err != nil {
			return err
		}
		p = strings.TrimSuffix(strings.TrimPrefix(p, dir+"/"), embedSuffix)
		tree = append(tree, File{p, modePlain, b})
		return nil
	})
	tree.sort()
	return tree, err
}

// Shipped gives what a kit that ships states, with its files: to show, not to
// stage.
func Shipped(name string) (Kit, Tree, error) {
	tree, err := shippedKit(name)
	if err != nil {
		return Kit{}, nil, err
	}
	main, _ := tree.File(FileName)
	k, err := Decode(main.Data)
	if err != nil {
		return Kit{}, nil, fmt.Errorf("reading the kit %s that ships: %w", name, err)
	}
	return k, tree, nil
}

// ErrNotShipped says that no kit of that name ships.
var ErrNotShipped = errors.New("no such kit ships")

func shippedKit(name string) (Tree, error) {
	if err := wire.CheckName("kit", name); err != nil {
		return nil, err
	}
	tree, err := embedded(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("kit %q: %w: there are %s", name, ErrNotShipped, strings.Join(Names(), ", "))
	}
	return tree, err
}

// WriteRepository writes a kit that ships as a bare git repository into the
// folder, which must be empty or absent, and gives its commit: the same for
// the same Thermite everywhere.
func WriteRepository(ctx context.Context, name, dir string) (commit string, err error) {
	tree, err := shippedKit(name)
	if err != nil {
		return "", err
	}
	if err := emptyDir(dir); err != nil {
		return "", err
	}
	ids, err := git{dir: dir}.commits(ctx, "The kit "+name, tree)
	if err != nil {
		return "", errors.Join(fmt.Errorf("writing the kit %s as a repository: %w", name, err), clear(dir))
	}
	return ids[0], nil
}

// readEmbedded reads the kit as it would come from its repository.
func readEmbedded(ctx context.Context, name string) (tree Tree, commit string, err error) {
	err = withGit("", func(g git) error {
		if commit, err = WriteRepository(ctx, name, g.dir); err != nil {
			return err
		}
		tree, err = g.tree(ctx, commit)
		return err
	})
	return tree, commit, err
}

// New writes a starter kit into the folder, which must be empty or absent:
// whole, and small enough to be changed into what is wanted.
func New(dir, name string) error {
	if err := wire.CheckName("kit", name); err != nil {
		return err
	}
	tree, err := embedded(starterDir)
	if err != nil {
		return err
	}
	for i, f := range tree {
		tree[i].Data = []byte(strings.ReplaceAll(string(f.Data), "starter-name", name))
	}
	if err := tree.Write(dir); err != nil {
		return fmt.Errorf("writing the kit %s: %w", name, err)
	}
	return nil
}
