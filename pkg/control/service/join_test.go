package service

import "testing"

// Promise: whoever makes a rig, or gives it a new token, also learns the key
// that control signs its commands with: without it the rig takes none.
func TestARigIsToldWhatControlSignsWith(t *testing.T) {
	w := newWorld(t)
	owner := w.caller(w.owner)
	join, err := w.Join(t.Context(), owner)
	if err != nil || join.SigningKey == "" {
		t.Fatalf("what a rig must know: %+v, %v", join, err)
	}
	made, err := w.MakeRig(t.Context(), owner, NewRig{Name: "a"})
	if err != nil || made.Join != join {
		t.Errorf("a new rig gets %+v, %v", made.Join, err)
	}
	again, err := w.NewRigToken(t.Context(), owner, "a")
	if err != nil || again.Join != join || again.Token == made.Token {
		t.Errorf("with a new token it gets %+v, %v", again.Join, err)
	}
}
