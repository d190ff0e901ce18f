package worker_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/kit"
	"thermite/pkg/wire"
	"thermite/pkg/worker"
	"thermite/pkg/worker/trialtest"
)

func verdict(n uint64, _ kit.Tree, _ map[string]string) *wire.Verdict {
	score := 1.5
	return &wire.Verdict{Attempt: n, Outcome: "not_better", Score: &score, Why: "no more than the champion's"}
}

func client(t *testing.T, w *trialtest.World) *worker.Client {
	t.Helper()
	c := worker.NewClient(w.Trial.URL+"/", w.Trial.Token)
	t.Cleanup(c.Close)
	return c
}

// Promise: each call of the trial API, as the API itself answers it.
func TestCalls(t *testing.T) {
	w := trialtest.New(t, trialtest.Options{Kit: trialtest.Kit(""), Files: map[string]string{"src/a.go": "package a\n", "docs/read me.txt": "hello"},
		Trial: wire.Trial{Title: "faster", Seed: 12}, Judge: verdict})
	c, ctx := client(t, w), t.Context()

	want := w.Trial
	want.Token = ""
	trial, err := c.Trial(ctx)
	if diff := cmp.Diff(want, trial, cmp.Comparer(wire.Time.Equal)); err != nil || diff != "" {
		t.Errorf("the trial (%v) -want +got:\n%s", err, diff)
	}

	for range 2 {
		files, err := c.Files(ctx)
		if err != nil || len(files.Files) != 2 || files.Files[1].Path != "src/a.go" || !files.Files[1].Editable {
			t.Errorf("the files are %+v, %v", files, err)
		}
		if err := errors.Join(c.WriteFile(ctx, "src/new/b c.go", []byte("package b\n")), c.RemoveFile(ctx, "docs/read me.txt")); err != nil {
			t.Fatal(err)
		}
		if b, err := c.ReadFile(ctx, "src/new/b c.go"); err != nil || string(b) != "package b\n" {
			t.Errorf("the file is %q, %v", b, err)
		}
		if _, err := c.ReadFile(ctx, "docs/read me.txt"); worker.Code(err) != wire.TrialNotFound {
			t.Errorf("a file that is gone gives %v", err)
		}
		if err := errors.Join(c.RemoveFile(ctx, "src/new/b c.go"), c.WriteFile(ctx, "docs/read me.txt", []byte("hello"))); err != nil {
			t.Fatal(err)
		}
	}

	if err := c.Progress(ctx, "two\n  lines "+strings.Repeat("long ", 1000)); err != nil {
		t.Error(err)
	}
	if said := w.Said(); len(said) != 1 || !strings.HasPrefix(said[0], "two lines long") || len(said[0]) > wire.MaxTrialProgress {
		t.Errorf("it said %q", said)
	}

	if _, err := c.Submit(ctx, wire.Submit{Title: "as it was"}); worker.Code(err) != wire.TrialNothing {
		t.Errorf("a lane as it was gives %v", err)
	}
	if err := c.WriteFile(ctx, "src/a.go", []byte("package a // other\n")); err != nil {
		t.Fatal(err)
	}
	s, err := c.Submit(ctx, wire.Submit{Title: strings.Repeat("ü", 300), Why: strings.Repeat("x", 5000)})
	if err != nil || s.Attempt != 1 {
		t.Fatalf("the submit is %+v, %v", s, err)
	}
	if a, err := c.Verdict(ctx, 1); err != nil || !a.Judged || a.Score == nil || *a.Score != 1.5 {
		t.Errorf("the attempt is %+v, %v", a, err)
	}
	_, err = c.Submit(ctx, wire.Submit{Title: "again"})
	if p := (*wire.TrialProblem)(nil); !errors.As(err, &p) || p.Code != wire.TrialNothing || p.Attempt != 1 {
		t.Errorf("the same again gives %v", err)
	}
	if _, err := c.Attempt(ctx, 2, 0); worker.Code(err) != wire.TrialNotFound {
		t.Errorf("an attempt that is not there gives %v", err)
	}

	w.Admitted.Tell("try fewer")
	if n, err := c.Notices(ctx, 0, time.Second); err != nil || len(n.Messages) != 1 || n.Messages[0].Text != "try fewer" || n.Stop {
		t.Errorf("the notices are %+v, %v", n, err)
	}
	w.Admitted.Stop("enough")
	if n, err := c.Notices(ctx, 1, time.Second); err != nil || !n.Stop || n.Why != "enough" {
		t.Errorf("the notices are %+v, %v", n, err)
	}
	w.Admitted.Dismiss()
	if _, err := c.Trial(ctx); worker.Code(err) != wire.TrialUnauthorized {
		t.Errorf("after its end it gives %v", err)
	}
}

// Promise: all attempts of a run are read, however many there are.
func TestReadsAllAttempts(t *testing.T) {
	o := trialtest.Options{Kit: trialtest.Kit("")}
	for n := range uint64(wire.MaxTrialAttempts + 5) {
		o.Before = append(o.Before, trialapi.Facts{Attempt: wire.Attempt{Attempt: n + 1, Trial: 3}})
	}
	c := client(t, trialtest.New(t, o))
	all, err := c.Attempts(t.Context(), 2)
	if err != nil || len(all) != wire.MaxTrialAttempts+3 || all[0].Attempt != 3 || all[len(all)-1].Attempt != wire.MaxTrialAttempts+5 {
		t.Errorf("it reads %d, %v", len(all), err)
	}
}

// Promise: while nobody answers a call is tried again, and it ends as its
// context does.
func TestTriesAgainWhileNobodyAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := worker.NewClient("http://"+addr, "token")
	defer c.Close()

	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, &worker.Stop{Why: "enough"})
	defer cancel()
	if _, err := c.Trial(ctx); !errors.As(err, new(*worker.Stop)) {
		t.Errorf("it ends with %v", err)
	}

	got := make(chan error, 1)
	go func() {
		_, err := c.Submit(t.Context(), wire.Submit{Title: "x"})
		got <- err
	}()
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Skipf("another process took the port: %v", err)
	}
	calls := 0
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 { // it ends in the middle of the call
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
			return
		}
		_, _ = w.Write([]byte(`{"attempt":4}`))
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not come back")
	}
}

// Promise: what answers otherwise than the trial API is an error that says
// so.
func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		body, says string
	}{
		"a page":          {404, "<html>", "no trial API"},
		"another problem": {500, `{"status":500,"title":"x","detail":"y"}`, "no trial API"},
		"no JSON":         {200, "hello", "reading the answer"},
		"unknown field":   {200, `{"attempt":1,"score":3}`, "score"},
		"a redirect":      {302, "", "no trial API"},
		"too much":        {200, strings.Repeat(" ", 33<<20), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})}
			go func() { _ = srv.Serve(l) }()
			defer srv.Close()
			api := worker.NewClient("http://"+l.Addr().String(), "token")
			defer api.Close()
			if _, err := api.Submit(t.Context(), wire.Submit{Title: "x"}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, not %q", err, c.says)
			}
		})
	}
}
