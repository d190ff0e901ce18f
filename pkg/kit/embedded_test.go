package kit_test

import (
	"errors"
	"testing"

	"thermite/pkg/kit"
)

// Promise: each kit that ships can be shown without staging it, and no other.
func TestShippedKitsCanBeShown(t *testing.T) {
	for _, name := range kit.Names() {
		k, files, err := kit.Shipped(name)
		if err != nil || k.About.Name != name {
			t.Errorf("kit %s: %q, %v", name, k.About.Name, err)
		}
		values, err := k.ReadTunables(files.Sub(k.Project.Path))
		if err != nil || len(values) != len(k.Worker.Tunables) {
			t.Errorf("kit %s: its base has the tunables %v, %v", name, values, err)
		}
	}
	for _, name := range []string{"none", "", "_starter", "../kit", "bytecount/tools"} {
		if _, _, err := kit.Shipped(name); err == nil {
			t.Errorf("kit %q ships", name)
		}
	}
	if _, _, err := kit.Shipped("none"); !errors.Is(err, kit.ErrNotShipped) {
		t.Errorf("a kit that does not ship is %v", err)
	}
}
