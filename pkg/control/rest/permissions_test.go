package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"thermite/pkg/control/store"
)

// permission is who may call a route: what each is answered.
type permission struct {
	method, path string
	body         string
	// owner, reader, rig and stranger are the statuses that each gets.
	owner, reader, rig, stranger int
}

const (
	ok        = http.StatusOK
	made      = http.StatusCreated
	empty     = http.StatusNoContent
	forbidden = http.StatusForbidden
	unknown   = http.StatusUnauthorized
	missing   = http.StatusNotFound
	conflict  = http.StatusConflict
)

// Each row is made in a world of its own, with the rig a, which has the run
// p, and the rig z retired. {reg} is a good registration.
var permissions = []permission{
	{"GET", "/v1/health", "", ok, ok, ok, ok},
	{"GET", "/v1/authority", "", ok, ok, ok, ok},
	{"GET", "/v1/bus", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/rigs", "", ok, ok, forbidden, unknown},
	{"POST", "/v1/rigs", `{"name":"b"}`, made, forbidden, forbidden, unknown},
	{"GET", "/v1/rigs/a", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/rigs/a/events", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/rigs/a/history", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/rigs/a/daily", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/rigs/a/daily/newest", "", missing, missing, forbidden, unknown},
	{"GET", "/v1/rigs/a/space", "", ok, ok, forbidden, unknown},
	{"POST", "/v1/rigs/a/space/remove", `{"kinds":["build"]}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/retire", "", ok, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/z/restore", "", ok, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/token", "", ok, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/report-key", `{"fingerprint":"AAAAAAAAAAAAAAAAAAAAAA"}`, conflict, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/supervisor", "{reg}", forbidden, forbidden, ok, unknown},
	{"POST", "/v1/rigs/z/supervisor", "{reg}", forbidden, forbidden, forbidden, unknown},
	{"GET", "/v1/rigs/a/join", "", forbidden, forbidden, ok, unknown},
	{"GET", "/v1/rigs/z/join", "", forbidden, forbidden, forbidden, unknown},
	{"GET", "/v1/runs", "", ok, ok, forbidden, unknown},
	{"POST", "/v1/runs", `{"rig":"a","kit":{"embedded":"bytecount"}}`, made, forbidden, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p", "", ok, ok, forbidden, unknown},
	{"PATCH", "/v1/rigs/a/runs/p", `{"lanes":2}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/pause", `{}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/resume", `{}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/stop", `{"why":"done"}`, made, forbidden, forbidden, unknown},
	{"GET", "/v1/live", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/live?rig=a&run=p", "", missing, missing, forbidden, unknown},
	{"GET", "/v1/live/stream?run=p", "", http.StatusUnprocessableEntity, http.StatusUnprocessableEntity, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/queue", "", ok, ok, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/queue", `{"title":"x"}`, made, forbidden, forbidden, unknown},
	{"PATCH", "/v1/rigs/a/runs/p/queue/1", `{"title":"x"}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/queue/1/move", `{"position":1}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/queue/1/drop", `{}`, made, forbidden, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/trials/1/screen", "", ok, ok, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/trials/1/message", `{"text":"x"}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/trials/1/stop", `{}`, made, forbidden, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/attempts", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/attempts/9", "", missing, missing, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/attempts/9/patch", "", missing, missing, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/prompts", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/prompts/9000", "", missing, missing, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/attempts/1/disqualify", `{"why":"x"}`, made, forbidden, forbidden, unknown},
	{"POST", "/v1/rigs/a/runs/p/attempts/1/rejudge", `{}`, made, forbidden, forbidden, unknown},
	{"GET", "/v1/rigs/a/runs/p/champion", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/campaigns", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/campaigns/none", "", missing, missing, forbidden, unknown},
	{"GET", "/v1/model-routes", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/model-routes/none", "", missing, missing, forbidden, unknown},
	{"PUT", "/v1/model-routes/main", `{"api":"openai-chat","base_url":"https://api.example.org/v1","model":"m","uses":[]}`, ok, forbidden, forbidden, unknown},
	{"DELETE", "/v1/model-routes/none", "", missing, forbidden, forbidden, unknown},
	{"GET", "/v1/mcp-servers", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/mcp-servers/none", "", missing, missing, forbidden, unknown},
	{"PUT", "/v1/mcp-servers/papers", `{"url":"https://mcp.example.org/mcp"}`, ok, forbidden, forbidden, unknown},
	{"DELETE", "/v1/mcp-servers/none", "", missing, forbidden, forbidden, unknown},
	{"GET", "/v1/git-accesses", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/git-accesses/none", "", missing, missing, forbidden, unknown},
	{"PUT", "/v1/git-accesses/kits", `{"host":"git.example.org","username":"u","secret":"s"}`, ok, forbidden, forbidden, unknown},
	{"DELETE", "/v1/git-accesses/none", "", missing, forbidden, forbidden, unknown},
	{"GET", "/v1/kits", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/kits/bytecount", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/kb/search?q=x", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/kb/items", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/kb/items/9", "", missing, missing, forbidden, unknown},
	{"GET", "/v1/kb/items/9/file", "", missing, missing, forbidden, unknown},
	{"GET", "/v1/kb/collections", "", ok, ok, forbidden, unknown},
	{"PATCH", "/v1/kb/collections/none", `{"state":"closed"}`, missing, forbidden, forbidden, unknown},
	{"GET", "/v1/commands", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/commands/aaaaaaaaaaaaaaaaaaaaaaaaaa", "", missing, missing, forbidden, unknown},
	{"POST", "/v1/commands/aaaaaaaaaaaaaaaaaaaaaaaaaa/cancel", "", missing, forbidden, forbidden, unknown},
	{"GET", "/v1/audit", "", ok, ok, forbidden, unknown},
	{"GET", "/v1/needs", "", ok, ok, forbidden, unknown},
	{"POST", "/v1/needs/99/seen", "", missing, forbidden, forbidden, unknown},
	{"GET", "/v1/tokens", "", ok, forbidden, forbidden, unknown},
	{"POST", "/v1/tokens", `{"role":"reader","name":"x"}`, made, forbidden, forbidden, unknown},
	{"DELETE", "/v1/tokens/99", "", missing, forbidden, forbidden, unknown},
}

// Promise: each route may be called by those that the design says, and by
// nobody else, whatever its body.
func TestPermissions(t *testing.T) {
	for _, p := range permissions {
		t.Run(p.method+" "+p.path, func(t *testing.T) {
			w := newWorld(t)
			tokens := map[string]string{"owner": w.owner, "reader": w.token(store.RoleReader, "r"), "rig": w.rig("a"), "stranger": ""}
			if strings.Contains(p.path, "/runs/p") {
				w.makeRun("a", "p")
			}
			w.rig("z")
			w.do(ask{method: "POST", path: "/v1/rigs/z/retire", token: w.owner})
			body := strings.ReplaceAll(p.body, "{reg}", registration(t))
			// The owner comes last, as the owner's call may change what the
			// others are answered.
			for _, who := range []string{"stranger", "reader", "rig", "owner"} {
				want := map[string]int{"owner": p.owner, "reader": p.reader, "rig": p.rig, "stranger": p.stranger}[who]
				r := w.do(ask{method: p.method, path: p.path, token: tokens[who], body: body})
				if r.status != want {
					t.Errorf("the %s is answered %d, not %d: %s", who, r.status, want, r.body)
				}
				if r.status == unknown || r.status == forbidden {
					r.problem(t)
					if r.header.Get("WWW-Authenticate") == "" {
						t.Errorf("the %s is answered %d without WWW-Authenticate", who, r.status)
					}
				}
			}
		})
	}
}

// Promise: every route is in the table above.
func TestPermissionsNameEveryRoute(t *testing.T) {
	w := newWorld(t)
	for path, item := range w.api.Document().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil && !slices.ContainsFunc(permissions, func(p permission) bool { return p.method == op.Method && fits(path, p.path) }) {
				t.Errorf("%s %s is not in the table of permissions", op.Method, path)
			}
		}
	}
}

// fits says whether the path is one of the pattern's.
func fits(pattern, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	a, b := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !strings.HasPrefix(a[i], "{") {
			return false
		}
	}
	return true
}

// Promise: a refused caller's body is not read, and a call that is refused
// changes nothing.
func TestRefusedCallersChangeNothing(t *testing.T) {
	w := newWorld(t)
	r := w.do(ask{method: "POST", path: "/v1/rigs", body: "this is no JSON"})
	if r.status != unknown {
		t.Errorf("a stranger's bad body is answered %d", r.status)
	}
	if _, err := w.rigs.Get(t.Context(), "b"); err == nil {
		t.Errorf("a stranger made a rig")
	}
}
