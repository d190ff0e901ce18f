package register

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/bus"
	"thermite/pkg/files"
	"thermite/pkg/wire"
)

const (
	wait  = time.Minute
	token = "rig-token-of-alpha-which-no-log-may-hold"
)

// control is a scripted HTTPS server in control's place.
type control struct {
	*httptest.Server
	authority *bus.Authority
	calls     atomic.Int64
}

func startControl(t *testing.T, answer http.HandlerFunc) *control {
	t.Helper()
	authority, err := bus.OpenAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c := &control{authority: authority}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.calls.Add(1)
		answer(w, r)
	}))
	config, err := authority.HTTPSConfig([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	// StartTLS would have a certificate of its own.
	c.Listener = tls.NewListener(c.Listener, config)
	c.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	c.Start()
	c.URL = strings.Replace(c.URL, "http:", "https:", 1)
	t.Cleanup(c.Close)
	return c
}

// client gives a client of it for the rig alpha.
func (c *control) client(t *testing.T, change func(*ClientConfig)) *Client {
	t.Helper()
	config := ClientConfig{URL: c.URL, Rig: "alpha", TokenFile: tokenFile(t, token+"\n"), Authority: c.authority.Pool(), Timeout: wait, Build: "v1"}
	if change != nil {
		change(&config)
	}
	return NewClient(config)
}

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func registration() wire.Registration {
	return wire.Registration{BusKey: "U" + strings.Repeat("A", 55), SealKey: wire.SealKey{9},
		Figures: wire.Figures{Build: "v1", StartedAt: wire.At(time.Unix(1, 0))}}
}

func registered(rig string) wire.Registered {
	return wire.Registered{Rig: rig, ControlKey: wire.PublicKey{1}, Place: wire.Place{Ledger: "ledger0a", Cursor: 5}}
}

// says answers with a status and a body.
func says(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// refuses answers with a problem, as control does.
func refuses(status int, code, detail string) http.HandlerFunc {
	return says(status, "application/problem+json", fmt.Sprintf(`{"title":"x","status":%d,"detail":%q,"code":%q,"request_id":"R"}`, status, detail, code))
}

func good(t *testing.T) http.HandlerFunc {
	b, err := wire.EncodeRegistered(registered("alpha"))
	if err != nil {
		t.Fatal(err)
	}
	return says(200, "application/json", string(b))
}

// Promise: the call is the one that control has, with the rig's token, and
// its answer is read.
func TestRegisters(t *testing.T) {
	c := startControl(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		got, err2 := wire.DecodeRegistration(b)
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(registration(), got, cmp.Comparer(func(a, b wire.Time) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
		if r.Method != "POST" || r.URL.Path != "/v1/rigs/alpha/supervisor" || r.Header.Get("Authorization") != "Bearer "+token ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
		}
		good(t)(w, r)
	})
	got, err := c.client(t, nil).Register(context.Background(), registration())
	if diff := cmp.Diff(registered("alpha"), got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// Promise: whatever comes in place of control's answer, the call fails with
// words that say what came and, where the owner can do something, what; and
// no error holds the token.
func TestBadAnswers(t *testing.T) {
	foreign, err := wire.EncodeRegistered(registered("beta"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   string // of the RefusedError that it must be
		says   []string
	}{
		"bad token":       {refuses(401, "bad_token", "the token is not known"), "bad_token", []string{"the token is not known", "put this rig's own token"}},
		"other rig":       {refuses(403, "not_allowed", "a rig's token is for that rig"), "not_allowed", []string{"put this rig's own token"}},
		"no rig":          {refuses(404, "no_rig", "there is no rig alpha"), "no_rig", []string{"thermite rig add"}},
		"key is held":     {refuses(409, "bus_key_refused", "the key on the message bus K is another's already. remove bus-key.seed"), "bus_key_refused", []string{"remove bus-key.seed"}},
		"seal key":        {refuses(409, "seal_key_refused", "remove bus-seal.pem"), "seal_key_refused", []string{"remove bus-seal.pem"}},
		"retired":         {refuses(409, "rig_retired", "rig alpha is retired: bring it back first"), "rig_retired", []string{"bring it back first"}},
		"bus away":        {refuses(503, "bus_away", "the change is recorded"), "bus_away", []string{"503", "the change is recorded"}},
		"too many":        {refuses(429, "too_many_calls", "wait"), "too_many_calls", []string{"429"}},
		"versions":        {refuses(422, "invalid", "body.figures: unknown field"), "invalid", []string{"update the older one"}},
		"internal":        {refuses(500, "internal", "something failed"), "internal", []string{"500"}},
		"500 in HTML":     {says(500, "text/html", "<h1>nginx</h1>"), "", []string{"what answers there is not control", "500", "text/html"}},
		"problem of none": {says(502, "application/problem+json", `{}`), "", []string{"not control", "502"}},
		"problem garbage": {says(502, "application/problem+json", "\x00\xff"), "", []string{"not control"}},
		"HTML":            {says(200, "text/html", "<h1>hello</h1>"), "", []string{"not control", "200"}},
		"no type":         {says(200, "", "{}"), "", []string{"not control"}},
		"garbage":         {says(200, "application/json", "\x00\x01"), "", []string{"not control"}},
		"empty":           {says(200, "application/json", ""), "", []string{"not control"}},
		"two":             {says(200, "application/json", string(foreign)+string(foreign)), "", []string{"not control"}},
		"foreign":         {says(200, "application/json", string(foreign)), "", []string{`it is for rig "beta", not "alpha"`}},
		"no key":          {says(200, "application/json", `{"control_key":"`+strings.Repeat("A", 43)+`","place":{"cursor":0,"ledger":""},"rig":"alpha"}`), "", []string{"control_key is missing"}},
		"unknown field":   {says(200, "application/json", strings.Replace(string(foreign), "{", `{"x":1,`, 1)), "", []string{"x"}},
		"no content":      {says(204, "", ""), "", []string{"204"}},
		"huge": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for line := strings.Repeat(" ", 64<<10); ; {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}, "", []string{"more than 1048576 bytes"}},
		"long words": {refuses(409, "overtaken", strings.Repeat("word\n", 5000)), "overtaken", []string{"word word", "…"}},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"rig":`)
			panic(http.ErrAbortHandler)
		}, "", []string{"registering rig alpha's keys"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := startControl(t, c.answer).client(t, nil).Register(context.Background(), registration())
			if err == nil {
				t.Fatal("the answer was taken")
			}
			var refused *RefusedError
			if errors.As(err, &refused); c.code != "" && (refused == nil || refused.Code != c.code) || c.code == "" && refused != nil {
				t.Errorf("the refusal is %+v, not %q", refused, c.code)
			}
			text := err.Error()
			for _, says := range c.says {
				if !strings.Contains(text, says) {
					t.Errorf("it does not say %q: %s", says, text)
				}
			}
			if strings.Contains(text, token) || strings.Contains(text, "\n") || len(text) > 1500 {
				t.Errorf("it holds the token, more than a line, or too much: %s", text)
			}
		})
	}
}

// Promise: a redirect is not followed, so the token goes to control's address
// and nowhere else.
func TestRedirectIsNotFollowed(t *testing.T) {
	other := startControl(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the other got %v", r.Header) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := startControl(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/v1/rigs/alpha/supervisor", status)
		})
		_, err := c.client(t, nil).Register(context.Background(), registration())
		if err == nil || !strings.Contains(err.Error(), "where the rig's token does not go") {
			t.Errorf("%d gives %v", status, err)
		}
	}
	if other.calls.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// Promise: a call that hangs ends in its time, and one that is given up ends
// at once.
func TestHangingCallEnds(t *testing.T) {
	c := startControl(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the caller goes
		<-r.Context().Done()
	})
	client := c.client(t, func(c *ClientConfig) { c.Timeout = 50 * time.Millisecond })
	_, err := client.Register(context.Background(), registration())
	if err == nil || !strings.Contains(err.Error(), "it gave no whole answer in 50ms") {
		t.Errorf("a hanging call gives %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.client(t, nil).Register(ctx, registration()); !errors.Is(err, context.Canceled) {
		t.Errorf("a call given up gives %v", err)
	}
}

// Promise: control is known by its authority's certificate alone, and the
// token is sent to nobody else.
func TestOnlyTheAuthoritysServerGetsTheToken(t *testing.T) {
	c := startControl(t, good(t))
	stranger, err := bus.OpenAuthority(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, pool := range map[string]*x509.CertPool{"another authority": stranger.Pool(), "none": x509.NewCertPool()} {
		_, err := c.client(t, func(c *ClientConfig) { c.Authority = pool }).Register(context.Background(), registration())
		if err == nil || !strings.Contains(err.Error(), "copy control's authority.pem") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(c.URL, "https://"))
	_, err = c.client(t, func(c *ClientConfig) { c.URL = "https://localhost:" + port }).Register(context.Background(), registration())
	if err == nil || !strings.Contains(err.Error(), "add this one to control's names") {
		t.Errorf("a certificate for another name: %v", err)
	}
	if c.calls.Load() != 0 {
		t.Error("a call came through")
	}
}

// Promise: a token file that holds no token is said, and nothing is sent; a
// new token counts at once.
func TestTokenFile(t *testing.T) {
	var got atomic.Value
	c := startControl(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		good(t)(w, r)
	})
	for name, text := range map[string]string{"empty": "", "blank": " \n", "two words": "one two", "two lines": "one\ntwo", "not ASCII": "tokén", "huge": strings.Repeat("x", files.MaxSecret+1)} {
		_, err := c.client(t, func(c *ClientConfig) { c.TokenFile = tokenFile(t, text) }).Register(context.Background(), registration())
		if err == nil || text != "" && strings.Contains(err.Error(), text) && name != "blank" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := c.client(t, func(c *ClientConfig) { c.TokenFile = "/no/such/file" }).Register(context.Background(), registration())
	if !errors.Is(err, os.ErrNotExist) || c.calls.Load() != 0 {
		t.Errorf("no file: %v, and %d calls", err, c.calls.Load())
	}
	path := tokenFile(t, "first")
	client := c.client(t, func(c *ClientConfig) { c.TokenFile = path })
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Register(context.Background(), registration()); err != nil || got.Load() != "Bearer "+token {
			t.Errorf("%s: %v, and control got %v", token, err, got.Load())
		}
	}
}

// Promise: the supervisor tries until control has the keys, and says why it
// must, once for each reason; a lost answer is called again.
func TestUntilControlHasTheKeys(t *testing.T) {
	var calls atomic.Int64
	c := startControl(t, func(w http.ResponseWriter, r *http.Request) {
		switch n := calls.Add(1); {
		case n <= 3:
			refuses(409, "bus_key_refused", "remove bus-key.seed")(w, r)
		case n <= 5:
			panic(http.ErrAbortHandler) // control took the keys, and its answer is lost
		default:
			good(t)(w, r)
		}
	})
	var log strings.Builder
	r := New(Config{Client: c.client(t, nil), BusKey: registration().BusKey, SealKey: registration().SealKey,
		Figures: func() wire.Figures { return registration().Figures }, Every: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if s := r.State(); s.State != "waiting" {
		t.Errorf("before: %+v", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	got, err := r.Until(ctx)
	if diff := cmp.Diff(registered("alpha"), got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if n := calls.Load(); n != 6 {
		t.Errorf("it took %d calls, not 6", n)
	}
	if n := strings.Count(log.String(), "control has not registered this rig's keys"); n != 2 {
		t.Errorf("the log says why %d times, not twice:\n%s", n, log.String())
	}
	if s := r.State(); s.State != "waiting" || strings.Contains(log.String(), token) {
		t.Errorf("after: %+v\n%s", s, log.String())
	}
}

// Promise: trying ends with the context, and the state says why until then.
func TestUntilEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := startControl(t, refuses(409, "rig_retired", "rig alpha is retired: bring it back first"))
	r := New(Config{Client: c.client(t, nil), Figures: func() wire.Figures { return registration().Figures }, Every: time.Hour,
		Log: slog.New(slog.DiscardHandler)})
	ended := make(chan error)
	go func() {
		_, err := r.Until(ctx)
		ended <- err
	}()
	for end := time.Now().Add(wait); r.State().State != "failing"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the state is %+v", r.State())
		}
	}
	if s := r.State(); !strings.Contains(s.Detail, "bring it back first") {
		t.Errorf("the state is %+v", s)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
