package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// Promise: a person who used a program wrongly, or without the rights it
// needs, is told where to look; an error of the work stands for itself.
func TestWhatToDoNext(t *testing.T) {
	p := Program{Name: "thermite-x"}
	for err, want := range map[error]string{
		UseError{errors.New("no rig")}:                              "thermite-x --help",
		fmt.Errorf("starting: %w", UseError{errors.New("no rig")}):  "thermite-x --help",
		fmt.Errorf("making the state folder: %w", fs.ErrPermission): "folders of your own",
		errors.New("the disk is full"):                              "",
	} {
		if got := p.next(err); (want == "") != (got == "") || !strings.Contains(got, want) || got != "" && !strings.HasSuffix(got, "\n") {
			t.Errorf("after %q it says %q, want %q", err, got, want)
		}
	}
}
