package api_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"thermite/pkg/harness/api"
	"thermite/pkg/harness/routes"
	"thermite/pkg/wire"
)

// Promise: the harness takes a config value and says which it has, never what
// it is: not in an answer, a refusal or its log.
func TestConfigIsTakenAndNotShown(t *testing.T) {
	const planted = "planted-9c1"
	var log bytes.Buffer
	held := routes.New()
	server := api.New(api.Config{Routes: held, Rig: "alpha", Log: slog.New(slog.NewTextHandler(&log, nil))})
	call := func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		b, _ := io.ReadAll(w.Result().Body)
		return w.Code, string(b)
	}
	revision := strings.Repeat("a", 43)
	good, err := wire.EncodeConfigHand(revision, wire.ModelRouteConfig{Agents: &wire.ModelRoute{Name: "main", API: wire.APIOpenAIChat,
		BaseURL: "https://h", Model: "m", Key: planted}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{http.MethodGet, "/v1/config/model-route", "", 200, `"held":false`},
		{http.MethodPut, "/v1/config/model-route", string(good), 200, revision},
		{http.MethodGet, "/v1/config/model-route", "", 200, `"held":true`},
		{http.MethodPut, "/v1/config/model-route", `{"value":{"agents":"` + planted + `"}}`, 400, "bad_body"},
		{http.MethodPut, "/v1/config/mcp-servers", string(good), 400, "bad_body"},
		{http.MethodPut, "/v1/config/git-access", string(good), 404, "takes no config of the key git-access"},
		{http.MethodPut, "/v1/config/", "{}", 404, "not_found"},
		{http.MethodPost, "/v1/config/model-route", "{}", 405, "GET, PUT"},
		{http.MethodGet, "/v1/config/model-route?x=1", "", 400, "bad_query"},
		{http.MethodPut, "/v1/config/model-route", strings.Repeat("x", wire.MaxConfigBytes+1), 400, "bytes"},
	} {
		status, body := call(c.method, c.path, c.body)
		if status != c.status || !strings.Contains(body, c.says) || strings.Contains(body, planted) {
			t.Errorf("%s %s answers %d: %.300s", c.method, c.path, status, body)
		}
	}
	if v, known := held.ModelRoute(); !known || v.Agents.Key != planted {
		t.Error("what was refused changed what it has")
	}
	if strings.Contains(log.String(), planted) {
		t.Errorf("its log says %s", log.String())
	}
}
