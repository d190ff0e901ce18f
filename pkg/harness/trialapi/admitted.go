package trialapi

import (
	"crypto/subtle"
	"io/fs"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// Admitted is a trial whose worker may call, until it is dismissed. Its
// methods may be called from any goroutine.
type Admitted struct {
	Session
	server *Server
	// gone is closed when it is dismissed: its calls end.
	gone chan struct{}
	once sync.Once

	// submits bounds how often it submits; submitting is held while it does.
	submits    *rate.Limiter
	submitting sync.Mutex
	// items bounds how often it writes to the knowledge base.
	items *rate.Limiter
	// calls has a place for each call that is under way.
	calls chan struct{}

	mu       sync.Mutex
	stop     bool
	why      string
	messages []wire.Notice
	// told is closed, and made again, at each change of the notices.
	told chan struct{}
}

// Bounds of a trial's calls.
const (
	// submitsEach is how many submits a second a trial has in the long run
	// unless the settings say otherwise, and submitsAtOnce how many it may make at once.
	submitsEach   = 2
	submitsAtOnce = 10
	// callsAtOnce is how many of its calls are under way at a time.
	callsAtOnce = 16
	// maxMessages is how many messages of a trial are kept: the newest.
	maxMessages = 1000
)

// Admit lets the worker of a trial call. A trial is admitted once.
func (s *Server) Admit(session Session) *Admitted {
	a := &Admitted{Session: session, server: s, gone: make(chan struct{}), told: make(chan struct{}),
		submits: rate.NewLimiter(rate.Limit(s.cfg.SubmitsEach), submitsAtOnce), calls: make(chan struct{}, callsAtOnce),
		items: rate.NewLimiter(itemsEach, itemsAtOnce)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admitted = append(s.admitted, a)
	return a
}

// Dismiss ends the trial's calls: its token is nobody's from now on.
func (a *Admitted) Dismiss() {
	a.once.Do(func() {
		close(a.gone)
		a.server.remove(a)
	})
}

// Tell gives the worker a message of its owner's.
func (a *Admitted) Tell(text string) {
	a.change(func() {
		number := uint64(1)
		if n := len(a.messages); n > 0 {
			number = a.messages[n-1].Number + 1
		}
		a.messages = append(a.messages, wire.Notice{Number: number, Text: text})
		a.messages = a.messages[max(0, len(a.messages)-maxMessages):]
	})
}

// Told are the messages that an earlier harness gave it, before so many: they
// keep their numbers. It comes before the first Tell.
func (a *Admitted) Told(before uint64, messages []string) {
	a.change(func() {
		for i, text := range messages {
			a.messages = append(a.messages, wire.Notice{Number: before + uint64(i) + 1, Text: text})
		}
	})
}

// Stop tells the worker that it must end, and why: what it submits or writes
// from now on is refused. The first reason stays.
func (a *Admitted) Stop(why string) {
	a.change(func() {
		if !a.stop {
			a.stop, a.why = true, why
		}
	})
}

// stopping is the answer to what a trial that must end asks for.
func (a *Admitted) stopping() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stop {
		return nil
	}
	return problem(wire.TrialStopping, "the trial must end: %s", a.why)
}

func (a *Admitted) isGone() bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// list gives the plain files that a candidate is made of.
func (a *Admitted) list(entries []wire.StepEntry) wire.TrialFiles {
	any := func(globs []string, path string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { return kit.Match(g, path) })
	}
	f := wire.TrialFiles{Files: []wire.TrialFile{}}
	for _, e := range entries {
		if fs.FileMode(e.Mode).IsRegular() && !any(a.Ignore, e.Path) {
			f.Files = append(f.Files, wire.TrialFile{Path: e.Path, Size: e.Size, Editable: any(a.Editable, e.Path)})
		}
	}
	return f
}

func (a *Admitted) change(how func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	how()
	close(a.told)
	a.told = make(chan struct{})
}

// notices are those after a message's number, and a channel that is closed
// when there may be others.
func (a *Admitted) notices(after uint64) (wire.Notices, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := wire.Notices{Stop: a.stop, Why: a.why}
	for _, m := range a.messages {
		if m.Number > after {
			n.Messages = append(n.Messages, m)
		}
	}
	return n, a.told
}

func (s *Server) remove(a *Admitted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.admitted {
		if other == a {
			s.admitted = append(s.admitted[:i:i], s.admitted[i+1:]...)
			return
		}
	}
}

// byToken finds the trial whose token has this sum. It compares each with
// all, so that its time says nothing of them.
func (s *Server) byToken(sum Sum) *Admitted {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *Admitted
	for _, a := range s.admitted {
		if subtle.ConstantTimeCompare(a.Sum[:], sum[:]) == 1 {
			found = a
		}
	}
	return found
}
