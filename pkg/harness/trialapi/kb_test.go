package trialapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

// knowledge stands for the knowledge base.
type knowledge struct {
	mu    sync.Mutex
	files map[string]string
	wrote []wire.KBWrite
	asked []wire.KBQuery
	of    []trialapi.Ref
}

func (k *knowledge) PutFile(_ context.Context, sum string, r io.Reader) error {
	b, err := io.ReadAll(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files[sum] = string(b)
	return err
}

func (k *knowledge) WriteItem(_ context.Context, trial trialapi.Ref, w wire.KBWrite) (wire.KBWritten, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wrote, k.of = append(k.wrote, w), append(k.of, trial)
	return wire.KBWritten{Slot: "trial-1", Key: w.Key, Event: 7}, nil
}

func (k *knowledge) SearchKB(_ context.Context, trial trialapi.Ref, q wire.KBQuery) (wire.KBHits, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked, k.of = append(k.asked, q), append(k.of, trial)
	return wire.KBHits{Hits: []wire.KBHit{{KBWhere: wire.KBWhere{ID: "3", Title: "found", At: wire.At(time.Unix(1_790_000_000, 0))}, Snippet: "s"}}}, nil
}

func (k *knowledge) ReadKB(context.Context, trialapi.Ref, wire.KBRead) (wire.KBText, error) {
	return wire.KBText{}, &wire.TrialProblem{Code: wire.TrialAway, Detail: "control is away"}
}

// Promise: a trial's worker writes items and files and searches as its own
// trial: what names another run, slot or size is refused, by its field.
func TestAWorkerAndTheKnowledgeBase(t *testing.T) {
	k := &knowledge{files: map[string]string{}}
	w := serveAs(t, trialapi.Config{KB: k})
	trial := w.admit(1)
	sum := sha256.Sum256([]byte("bytes"))
	file := hex.EncodeToString(sum[:])
	for _, c := range []struct {
		method, path, body string
		status             int
		words              string
	}{
		{"PUT", wire.TrialKBFilesPath + "/" + file, "bytes", http.StatusNoContent, ""},
		{"PUT", wire.TrialKBFilesPath + "/" + strings.ToUpper(file), "bytes", http.StatusNotFound, "no SHA-256"},
		{"PUT", wire.TrialKBFilesPath + "/../items", "bytes", http.StatusNotFound, ""},
		{"POST", wire.TrialKBItemsPath, `{"key":"a","title":"t","text":"x","file":{"name":"f","sha256":"` + file + `"}}`, http.StatusCreated, `"event":7`},
		{"POST", wire.TrialKBItemsPath, `{"key":"a","title":"t","slot":"planner"}`, http.StatusBadRequest, "slot"},
		{"POST", wire.TrialKBItemsPath, `{"key":"a","title":"t","run":"other"}`, http.StatusBadRequest, "run"},
		{"POST", wire.TrialKBItemsPath, `{"key":"A","title":"t"}`, http.StatusBadRequest, "key"},
		{"POST", wire.TrialKBItemsPath, `{"key":"a","title":"t","file":{"name":"../f","sha256":"` + file + `"}}`, http.StatusBadRequest, "file.name"},
		{"POST", wire.TrialKBSearchPath, `{"words":"lattice"}`, http.StatusOK, "found"},
		{"POST", wire.TrialKBSearchPath, `{"words":"lattice","run":"other"}`, http.StatusBadRequest, "run"},
		{"POST", wire.TrialKBSearchPath, `{"words":""}`, http.StatusBadRequest, "words is missing"},
		{"POST", wire.TrialKBSearchPath, `{"words":"a","limit":51}`, http.StatusBadRequest, "limit"},
		{"GET", wire.TrialKBItemsPath + "/3", "", http.StatusServiceUnavailable, "control is away"},
		{"GET", wire.TrialKBItemsPath + "/x", "", http.StatusNotFound, "no item"},
		{"GET", wire.TrialKBItemsPath + "/3?run=other", "", http.StatusBadRequest, "run"},
	} {
		status, body := trial.call(c.method, c.path, c.body)
		if status != c.status || !strings.Contains(body, c.words) {
			t.Errorf("%s %s %s: %d %s, where %d with %q was due", c.method, c.path, c.body, status, body, c.status, c.words)
		}
	}
	if len(k.wrote) != 1 || len(k.asked) != 1 || k.files[file] != "bytes" || len(k.files) != 1 {
		t.Errorf("the knowledge base got %+v", k)
	}
	for _, of := range k.of {
		if of.Trial != 1 {
			t.Errorf("a call came as of %+v", of)
		}
	}
	trial.Stop("the run is stopped")
	if status, body := trial.call("POST", wire.TrialKBItemsPath, `{"key":"a","title":"t"}`); status != http.StatusConflict || !strings.Contains(body, "the run is stopped") {
		t.Errorf("a trial that must end writes: %d %s", status, body)
	}
}

// call makes a call of the trial's.
func (t *trial) call(method, path, body string) (int, string) {
	t.w.t.Helper()
	status, _, b := t.w.do("Bearer "+t.token, method, path, body)
	return status, string(b)
}
