package bus

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/files"
)

// The authority's files, in control's folder.
const (
	AuthorityFile    = "authority.pem"
	AuthorityKeyFile = "authority.key"
)

const (
	// authorityLife is long: a rig trusts the bus through this certificate
	// alone, and gets another only with new images.
	authorityLife = 25 * 365 * 24 * time.Hour
	// clockSlack is how far a rig's clock may be behind control's when a
	// certificate is new.
	clockSlack = time.Hour
)

// Authority is control's certificate authority. It signs the certificates of
// the bus's server and of control's API.
type Authority struct {
	now  func() time.Time
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// OpenAuthority reads the authority in dir, and makes it at first use.
func OpenAuthority(dir string, now func() time.Time) (*Authority, error) {
	a, err := readAuthority(dir)
	if errors.Is(err, fs.ErrNotExist) {
		a, err = makeAuthority(dir, now())
	}
	if err != nil {
		return nil, fmt.Errorf("opening the bus's authority in %s: %w", dir, err)
	}
	a.now = now
	return a, nil
}

// readAuthority reads both files. The key is made first and the certificate
// follows from it, so a certificate that is missing was never handed out.
func readAuthority(dir string) (*Authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, AuthorityFile))
	if err != nil {
		return nil, err
	}
	keyPEM, err := files.ReadSecret(filepath.Join(dir, AuthorityKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is there and %s is not: put the key back, or remove the certificate and give every rig the new one",
			AuthorityFile, AuthorityKeyFile)
	}
	if err != nil {
		return nil, err
	}
	cert, err := parseCert(certPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AuthorityFile, err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AuthorityKeyFile, err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%s is not the key of %s", AuthorityKeyFile, AuthorityFile)
	}
	return &Authority{cert: cert, key: key, pem: certPEM}, nil
}

func makeAuthority(dir string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Thermite authority"},
		NotBefore:    now.Add(-clockSlack),
		NotAfter:     now.Add(authorityLife),
		IsCA:         true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate just made: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	a := &Authority{cert: cert, key: key, pem: encodeCert(der)}
	if err := files.Write(filepath.Join(dir, AuthorityKeyFile), keyPEM, 0o600); err != nil {
		return nil, err
	}
	if err := files.Write(filepath.Join(dir, AuthorityFile), a.pem, 0o644); err != nil {
		return nil, err
	}
	return a, nil
}

// PEM is the authority's certificate, which every rig gets.
func (a *Authority) PEM() []byte { return bytes.Clone(a.pem) }

// Pool holds the authority's certificate alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Fingerprint names the certificate: the SHA-256 of it, base64url, 22
// characters, as Thermite names keys.
func (a *Authority) Fingerprint() string { return fingerprint(a.cert) }

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])[:22]
}

// FingerprintOf is Fingerprint of a certificate as PEM gave it.
func FingerprintOf(b []byte) (string, error) {
	cert, err := parseCert(b)
	if err != nil {
		return "", fmt.Errorf("reading the authority's certificate: %w", err)
	}
	return fingerprint(cert), nil
}

// ParsePool reads an authority's certificate as PEM gave it.
func ParsePool(b []byte) (*x509.CertPool, error) {
	cert, err := parseCert(b)
	if err != nil {
		return nil, fmt.Errorf("reading the bus's authority: %w", err)
	}
	if !cert.IsCA {
		return nil, errors.New("reading the bus's authority: the certificate is no authority's")
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool, nil
}

// ReadPool reads an authority's certificate from a file.
func ReadPool(path string) (*x509.CertPool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the bus's authority: %w", err)
	}
	pool, err := ParsePool(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pool, nil
}

func newSerial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	b[0] &= 0x7f
	b[0] |= 0x40
	return new(big.Int).SetBytes(b), nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseCert(b []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is not one certificate in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

func parseKey(b []byte) (*ecdsa.PrivateKey, error) {
	block, rest := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("it is not one private key in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it holds no private key")
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("it holds no ECDSA key")
	}
	return ec, nil
}
