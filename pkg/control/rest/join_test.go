package rest_test

import (
	"net/http"
	"testing"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Promise: the answer that makes a rig has, beside its token, the key that
// control signs its commands with, as the rig's harness reads it.
func TestANewRigIsToldWhatControlSignsWith(t *testing.T) {
	w := newWorld(t)
	join, err := w.service.Join(t.Context(), service.Caller{Role: service.RoleOwner})
	if err != nil {
		t.Fatal(err)
	}
	r := w.do(ask{method: "POST", path: "/v1/rigs", token: w.owner, body: `{"name":"a"}`})
	var made service.RigToken
	decode(t, r.body, &made)
	var key wire.PublicKey
	if err := key.UnmarshalText([]byte(made.Join.SigningKey)); r.status != http.StatusCreated || err != nil || made.Join != join {
		t.Errorf("it is answered %d %s: %v", r.status, r.body, err)
	}
}
