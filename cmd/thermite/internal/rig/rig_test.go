package rig

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/broker"
	"thermite/pkg/broker/client"
	"thermite/pkg/wire"
)

// wait is how long a thing may take that should take a moment.
const wait = 30 * time.Second

func TestMain(m *testing.M) {
	broker.Main()
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		// This program as the worker, as findWorker has it: it tells who it is.
		fmt.Println("user", os.Getuid())
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "open" {
		_, err := Open(context.Background(), config(os.Args[2]))
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	const why = "only root gives a role a user of its own"
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// folder makes one that roles' users can reach; the test's own is closed.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rig-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func config(dir string) Config {
	return Config{Dir: dir, Build: "test", Now: time.Now, Rand: rand.Reader, Log: slog.New(slog.DiscardHandler)}
}

// open opens a rig and runs it until the test ends.
func open(t testing.TB, cfg Config) *Rig {
	t.Helper()
	r, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, r.Close()); err != nil {
			t.Errorf("the rig ended with %v", err)
		}
	})
	return r
}

// asked runs the worker's program as the role, and gives what it printed.
func (r *Rig) asked(t testing.TB, role string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	c := client.New(client.Config{Socket: r.Socket, Log: slog.New(slog.DiscardHandler)})
	defer c.Close()
	_, err := c.Start(ctx, wire.BrokerStart{ID: "asked-" + role, Role: role, Argv: r.Worker, Env: map[string]string{"PATH": r.Path},
		ReadOnly: []string{r.Worker[0], r.Work}, Cwd: r.Work})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Wait(ctx, "asked-"+role)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(filepath.Join(e.Folder, "stdout"))
	said, err2 := os.ReadFile(filepath.Join(e.Folder, "stderr"))
	if err := errors.Join(err, err2); err != nil || e.Code != 0 {
		t.Fatalf("it ended with %d %s: %s %v", e.Code, e.Signal, said, err)
	}
	return string(out)
}

// Promise: each role's process runs this program as the worker, from a folder
// that was closed before, with the user that the role has; as root each role
// has another, and the next start on the folder gives them the same.
func TestRolesHaveTheirUsers(t *testing.T) {
	dir := folder(t)
	first := open(t, config(dir))
	seen := map[string]bool{}
	for _, role := range []string{"judge-build", "judge-run", "lane-1"} {
		uid := os.Getuid()
		if first.Users != nil {
			uid = first.Users[role]
		}
		said := first.asked(t, role)
		if want := fmt.Sprintln("user", uid); said != want {
			t.Errorf("%s says %q, want %q", role, said, want)
		}
		seen[said] = true
	}
	isolated, why := first.Isolated()
	if root := os.Geteuid() == 0; isolated != root || isolated != (why == "") || isolated && len(seen) != 3 {
		t.Errorf("isolated: %v %q, with %d users", isolated, why, len(seen))
	}
	if os.Geteuid() != 0 {
		return
	}
	users, err := keepUsers(filepath.Join(dir, "broker", "roles.json"), broker.DefaultRoles(), rand.Reader)
	if diff := cmp.Diff(first.Users, users); diff != "" || err != nil {
		t.Errorf("the next start has other users (%v; -first +next):\n%s", err, diff)
	}
	for _, closed := range []string{"broker", "broker/state"} {
		if info, err := os.Stat(filepath.Join(dir, closed)); err != nil || info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s is open to every user: %v %v", closed, info.Mode(), err)
		}
	}
}

// Promise: users are drawn once, none twice, none that an account or a group
// has, and a file of them that was changed into nonsense is refused.
func TestUsersAreDrawnOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roles.json")
	// The first four draws are of one number, the fifth of the next.
	draws := bytes.NewReader([]byte{0, 7, 0, 7, 0, 7, 0, 7, 0, 8, 0, 9})
	got, err := keepUsers(path, []string{"a", "b"}, draws)
	if diff := cmp.Diff(map[string]int{"a": firstUser + 7, "b": firstUser + 8}, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	got, err = keepUsers(path, []string{"a", "b", "c"}, draws)
	if diff := cmp.Diff(map[string]int{"a": firstUser + 7, "b": firstUser + 8, "c": firstUser + 9}, got); err != nil || diff != "" {
		t.Errorf("with a further role: %v (-want +got):\n%s", err, diff)
	}
	for text, says := range map[string]string{
		`{"a":0}`: "user 0", `{"a":61200,"b":61200}`: "both have user 61200", `{"a":70000}`: "user 70000", `[`: "roles.json",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := keepUsers(path, []string{"a"}, rand.Reader); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("with %s: %v, want %q", text, err, says)
		}
	}
	if !account("", "0") || !account("group", "0") || account("", "64999") {
		t.Error("root's account is none, or there is one that has no name")
	}
}

// Promise: a root that has no users for roles, as in a container with few
// numbers, is refused with what to do: no candidate runs as root.
func TestARootWithoutUsersForRolesIsRefused(t *testing.T) {
	needRoot(t)
	cmd := exec.Command(os.Args[0], "open", folder(t))
	one := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one, GidMappings: one}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		if os.Getenv("CI") != "" {
			t.Fatalf("this machine makes no user namespace: %v", err)
		}
		t.Skipf("this machine makes no user namespace: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "start it as an ordinary user") {
		t.Errorf("Open: %s %v", out, err)
	}
}

// Promise: a folder that the roles' users can't reach is said before anything
// runs, with the one on the way that is closed.
func TestAFolderThatRolesCannotReach(t *testing.T) {
	needRoot(t)
	closed := folder(t)
	dir := filepath.Join(closed, "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), config(dir))
	if !errors.Is(err, ErrNoWay) || !strings.Contains(err.Error(), closed+" is closed to them (mode 0700)") {
		t.Errorf("Open: %v", err)
	}
}

// Promise: a program that is where the roles' users can't start it is brought
// to where they can, and one that they can reach is left where it is.
func TestWhereTheWorkerIs(t *testing.T) {
	needRoot(t)
	closed, dir := folder(t), folder(t)
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(closed, "thermite")
	if err := os.WriteFile(program, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := config(dir)
	cfg.Worker = []string{program, "worker"}
	r := Rig{cfg: cfg, Users: map[string]int{}}
	for range 2 { // the second time it is there
		words, err := r.placeWorker()
		if want := []string{filepath.Join(dir, "programs", "thermite"), "worker"}; err != nil || !slices.Equal(words, want) || !everyoneMayRun(words[0]) {
			t.Fatalf("placeWorker: %v %v, want %v", words, err, want)
		}
	}
	r.cfg.Worker = []string{"/bin/true"}
	if words, err := r.placeWorker(); err != nil || !slices.Equal(words, r.cfg.Worker) {
		t.Errorf("placeWorker: %v %v", words, err)
	}
}

// Promise: thermite-worker beside the program is the worker; without one the
// program itself is.
func TestFindWorker(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "thermite")
	if got := findWorker(exe); !slices.Equal(got, []string{exe, "worker"}) {
		t.Errorf("alone: %v", got)
	}
	beside := filepath.Join(filepath.Dir(exe), "thermite-worker")
	if err := os.WriteFile(beside, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := findWorker(exe); !slices.Equal(got, []string{beside}) {
		t.Errorf("beside thermite-worker: %v", got)
	}
}

// Promise: the Go of whoever started it comes first on the PATH, through a
// link too, and may be read; without one the system's folders are the PATH.
func TestFindTools(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	root, err := goRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := findTools(t.Context(), false, log)
	if !strings.HasPrefix(got.path, filepath.Join(root, "bin")+":") || strings.Count(got.path, "/usr/bin") != 1 || !slices.Equal(got.read, []string{root}) {
		t.Errorf("with Go: %+v", got)
	}
	t.Setenv("PATH", t.TempDir())
	if got := findTools(t.Context(), false, log); got.read != nil || !strings.Contains(got.path, "/usr/bin") {
		t.Errorf("without Go: %+v", got)
	}
}

// Promise: a socket has a place whatever the length of the folder's path.
func TestPlaceSocket(t *testing.T) {
	dir := t.TempDir()
	path, remove, err := PlaceSocket(dir, "s")
	if want := filepath.Join(dir, "s"); err != nil || path != want {
		t.Errorf("%s %v, want %s", path, err, want)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	path, remove, err = PlaceSocket(filepath.Join(dir, strings.Repeat("long/", 40)), "s")
	if err != nil || len(path) > longestSocket {
		t.Errorf("%s %v", path, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", filepath.Dir(path), err)
	}
}
