package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"thermite/pkg/wire"
)

// commands answers what a test tells it to.
type commands struct {
	got    wire.CommandDelivery
	answer wire.CommandAnswer
	err    error
}

func (c *commands) Deliver(_ context.Context, d wire.CommandDelivery) (wire.CommandAnswer, error) {
	c.got = d
	return c.answer, c.err
}

func (c *commands) Space(context.Context) (wire.SpaceReport, error) {
	return wire.SpaceReport{Ledger: "ledger0000000000000000000a", At: wire.At(time.Unix(1_780_000_000, 0)), Items: []wire.SpaceItem{}}, c.err
}

func (c *commands) Screen(_ context.Context, trial wire.TrialRef) (wire.Screen, error) {
	return wire.Screen{TrialRef: trial, At: wire.At(time.Unix(1_780_000_000, 0)), Text: "one\n"}, c.err
}

func (c *commands) Troubles() []string { return []string{"the broker: it is away"} }

// Promise: a command is handed on as it is signed, and answered with what came
// of it; what the controller can't do is said by its own problem.
func TestCommandsAreHandedOn(t *testing.T) {
	s := serve(t)
	s.commands.answer = wire.CommandAnswer{ID: "a", State: wire.CommandNotApplied, Why: "there is no such run"}
	body := `{"command":{"command":{"z":1,"a":2},"key":"k","sig":"s"},"staged":"one"}`
	status, _, b := s.call(http.MethodPost, wire.HarnessCommandsPath, body)
	got, err := wire.DecodeCommandAnswer(b)
	if err != nil || status != http.StatusOK || got != s.commands.answer {
		t.Errorf("it answers %d %s: %v", status, b, err)
	}
	if s.commands.got.Staged != "one" || string(s.commands.got.Command) != `{"command":{"z":1,"a":2},"key":"k","sig":"s"}` {
		t.Errorf("it was handed %+v", s.commands.got)
	}
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{&wire.HarnessProblem{Status: http.StatusServiceUnavailable, Code: wire.CodeFailed, Detail: "no key"}, http.StatusServiceUnavailable, wire.CodeFailed},
		{errors.New("the disk is full"), http.StatusInternalServerError, wire.CodeFailed},
	} {
		s.commands.err = c.err
		if p := s.problem(http.MethodPost, wire.HarnessCommandsPath, body); p.Status != c.status || p.Code != c.code {
			t.Errorf("%v: it answers %+v", c.err, p)
		}
	}
}

// Promise: a delivery that is none is refused, and says why.
func TestDeliveriesThatAreNone(t *testing.T) {
	s := serve(t)
	for body, want := range map[string]string{
		"":                           "reading a command's delivery",
		"[]":                         "reading a command's delivery",
		`{"command":{},"stage":"a"}`: "stage",
		`{"command":{},"failed":"a","staged":"b"}`:                               "one of them",
		`{"command":"` + strings.Repeat("a", wire.MaxCommandBytes+70<<10) + `"}`: "more than",
	} {
		p := s.problem(http.MethodPost, wire.HarnessCommandsPath, body)
		if p.Status != http.StatusBadRequest || p.Code != wire.CodeBadBody || !strings.Contains(p.Detail, want) {
			t.Errorf("%.40s: it answers %+v, want it to say %q", body, p, want)
		}
	}
}

// Promise: what keeps the work from going on is said by the health.
func TestHealthSaysTroubles(t *testing.T) {
	s := serve(t)
	_, _, b := s.call(http.MethodGet, wire.HarnessHealthPath, "")
	h, err := wire.DecodeHarnessHealth(b)
	if err != nil || !h.OK || len(h.Notices) != 1 || !strings.Contains(h.Notices[0], "it is away") {
		t.Errorf("the health is %s: %v", b, err)
	}
}
