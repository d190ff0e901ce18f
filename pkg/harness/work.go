package harness

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"thermite/pkg/harness/controller"
	"thermite/pkg/harness/judge"
	"thermite/pkg/harness/lanes"
	"thermite/pkg/harness/patches"
	"thermite/pkg/harness/repos"
	"thermite/pkg/harness/trialapi"
)

// work is what a harness with a broker has open.
type work struct {
	listener net.Listener
	api      *trialapi.Server
}

// makeStateDir makes the state's folder. It is the harness's alone, but where
// roles' users pass through it to the work.
func (c Config) makeStateDir() error {
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return err
	}
	rel, err := filepath.Rel(c.StateDir, c.work())
	if c.Roles == nil || err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	return os.Chmod(c.StateDir, 0o711)
}

// openWork makes the controller, and what it works with if there is a broker.
func (h *Harness) openWork() error {
	cfg := controller.Config{Rig: h.cfg.Rig, Ledger: h.ledger, ControlKey: h.cfg.ControlKey, Inbox: h.cfg.Inbox,
		Live: h.live, Now: h.cfg.Now, Rand: h.cfg.Rand, Log: h.cfg.Log}
	if h.cfg.Roles != nil {
		parts, err := h.openParts()
		if err != nil {
			return fmt.Errorf("opening the work in %s: %w", h.cfg.work(), err)
		}
		cfg.Work = parts
	}
	h.controller = controller.New(cfg)
	if h.cfg.Roles == nil {
		return nil
	}
	// The trial API asks the controller, which admits trials to it.
	h.work.api = trialapi.New(trialapi.Config{Trials: h.controller, Files: cfg.Work.Lanes,
		KB: &controller.KB{Controller: h.controller, Outbox: h.outbox, Queue: h.queue}, Waits: true, Log: h.cfg.Log})
	cfg.Work.API = h.work.api
	return nil
}

// openParts opens what does the work, and the trial API's socket.
func (h *Harness) openParts() (*controller.Work, error) {
	dir := h.cfg.work()
	if err := errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711)); err != nil {
		return nil, err
	}
	worker, err := h.cfg.worker()
	if err != nil {
		return nil, err
	}
	step := append(worker[:len(worker):len(worker)], "step")
	w := &controller.Work{Roles: h.cfg.Roles, Worker: worker, Read: worker[:1]}
	if w.Kits, err = controller.OpenKits(filepath.Join(dir, "kits"), h.cfg.Rand); err != nil {
		return nil, err
	}
	if w.Patches, err = patches.Open(filepath.Join(h.cfg.StateDir, "patches")); err != nil {
		return nil, err
	}
	if w.Sessions, err = controller.OpenSessions(filepath.Join(h.cfg.StateDir, "trials")); err != nil {
		return nil, err
	}
	if w.Repos, err = repos.New(repos.Config{Dir: filepath.Join(dir, "runs"), Log: h.cfg.Log}); err != nil {
		return nil, err
	}
	git, err := find("git", h.cfg.Path)
	if err != nil {
		return nil, err
	}
	if w.Lanes, err = lanes.New(lanes.Config{Dir: filepath.Join(dir, "lanes"), Roles: h.cfg.Roles, Step: step, Git: git, Path: h.cfg.Path,
		Rand: h.cfg.Rand, Log: h.cfg.Log}); err != nil {
		return nil, err
	}
	key, _, err := openSeed("judge's key", h.cfg.judgeKeyPath(), h.cfg.Rand)
	if err != nil {
		return nil, err
	}
	if w.Judge, err = judge.New(judge.Config{Dir: dir, Roles: h.cfg.Roles, Step: step, Key: key, Path: h.cfg.Path,
		Now: h.cfg.Now, Rand: h.cfg.Rand, Log: h.cfg.Log}); err != nil {
		return nil, err
	}
	return w, h.listenForTrials(w)
}

// listenForTrials opens the trial API's socket. Where any port does, it is the
// one that the workers know which an earlier harness left at work.
func (h *Harness) listenForTrials(w *controller.Work) error {
	l, err := listenAgain(h.cfg.TrialListen, w.Sessions.Port())
	if err != nil {
		return fmt.Errorf("listening for trials: %w", err)
	}
	h.work = &work{listener: l}
	w.URL, w.Port = "http://"+l.Addr().String(), l.Addr().(*net.TCPAddr).Port
	return nil
}

// listenAgain listens at the address, whose port is the one of before if it
// may be any.
func listenAgain(address, before string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && port == "0" && before != "" {
		if l, err := net.Listen("tcp", net.JoinHostPort(host, before)); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", address)
}

// worker is the command of thermite-worker.
func (c Config) worker() ([]string, error) {
	program := c.Worker
	if program == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = filepath.Join(filepath.Dir(own), "thermite-worker")
	}
	if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the worker %s is no program that is there (THERMITE_HARNESS_WORKER): %w", program, err)
	}
	return append([]string{program}, c.WorkerArgs...), nil
}

// find gives a program's path by a PATH.
func find(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil && strings.HasPrefix(p, "/") {
			return p, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in %s", name, path)
}
