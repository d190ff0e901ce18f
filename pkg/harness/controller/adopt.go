package controller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"thermite/pkg/files"
	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

// A session is what a harness that starts again must know of a trial whose
// worker goes on meanwhile. It is a file of the harness's own, written before
// the worker starts and removed once it has ended.
type session struct {
	Ledger string `json:"ledger"`
	Run    string `json:"run"`
	Trial  uint64 `json:"trial"`
	Lane   uint64 `json:"lane"`
	// Sum is the trial's token's, and URL the trial API's address: its worker
	// knows no other and reaches no other.
	Sum []byte `json:"sum"`
	URL string `json:"url"`
	// Project is its lane's clone.
	Project string `json:"project"`
}

func (s session) ref() ref { return ref{ledger: s.Ledger, run: s.Run, number: s.Trial, lane: s.Lane} }

// processOf is the name that a trial's worker has at the broker.
func processOf(r ref) string { return fmt.Sprintf("trial-%s-%d", r.run, r.number) }

// A left is a worker that an earlier harness left at work, or that ended
// since.
type left struct {
	session session
	// folder is where the broker keeps what it printed.
	folder string
	// admitted is called once it may call again, or never will.
	admitted func()
}

// Sessions are what is known of the trials at work: a folder of their files.
type Sessions struct{ dir string }

// OpenSessions opens the folder of what is known of the trials at work.
func OpenSessions(dir string) (Sessions, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Sessions{}, fmt.Errorf("making the folder of the trials at work: %w", err)
	}
	return Sessions{dir}, nil
}

const sessionEnd = ".json"

func (s Sessions) path(id string) string { return filepath.Join(s.dir, id+sessionEnd) }

func (s Sessions) put(id string, what session) error {
	b, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("keeping what is known of %s: %w", id, err)
	}
	return files.Write(s.path(id), b, 0o600)
}

func (s Sessions) drop(id string) error {
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting %s: %w", id, err)
	}
	return nil
}

// all gives the sessions by the names of their processes. A file that can't be
// read is no session: its trial is lost.
func (s Sessions) all() (map[string]session, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("reading what is known of the trials at work: %w", err)
	}
	found := map[string]session{}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), sessionEnd)
		if !ok {
			continue
		}
		var one session
		b, err := files.ReadSmall(filepath.Join(s.dir, e.Name()))
		if err == nil {
			err = wire.DecodeStrict(b, &one)
		}
		if err == nil && processOf(one.ref()) == id && len(one.Sum) == len(trialapi.Sum{}) {
			found[id] = one
		}
	}
	return found, nil
}

// Port is one that a trial at work knows the trial API by; empty when there is
// none.
func (s Sessions) Port() string {
	all, err := s.all()
	if err != nil {
		return "" // who opens the work says so
	}
	for _, id := range sorted(all) {
		if u, err := url.Parse(all[id].URL); err == nil && u.Port() != "" {
			return u.Port()
		}
	}
	return ""
}

// found sorts what the broker has into the trials' workers that can be
// adopted, by their processes' names, and the rest.
func (w *Work) found(processes []wire.BrokerProcess) (workers map[string]left, rest []string, err error) {
	known, err := w.Sessions.all()
	if err != nil {
		return nil, nil, err
	}
	workers = map[string]left{}
	for _, p := range processes {
		s, ok := known[p.ID]
		switch {
		case !ok || s.URL != w.URL || p.Exited != nil && p.Exited.Lost:
			rest = append(rest, p.ID)
		case w.Lanes.Adopt(s.Lane, s.Project) != nil:
			rest = append(rest, p.ID)
		default:
			workers[p.ID] = left{session: s, folder: p.Folder}
		}
	}
	for id := range known {
		if _, ok := workers[id]; !ok {
			err = errors.Join(err, w.Sessions.drop(id))
		}
	}
	return workers, rest, err
}

// adopted goes on with a trial whose worker an earlier harness started: it
// waits for its end, and gives the last line that it printed.
func (w *Work) adopted(ctx context.Context, ref ref, was left) (exited wire.BrokerExited, last []byte, err error) {
	id := processOf(ref)
	defer w.endWorker(ctx, id)
	dismiss, err := w.readmit(ctx, was)
	was.admitted()
	if err != nil {
		return exited, nil, err
	}
	defer dismiss()
	w.controller.cfg.Log.Info("a trial goes on whose worker the harness of before started", "run", ref.run, "trial", ref.number, "lane", ref.lane)
	if exited, err = w.Roles.Wait(ctx, id); err != nil {
		return exited, nil, err
	}
	last, err = lastLine(filepath.Join(was.folder, "stdout"))
	return exited, last, err
}

// readmit lets the worker of a trial call again.
func (w *Work) readmit(ctx context.Context, was left) (dismiss func(), err error) {
	plan, err := w.plan(ctx, was.session.ref())
	if err != nil {
		return nil, err
	}
	plan.trial.Folder = was.session.Project
	return w.controller.admit(ctx, was.session.ref(), trialapi.Session{Trial: plan.trial, Sum: trialapi.Sum(was.session.Sum),
		Editable: plan.staged.Kit.Project.Editable, Ignore: plan.staged.Kit.Project.Ignore})
}
