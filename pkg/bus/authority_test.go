package bus_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thermite/pkg/bus"
	"thermite/pkg/bus/bustest"
)

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{at: time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)} }

func openAuthority(t testing.TB, dir string, now func() time.Time) *bus.Authority {
	t.Helper()
	a, err := bus.OpenAuthority(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The authority is made once and read ever after, its key is its owner's
// alone, and it is an ECDSA P-256 authority that signs no other authority.
func TestAuthority(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	a := openAuthority(t, dir, c.now)
	again := openAuthority(t, dir, c.now)
	if a.Fingerprint() != again.Fingerprint() || string(a.PEM()) != string(again.PEM()) || len(a.Fingerprint()) != 22 {
		t.Errorf("opened again it is another: %s, %s", a.Fingerprint(), again.Fingerprint())
	}
	if other := openAuthority(t, t.TempDir(), c.now); other.Fingerprint() == a.Fingerprint() {
		t.Error("two authorities are one")
	}
	info, err := os.Stat(filepath.Join(dir, bus.AuthorityKeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	cert := parsePEM(t, a.PEM())
	if !cert.IsCA || !cert.MaxPathLenZero || cert.PublicKeyAlgorithm != x509.ECDSA || cert.PublicKey == nil {
		t.Errorf("it is %+v", cert)
	}
	if left := cert.NotAfter.Sub(c.at); left < 20*365*24*time.Hour {
		t.Errorf("it ends in %s, and nothing renews it", left)
	}
}

func parsePEM(t testing.TB, b []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(b)
	if block == nil {
		t.Fatal("no PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// An authority that can't be what it was is refused, never made again over
// the rigs' heads.
func TestAuthorityDamaged(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, cert, key string){
		"the key is gone":          func(t *testing.T, _, key string) { remove(t, key) },
		"the key is open":          func(t *testing.T, _, key string) { chmod(t, key, 0o640) },
		"the key is no key":        func(t *testing.T, _, key string) { write(t, key, "x") },
		"the key is another's":     func(t *testing.T, _, key string) { write(t, key, otherKey(t)) },
		"the certificate is none":  func(t *testing.T, cert, _ string) { write(t, cert, "") },
		"the certificate is cut":   func(t *testing.T, cert, _ string) { write(t, cert, read(t, cert)[:200]) },
		"there is more behind it":  func(t *testing.T, cert, _ string) { write(t, cert, read(t, cert)+read(t, cert)) },
		"the certificate is a key": func(t *testing.T, cert, key string) { write(t, cert, read(t, key)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			openAuthority(t, dir, time.Now)
			cert, key := filepath.Join(dir, bus.AuthorityFile), filepath.Join(dir, bus.AuthorityKeyFile)
			damage(t, cert, key)
			if _, err := bus.OpenAuthority(dir, time.Now); err == nil || !strings.Contains(err.Error(), "authority.") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A stop before the certificate was kept leaves a key that nobody has seen:
// the authority is made again.
func TestAuthorityHalfMade(t *testing.T) {
	dir := t.TempDir()
	openAuthority(t, dir, time.Now)
	remove(t, filepath.Join(dir, bus.AuthorityFile))
	openAuthority(t, dir, time.Now)
	openAuthority(t, dir, time.Now)
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func chmod(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func otherKey(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	openAuthority(t, dir, time.Now)
	return read(t, filepath.Join(dir, bus.AuthorityKeyFile))
}

// The server's certificate is made once, for each name and address, and made
// again with 30 of its 90 days left, when the names change, and when it is
// not this authority's or does not fit its key.
func TestKeepServerCert(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	a := openAuthority(t, t.TempDir(), c.now)
	names := []string{"nats", "Bus.Example.ORG.", "10.0.0.7", "::1", "nats"}
	keep := func(what string, want bool, names ...string) {
		t.Helper()
		renewed, err := a.KeepServerCert(dir, names)
		if err != nil || renewed != want {
			t.Errorf("%s: renewed %v, %v", what, renewed, err)
		}
		verify(t, a, dir, c.at, names)
	}
	keep("at first", true, names...)
	keep("again", false, names...)
	keep("in another order", false, "::1", "10.0.0.7", "bus.example.org", "nats")
	cert := parsePEM(t, []byte(read(t, filepath.Join(dir, bus.CertFile))))
	if diff := cmp.Diff([]string{"bus.example.org", "nats"}, cert.DNSNames); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, cert.ExtKeyUsage); diff != "" {
		t.Error(diff)
	}
	if life := cert.NotAfter.Sub(c.at); life != 90*24*time.Hour {
		t.Errorf("it is good for %s", life)
	}
	c.at = c.at.Add(60*24*time.Hour - time.Second)
	keep("with a little over 30 days left", false, names...)
	c.at = c.at.Add(time.Second)
	keep("with 30 days left", true, names...)
	c.at = c.at.Add(300 * 24 * time.Hour)
	keep("long after its end", true, names...)
	keep("with a name more", true, append(names, "more")...)
	keep("with a name less", true, names...)

	write(t, filepath.Join(dir, bus.KeyFile), otherKey(t))
	keep("with another key", true, names...)
	remove(t, filepath.Join(dir, bus.KeyFile))
	keep("with no key", true, names...)
	if _, err := openAuthority(t, t.TempDir(), c.now).KeepServerCert(dir, names); err != nil {
		t.Fatal(err)
	}
	keep("with another authority's", true, names...)
	for file, mode := range map[string]os.FileMode{bus.CertFile: 0o644, bus.KeyFile: 0o640} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	for _, bad := range [][]string{nil, {""}, {"a b"}, {"-a"}, {"a", "b\nc"}, {"tls://a"}, {"a:4222"}, {strings.Repeat("a", 300)}} {
		if _, err := a.KeepServerCert(dir, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// verify holds that the certificate in dir is good for each name at the time,
// for a server and for a client.
func verify(t testing.TB, a *bus.Authority, dir string, at time.Time, names []string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, bus.CertFile), filepath.Join(dir, bus.KeyFile))
	if err != nil {
		t.Error(err)
		return
	}
	for _, name := range names {
		for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: strings.TrimSuffix(name, "."), CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Control's own certificate renews by itself, before it ends, without a
// restart.
func TestHTTPSConfig(t *testing.T) {
	c := newClock()
	a := openAuthority(t, t.TempDir(), c.now)
	cfg, err := a.HTTPSConfig([]string{"127.0.0.1", "control"})
	if err != nil {
		t.Fatal(err)
	}
	first := handshake(t, a, cfg, c.at)
	if again := handshake(t, a, cfg, c.at); again.SerialNumber.Cmp(first.SerialNumber) != 0 {
		t.Error("it is made again for each connection")
	}
	c.at = c.at.Add(61 * 24 * time.Hour)
	if later := handshake(t, a, cfg, c.at); later.SerialNumber.Cmp(first.SerialNumber) == 0 {
		t.Error("it is not renewed")
	}
	if cfg.MinVersion != tls.VersionTLS13 {
		t.Error("it takes less than TLS 1.3")
	}
	if _, err := a.HTTPSConfig(nil); err == nil {
		t.Error("no name is taken")
	}
}

func handshake(t testing.TB, a *bus.Authority, cfg *tls.Config, at time.Time) *x509.Certificate {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		server := tls.Server(far, cfg)
		_ = server.Handshake()
		_, _ = io.Copy(io.Discard, server)
	}()
	client := tls.Client(near, &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1", Time: func() time.Time { return at }})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	return client.ConnectionState().PeerCertificates[0]
}

// A pool is read from the authority's file, and from nothing else.
func TestReadPool(t *testing.T) {
	dir := t.TempDir()
	a := openAuthority(t, dir, time.Now)
	pool, err := bus.ReadPool(filepath.Join(dir, bus.AuthorityFile))
	if err != nil || !pool.Equal(a.Pool()) {
		t.Errorf("got %v", err)
	}
	server := t.TempDir()
	if _, err := a.KeepServerCert(server, []string{"nats"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(server, bus.CertFile), filepath.Join(dir, bus.AuthorityKeyFile), filepath.Join(dir, "missing")} {
		if _, err := bus.ReadPool(path); err == nil {
			t.Errorf("%s is read as an authority", path)
		}
	}
}

// A certificate that is renewed is the server's at its next reload, and those
// that are connected stay.
func TestReloadTakesTheCertificate(t *testing.T) {
	c := &clock{at: time.Now()}
	b := bustest.Start(t, bustest.Options{Rigs: []string{"alpha"}, Now: c.now})
	alpha := b.Rig("alpha")
	before := shownCert(t, b)
	c.at = c.at.Add(61 * 24 * time.Hour)
	renewed, err := b.Authority.KeepServerCert(b.Dir, []string{"127.0.0.1", "localhost"})
	if err != nil || !renewed {
		t.Fatalf("renewed %v, %v", renewed, err)
	}
	if got := shownCert(t, b); !got.Equal(before) {
		t.Error("the server shows the new certificate before the reload")
	}
	if _, err := bus.NewAdmin(b.System()).Apply(within(t, bustest.Wait), b.Users()); err != nil {
		t.Fatal(err)
	}
	after := shownCert(t, b)
	if after.Equal(before) || after.NotAfter.Before(before.NotAfter.Add(60*24*time.Hour)) {
		t.Errorf("the server shows %s to %s", after.NotBefore, after.NotAfter)
	}
	if n := alpha.Stats().Reconnects; n != 0 {
		t.Errorf("alpha was disconnected %d times", n)
	}
}

// shownCert is the certificate that the server shows a new connection.
func shownCert(t testing.TB, b *bustest.Bus) *x509.Certificate {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL(), "tls://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	info := make([]byte, 4096)
	if _, err := conn.Read(info); err != nil {
		t.Fatal(err)
	}
	var shown *x509.Certificate
	client := tls.Client(conn, &tls.Config{
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			shown = s.PeerCertificates[0]
			return nil
		},
	})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	return shown
}
