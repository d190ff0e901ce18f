package kit_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"thermite/pkg/kit"
)

// BenchmarkApplyPatch is a candidate's way from its patch to a tree.
func BenchmarkApplyPatch(b *testing.B) {
	s, err := kit.Load(b.Context(), kit.Source{Embedded: "circle-packing-26"})
	if err != nil {
		b.Fatal(err)
	}
	win, _ := s.Files.File("fixtures/honest-win.patch")
	for b.Loop() {
		if _, _, err := kit.ApplyPatch(b.Context(), s.Kit.Project, s.Base, win.Data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMakePatch is a champion's way from its tree to its patch.
func BenchmarkMakePatch(b *testing.B) {
	s, err := kit.Load(b.Context(), kit.Source{Embedded: "circle-packing-26"})
	if err != nil {
		b.Fatal(err)
	}
	tree, err := s.Kit.WriteTunables(s.Base, map[string]string{"steps": "2000"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := kit.MakePatch(b.Context(), s.Base, tree); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStage is staging a kit that ships, through its repository.
func BenchmarkStage(b *testing.B) {
	dir, n := b.TempDir(), 0
	for b.Loop() {
		n++
		if _, err := kit.Stage(b.Context(), kit.Source{Embedded: "circle-packing-26"}, filepath.Join(dir, strconv.Itoa(n))); err != nil {
			b.Fatal(err)
		}
	}
}
