package rest_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"thermite/pkg/control/service"
)

// makeRig makes a rig with an idempotency key.
func makeRig(name, key, token string) ask {
	return ask{method: "POST", path: "/v1/rigs", token: token, body: `{"name":"` + name + `"}`, header: map[string]string{"Idempotency-Key": key}}
}

// Promise: a lost answer to "make a rig" loses no token: the same call with
// the same key gets the same answer, for 24 hours, and changes nothing more.
func TestSameKeySameAnswer(t *testing.T) {
	w := newWorld(t)
	first := w.do(makeRig("a", "k1", w.owner))
	if first.status != http.StatusCreated || first.header.Get("Location") != "/v1/rigs/a" {
		t.Fatalf("the first is answered %d %v", first.status, first.header)
	}
	w.clock.pass(23 * time.Hour)
	second := w.do(makeRig("a", "k1", w.owner))
	if second.status != first.status || string(second.body) != string(first.body) || second.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("the second is answered %d %s, the first %s", second.status, second.body, first.body)
	}
	var audit service.AuditPage
	w.get("/v1/audit?action=rig_made", &audit)
	if len(audit.Entries) != 1 {
		t.Errorf("the audit log has %d rigs made", len(audit.Entries))
	}
	w.clock.pass(2 * time.Hour)
	if r := w.do(makeRig("a", "k1", w.owner)); r.status != http.StatusConflict {
		t.Errorf("after a day it is answered %d %s", r.status, r.body)
	}
}

// Promise: a key stands for one request of one caller.
func TestKeyIsOneRequestsOfOneCaller(t *testing.T) {
	w := newWorld(t)
	other := w.token("owner", "second")
	if r := w.do(makeRig("a", "k1", w.owner)); r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if p := w.do(makeRig("b", "k1", w.owner)).problem(t); p.Code != service.CodeKeyReused {
		t.Errorf("the key for another request is answered %s", p.Code)
	}
	if r := w.do(makeRig("b", "k1", other)); r.status != http.StatusCreated {
		t.Errorf("another caller's same key is answered %d %s", r.status, r.body)
	}
	// The same key for another kind of call is another call.
	r := w.do(ask{method: "POST", path: "/v1/tokens", token: w.owner, body: `{"role":"reader","name":"x"}`, header: map[string]string{"Idempotency-Key": "k1"}})
	if r.status != http.StatusCreated {
		t.Errorf("the key for another kind of call is answered %d %s", r.status, r.body)
	}
}

// Promise: a call that failed may be made again with its key.
func TestFailureIsNotKept(t *testing.T) {
	w := newWorld(t)
	if r := w.do(makeRig("a", "", w.owner)); r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for range 2 {
		if p := w.do(makeRig("a", "k1", w.owner)).problem(t); p.Code != service.CodeRigExists {
			t.Errorf("it is answered %s", p.Code)
		}
	}
	if r := w.do(makeRig("b", "k1", w.owner)); r.status != http.StatusCreated {
		t.Errorf("the key of a failed call is answered %d %s", r.status, r.body)
	}
}

// Promise: many calls at once with one key make one rig and get one answer.
func TestSameKeyAtOnce(t *testing.T) {
	w := newWorld(t)
	const calls = 16
	bodies := make([]string, calls)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			r, err := w.try(makeRig("a", "k1", w.owner))
			if err != nil || r.status != http.StatusCreated {
				t.Errorf("%v %d %s", err, r.status, r.body)
			}
			bodies[i] = string(r.body)
		})
	}
	all.Wait()
	for _, b := range bodies {
		if b != bodies[0] {
			t.Errorf("one is answered %s, another %s", bodies[0], b)
		}
	}
}
