package mcp_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Promise: whatever a client sends, it gets an answer in the protocol's JSON
// or a refusal by HTTP, and nothing panics.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"rig":"workshop","run":"pack26"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_attempts","arguments":{"rig":"workshop","run":"pack26","limit":1e9,"after":"\ud800"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"queue_add","arguments":{"rig":"workshop","run":"pack26","title":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"thermite://runs/a/%zz"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"x"},"argument":{"name":"rig","value":"w"}}}`,
		`[]`, `{}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		f.Add([]byte(s))
	}
	w := newWorld(f)
	// The test's own log would grow with each input.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+w.owner)
		answer := httptest.NewRecorder()
		w.mcp.ServeHTTP(answer, r)
		b, err := io.ReadAll(answer.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Code >= 500 {
			t.Errorf("%d: %s", answer.Code, b)
		}
		if answer.Code == http.StatusOK {
			var v jsontext.Value
			if err := json.Unmarshal(b, &v); err != nil {
				t.Errorf("%v: %s", err, b)
			}
		}
	})
}
