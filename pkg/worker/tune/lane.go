package tune

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"thermite/pkg/kit"
)

// A lane is the trial's folder, as far as tunables go.
type lane struct{ folder string }

// files gives the files that hold the kit's tunables.
func (l lane) files(k kit.Kit) (kit.Tree, error) {
	root, err := os.OpenRoot(l.folder)
	if err != nil {
		return nil, fmt.Errorf("opening the lane: %w", err)
	}
	defer root.Close()
	var tree kit.Tree
	for _, t := range k.Worker.Tunables {
		if slices.ContainsFunc(tree, func(f kit.File) bool { return f.Path == t.File }) {
			continue
		}
		b, err := root.ReadFile(filepath.FromSlash(t.File))
		if err != nil {
			return nil, fmt.Errorf("reading the lane: %w", err)
		}
		tree = append(tree, kit.File{Path: t.File, Mode: 0o644, Data: b})
	}
	slices.SortFunc(tree, func(a, b kit.File) int { return cmp.Compare(a.Path, b.Path) })
	return tree, nil
}

// read gives the values that the lane holds.
func (l lane) read(k kit.Kit) (map[string]string, error) {
	tree, err := l.files(k)
	if err != nil {
		return nil, err
	}
	return k.ReadTunables(tree)
}

// write has the lane hold the values.
func (l lane) write(k kit.Kit, values map[string]string) error {
	tree, err := l.files(k)
	if err != nil {
		return err
	}
	if tree, err = k.WriteTunables(tree, values); err != nil {
		return err
	}
	root, err := os.OpenRoot(l.folder)
	if err != nil {
		return fmt.Errorf("opening the lane: %w", err)
	}
	defer root.Close()
	for _, f := range tree {
		if err := root.WriteFile(filepath.FromSlash(f.Path), f.Data, 0o644); err != nil {
			return fmt.Errorf("writing the lane: %w", err)
		}
	}
	return nil
}
