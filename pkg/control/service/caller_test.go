package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"thermite/pkg/wire"
)

// Promise: each method checks who calls, whatever surface it is called from.
func TestEveryMethodChecksItsCaller(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	calls := []struct {
		name string
		may  May
		call func(Caller) error
	}{
		{"Health", MayAnyone, func(c Caller) error { _, err := w.Health(ctx, c); return err }},
		{"Bus", MayRead, func(c Caller) error { _, err := w.Bus(ctx, c); return err }},
		{"Rigs", MayRead, func(c Caller) error { _, err := w.Rigs(ctx, c, PageQuery{}); return err }},
		{"Rig", MayRead, func(c Caller) error { _, err := w.Rig(ctx, c, "a", RigQuery{}); return err }},
		{"RigEvents", MayRead, func(c Caller) error { _, err := w.RigEvents(ctx, c, "a", EventsQuery{}); return err }},
		{"RigHistory", MayRead, func(c Caller) error { _, err := w.RigHistory(ctx, c, "a", PageQuery{}); return err }},
		{"Audit", MayRead, func(c Caller) error { _, err := w.Audit(ctx, c, AuditQuery{}); return err }},
		{"Needs", MayRead, func(c Caller) error { _, err := w.Needs(ctx, c); return err }},
		{"SeeNeed", MayChange, func(c Caller) error { return w.SeeNeed(ctx, c, "1") }},
		{"Tokens", MayChange, func(c Caller) error { _, err := w.Tokens(ctx, c); return err }},
		{"MakeToken", MayChange, func(c Caller) error { _, err := w.MakeToken(ctx, c, NewToken{}); return err }},
		{"RevokeToken", MayChange, func(c Caller) error { return w.RevokeToken(ctx, c, "77") }},
		{"MakeRig", MayChange, func(c Caller) error { _, err := w.MakeRig(ctx, c, NewRig{}); return err }},
		{"NewRigToken", MayChange, func(c Caller) error { _, err := w.NewRigToken(ctx, c, "a"); return err }},
		{"RetireRig", MayChange, func(c Caller) error { _, err := w.RetireRig(ctx, c, "a"); return err }},
		{"RestoreRig", MayChange, func(c Caller) error { _, err := w.RestoreRig(ctx, c, "a"); return err }},
		{"AcceptReportKey", MayChange, func(c Caller) error { _, err := w.AcceptReportKey(ctx, c, "a", "x"); return err }},
		{"Authority", MayAnyone, func(c Caller) error { _, err := w.Authority(ctx, c); return err }},
		{"JoinRig", MayRegister, func(c Caller) error { _, err := w.JoinRig(ctx, c, "a"); return err }},
		{"RegisterRig", MayRegister, func(c Caller) error { _, err := w.RegisterRig(ctx, c, "a", wire.Registration{}); return err }},
	}
	callers := []Caller{w.caller(w.owner), w.caller(w.reader), {Role: RoleRig, Name: "a"}, Stranger("x"), {}, {Role: "nobody"}}
	for _, call := range calls {
		for _, c := range callers {
			code := codeOf(call.call(c))
			refused := code == CodeNotAllowed || code == CodeNotSignedIn
			if refused == call.may.Allowed(c.Role) {
				t.Errorf("%s by %q gets %q", call.name, c.Role, code)
			}
			if stranger := c.Role == RoleStranger || c.Role == ""; refused && stranger != (code == CodeNotSignedIn) {
				t.Errorf("%s by %q gets %q", call.name, c.Role, code)
			}
		}
	}
}

// Promise: every code has a kind and a meaning, and an error that nobody named is internal,
// with its own words kept to the log.
func TestErrors(t *testing.T) {
	for code, info := range Codes() {
		if info.Means == "" || (info.Kind == KindInternal) != (code == CodeInternal) {
			t.Errorf("%s is %+v", code, info)
		}
	}
	cause := errors.New("the disk's secret words")
	e := ErrorOf(cause)
	if e.Code != CodeInternal || e.Kind() != KindInternal || e.Text == cause.Error() || !errors.Is(e, cause) {
		t.Errorf("it is shown as %v %q", e.Code, e.Text)
	}
	if e := ErrorOf(fmt.Errorf("reading: %w", context.Canceled)); e.Code != CodeCancelled {
		t.Errorf("an ended call is shown as %v", e.Code)
	}
	named := invalid("body.name", errors.New("no"))
	if ErrorOf(named) != named {
		t.Error("a named error is another")
	}
}

// Promise: every code that the source names is in the catalogue.
func TestCatalogueIsWhole(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^\tCode\w+ +Code = "(\w+)"$`).FindAllSubmatch(source, -1)
	if len(all) != len(Codes()) {
		t.Errorf("%d codes are named, and %d are in the catalogue", len(all), len(Codes()))
	}
	for _, m := range all {
		if _, ok := Codes()[Code(m[1])]; !ok {
			t.Errorf("%s is not in the catalogue", m[1])
		}
	}
}

// Promise: a failure of control's store is internal and tells no caller of
// the store.
func TestStoreFailureIsInternal(t *testing.T) {
	w := newWorld(t)
	owner := w.caller(w.owner)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := w.Rigs(context.WithoutCancel(t.Context()), owner, PageQuery{})
	if e := ErrorOf(err); err == nil || e.Code != CodeInternal {
		t.Errorf("it is %v", err)
	}
	h, err := w.Health(context.WithoutCancel(t.Context()), owner)
	if err != nil || h.Status != HealthDegraded || h.Store.OK || h.Store.Error == "" {
		t.Errorf("health is %+v, %v", h, err)
	}
	if h, _ := w.Health(context.WithoutCancel(t.Context()), Stranger("x")); h.Store.Error != "" || h.Build != "" {
		t.Errorf("a stranger is told %+v", h)
	}
}
