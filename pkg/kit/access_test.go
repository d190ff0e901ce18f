package kit_test

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"encoding/pem"

	"thermite/pkg/kit"
)

// gitHost serves the repository by https with the real git, to who signs in.
type gitHost struct {
	*httptest.Server
	mu sync.Mutex
	// asked are the sign-ins that came, as user:password.
	asked []string
}

func (h *gitHost) signIns() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.asked...)
}

func serveGit(t *testing.T, dir, user, password string) *gitHost {
	t.Helper()
	gitIn(t, dir, "config", "uploadpack.allowAnySHA1InWant", "true")
	gitIn(t, dir, "config", "http.receivepack", "false")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	h := &gitHost{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, ok := r.BasicAuth()
		if ok {
			h.mu.Lock()
			h.asked = append(h.asked, u+":"+p)
			h.mu.Unlock()
		}
		if u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "sign in", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_SSL_CAINFO", ca)
	return h
}

// Promise: a Git access signs in at its own host, and no other host is told of
// it; a secret that is wrong, or holds what a shell would read, is in no error.
func TestAccessIsForItsHost(t *testing.T) {
	dir, commit := bareOf(t)
	const secret = `s3cr'et $(touch /tmp/x) "q`
	h := serveGit(t, dir, "thermite", secret)
	host := strings.TrimPrefix(h.URL, "https://")
	source := kit.Source{Git: h.URL + "/" + filepath.Base(dir), Commit: commit, Access: &kit.Access{Host: host, Username: "thermite", Secret: secret}}
	staged, err := kit.Stage(t.Context(), source, filepath.Join(t.TempDir(), "into"))
	if err != nil {
		t.Fatal(err)
	}
	if staged.Commit != commit || len(h.signIns()) == 0 {
		t.Errorf("it staged %s with %d sign-ins", staged.Commit, len(h.signIns()))
	}
	before := len(h.signIns())
	for name, access := range map[string]*kit.Access{
		"none":           nil,
		"another host's": {Host: "git.example.org", Username: "thermite", Secret: secret},
	} {
		source.Access = access
		if _, err := kit.Stage(t.Context(), source, filepath.Join(t.TempDir(), "into")); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := h.signIns(); len(got) != before {
		t.Errorf("the host was told %d sign-ins that are not for it", len(got)-before)
	}
	source.Access = &kit.Access{Host: host, Username: "thermite", Secret: "wrong"}
	if _, err := kit.Stage(t.Context(), source, filepath.Join(t.TempDir(), "into")); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong secret it says %v", err)
	}
	if words := fmt.Sprintf("%v %+v %#v", source.Access, source.Access, source.Access); strings.Contains(words, "wrong") {
		t.Errorf("printed it shows %s", words)
	}
}

// bareOf is a kit that ships, as a bare repository, which http-backend serves.
func bareOf(t *testing.T) (dir, commit string) {
	t.Helper()
	staged, err := kit.Stage(t.Context(), kit.Source{Embedded: "bytecount"}, filepath.Join(t.TempDir(), "staged"))
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(t.TempDir(), "work")
	if err := staged.Files.Write(work); err != nil {
		t.Fatal(err)
	}
	gitIn(t, work, "init", "--quiet", "--initial-branch=main")
	gitIn(t, work, "add", "-A")
	gitIn(t, work, "commit", "--quiet", "-m", "A kit")
	dir = filepath.Join(t.TempDir(), "kit.git")
	gitIn(t, work, "clone", "--quiet", "--bare", ".", dir)
	return dir, gitIn(t, work, "rev-parse", "HEAD")
}
