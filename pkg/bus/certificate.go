package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"thermite/pkg/files"
)

const (
	// certLife is how long a certificate is good for, and certRenew how long
	// before its end another is made.
	certLife  = 90 * 24 * time.Hour
	certRenew = 30 * 24 * time.Hour
)

// KeepServerCert makes the certificate of the bus's server in dir, for the
// names and addresses it is reached by, and makes it again before it ends or
// when the names change. The server takes a new one at its next reload.
func (a *Authority) KeepServerCert(dir string, names []string) (renewed bool, err error) {
	names, err = normalNames(names)
	if err != nil {
		return false, fmt.Errorf("keeping the bus's certificate: %w", err)
	}
	certPath, keyPath := filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile)
	if a.stillGood(certPath, keyPath, names) {
		return false, nil
	}
	pair, err := a.sign(names)
	if err != nil {
		return false, fmt.Errorf("keeping the bus's certificate: %w", err)
	}
	keyPEM, err := encodeKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		return false, fmt.Errorf("keeping the bus's certificate: %w", err)
	}
	// The server's group may read the key. A stop between the two leaves a
	// pair that does not fit, which the next look makes again.
	if err := files.Write(keyPath, keyPEM, 0o640); err != nil {
		return false, fmt.Errorf("keeping the bus's certificate: %w", err)
	}
	if err := files.Write(certPath, encodeCert(pair.Certificate[0]), 0o644); err != nil {
		return false, fmt.Errorf("keeping the bus's certificate: %w", err)
	}
	return true, nil
}

// stillGood says that the files hold a certificate of this authority for
// just these names, with its key, and that it need not be renewed yet.
func (a *Authority) stillGood(certPath, keyPath string, names []string) bool {
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return false
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return false
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	return err == nil && a.fresh(pair.Leaf) && slices.Equal(namesOf(pair.Leaf), names)
}

// fresh says that cert is this authority's and not yet due.
func (a *Authority) fresh(cert *x509.Certificate) bool {
	now := a.now()
	return cert.CheckSignatureFrom(a.cert) == nil && !now.Before(cert.NotBefore) && now.Before(cert.NotAfter.Add(-certRenew))
}

// sign makes a key and its certificate for names. It is good for a client
// too: the server shows it when it dials a rig's leaf node.
func (a *Authority) sign(names []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := a.now()
	tmpl := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Thermite"},
		NotBefore:    now.Add(-clockSlack),
		NotAfter:     now.Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for %s: %w", strings.Join(names, ", "), err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate just made: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// HTTPSConfig is for control's API: its certificate, for names, renews by
// itself.
func (a *Authority) HTTPSConfig(names []string) (*tls.Config, error) {
	names, err := normalNames(names)
	if err != nil {
		return nil, fmt.Errorf("making control's certificate: %w", err)
	}
	cert, err := a.sign(names)
	if err != nil {
		return nil, fmt.Errorf("making control's certificate: %w", err)
	}
	k := &keptCert{authority: a, names: names, cert: cert}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: k.get}, nil
}

// keptCert is a certificate in memory that is renewed as it is used.
type keptCert struct {
	authority *Authority
	names     []string

	mu   sync.Mutex
	cert *tls.Certificate
}

func (k *keptCert) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.authority.fresh(k.cert.Leaf) {
		return k.cert, nil
	}
	cert, err := k.authority.sign(k.names)
	if err != nil {
		return nil, fmt.Errorf("renewing control's certificate: %w", err)
	}
	k.cert = cert
	return cert, nil
}

var dnsNameRE = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// normalNames gives each name once, as a certificate holds it, sorted.
func normalNames(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		if ip := net.ParseIP(strings.Trim(name, "[]")); ip != nil {
			out = append(out, ip.String())
			continue
		}
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if len(name) > 253 || !dnsNameRE.MatchString(name) {
			return nil, fmt.Errorf("%q is no host name and no address", name)
		}
		out = append(out, name)
	}
	if len(out) == 0 {
		return nil, errors.New("no name is given")
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// namesOf gives a certificate's names as normalNames does.
func namesOf(cert *x509.Certificate) []string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	slices.Sort(names)
	return names
}
