package trialapi_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

// A controller stands for the harness's: it holds what it is given to hold.
type controller struct {
	mu       sync.Mutex
	attempts []trialapi.Facts
	changed  chan struct{}
	progress []string
	live     []string
	trials   []trialapi.Ref
	// submit, if set, is what a submit does.
	submit func(ctx context.Context, s wire.Submit) (wire.Submitted, error)
}

func (c *controller) Submit(ctx context.Context, trial trialapi.Ref, s wire.Submit) (wire.Submitted, error) {
	c.mu.Lock()
	c.trials = append(c.trials, trial)
	do := c.submit
	c.mu.Unlock()
	if do != nil {
		return do(ctx, s)
	}
	return wire.Submitted{Attempt: 1}, nil
}

func (c *controller) Attempts(_ context.Context, trial trialapi.Ref, after uint64, most int) (all []trialapi.Facts, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trials = append(c.trials, trial)
	for _, f := range c.attempts {
		if f.Attempt.Attempt > after && len(all) < most {
			all = append(all, f)
		}
	}
	return all, nil
}

func (c *controller) Attempt(_ context.Context, trial trialapi.Ref, n uint64) (trialapi.Facts, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trials = append(c.trials, trial)
	for _, f := range c.attempts {
		if f.Attempt.Attempt == n {
			return f, c.changed, nil
		}
	}
	return trialapi.Facts{}, nil, &wire.TrialProblem{Code: wire.TrialNotFound, Detail: "no such attempt"}
}

func (c *controller) Live(_ context.Context, trial trialapi.Ref, said wire.TrialLines) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = append(c.live, said.Lines...)
	return nil
}

func (c *controller) Progress(_ context.Context, trial trialapi.Ref, p wire.TrialProgress) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trials = append(c.trials, trial)
	c.progress = append(c.progress, p.Text)
	return nil
}

// set makes the attempts these.
func (c *controller) set(all ...trialapi.Facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = all
	if c.changed != nil {
		close(c.changed)
	}
	c.changed = make(chan struct{})
}

// asked waits until the trial has asked for something.
func (c *controller) asked(t *testing.T, trial uint64) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); ; {
		c.mu.Lock()
		has := slices.ContainsFunc(c.trials, func(r trialapi.Ref) bool { return r.Trial == trial })
		c.mu.Unlock()
		if has {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("trial %d asks for nothing", trial)
		}
	}
}

// files are those of some lanes, by lane/path.
type files struct {
	mu  sync.Mutex
	all map[string]string
}

func key(lane uint64, path string) string { return string(rune('0'+lane)) + "/" + path }

func (f *files) List(_ context.Context, lane uint64) (all []wire.StepEntry, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(f.all)) {
		if path, ok := strings.CutPrefix(k, key(lane, "")); ok {
			mode := fs.FileMode(0o644)
			if path == "link" {
				mode |= fs.ModeSymlink
			}
			all = append(all, wire.StepEntry{Path: path, Mode: uint32(mode), Size: int64(len(f.all[k]))})
		}
	}
	return all, nil
}

func (f *files) ReadFile(_ context.Context, lane uint64, path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.all[key(lane, path)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(s), nil
}

func (f *files) WriteFile(_ context.Context, lane uint64, path string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[key(lane, path)] = string(data)
	return nil
}

func (f *files) RemoveFile(_ context.Context, lane uint64, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, key(lane, path))
	return nil
}

// world is the API, served on loopback.
type world struct {
	t          *testing.T
	server     *trialapi.Server
	controller *controller
	files      *files
	base       string
	client     *http.Client
	// stop ends it, and ended has how it ended.
	stop  context.CancelFunc
	ended chan error
	log   *bytes.Buffer
}

func serve(t *testing.T) *world {
	t.Helper()
	return serveAs(t, trialapi.Config{})
}

// serveAs serves an API with these settings.
func serveAs(t *testing.T, cfg trialapi.Config) *world {
	t.Helper()
	w := &world{t: t, controller: &controller{}, files: &files{all: map[string]string{}}, ended: make(chan error, 1), log: new(bytes.Buffer)}
	w.controller.set()
	cfg.Trials, cfg.Files, cfg.Log = w.controller, w.files, slog.New(slog.NewTextHandler(&locked{w: w.log}, nil))
	w.server = trialapi.New(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w.base, w.stop = "http://"+l.Addr().String(), stop
	go func() { w.ended <- w.server.Serve(ctx, l) }()
	w.client = &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		stop()
		if err := <-w.ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	return w
}

// locked lets several write to a buffer.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// trial is one that works, with its token.
type trial struct {
	*trialapi.Admitted
	w     *world
	token string
}

// admit admits trial n of the run, in lane n.
func (w *world) admit(n uint64) *trial {
	w.t.Helper()
	token, sum, err := trialapi.NewToken(crand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	return &trial{w.server.Admit(session(n, token, sum)), w, token}
}

// session is that of trial n of the run, in lane n.
func session(n uint64, token string, sum trialapi.Sum) trialapi.Session {
	t := wire.Trial{Rig: "alpha", Run: "pack26", Trial: n, Lane: n, Title: "a search", Token: token, Seed: 1<<63 + n, Folder: "/lanes", Kit: "[kit]",
		Metric: wire.Metric{Name: "sum", Direction: "max"}, Worker: "tune", Deadline: wire.At(time.Unix(1_790_000_000, 0))}
	return trialapi.Session{Trial: t, Sum: sum, Editable: []string{"src/**"}, Ignore: []string{"bin/**"}}
}

// do makes a call with a token.
func (w *world) do(token, method, path, body string) (int, http.Header, []byte) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	a, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return a.StatusCode, a.Header, b
}

// ok makes a call that must go well, and reads its answer.
func (t *trial) ok(method, path, body string, into any) {
	t.w.t.Helper()
	status, _, b := t.w.do("Bearer "+t.token, method, path, body)
	if status/100 != 2 {
		t.w.t.Fatalf("%s %s: %d %s", method, path, status, b)
	}
	if into != nil {
		if err := wire.DecodeStrict(b, into); err != nil {
			t.w.t.Fatalf("%s %s: %s: %v", method, path, b, err)
		}
	}
}

// problem makes a call that must fail, and gives the problem.
func (w *world) problem(token, method, path, body string) wire.TrialProblem {
	w.t.Helper()
	status, header, b := w.do(token, method, path, body)
	var p wire.TrialProblem
	if err := wire.DecodeStrict(b, &p); err != nil {
		w.t.Fatalf("%s %s: %d %s: %v", method, path, status, b, err)
	}
	if p.Status != status || header.Get("Content-Type") != "application/problem+json" || p.Title == "" || p.Detail == "" {
		w.t.Errorf("%s %s: %d %v: %+v", method, path, status, header, p)
	}
	return p
}

func (t *trial) problem(method, path, body string) wire.TrialProblem {
	t.w.t.Helper()
	return t.w.problem("Bearer "+t.token, method, path, body)
}
