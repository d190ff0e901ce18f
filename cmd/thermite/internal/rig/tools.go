package rig

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// systemPath is where the system's programs are, and Go where its own
// installation puts it.
var systemPath = []string{"/usr/local/go/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// tools are the programs that steps and workers may start.
type tools struct {
	// path is their PATH, and read what they may read for it besides the
	// system's folders.
	path string
	read []string
}

// findTools finds them. Most kits need Go, so that of whoever started this
// comes first, wherever it is, if the roles' users may use it.
func findTools(ctx context.Context, others bool, log *slog.Logger) tools {
	path := systemPath
	t := tools{path: strings.Join(path, ":")}
	root, err := goRoot(ctx)
	if err == nil && others {
		err = checkWay(filepath.Join(root, "bin"))
	}
	if err != nil {
		log.Warn("kits that need Go have the system's, if there is one", "why", err)
		return t
	}
	bin := filepath.Join(root, "bin")
	path = slices.DeleteFunc(slices.Clone(path), func(dir string) bool { return dir == bin })
	t.path = strings.Join(append([]string{bin}, path...), ":")
	t.read = []string{root}
	return t
}

// findStarter gives thermite-broker beside this program, if it is of the same
// build: it starts twice for each process, and is many times smaller than this
// one. Empty is this one.
func findStarter(ctx context.Context, build string) string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	beside := filepath.Join(filepath.Dir(exe), "thermite-broker")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, beside, "--version").Output()
	if err != nil || strings.TrimSpace(string(out)) != "thermite-broker version "+build {
		return ""
	}
	return beside
}

// patience is how long a program may take to say what it is.
const patience = 10 * time.Second

// goRoot is where the Go of PATH is: its command's own folder may hold a link
// only, or a script.
func goRoot(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT")
	cmd.Dir = "/" // no module's choice of another
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(strings.TrimSpace(string(out)))
}
