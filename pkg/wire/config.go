package wire

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
)

// The config's channel: control keeps the latest value of each of a rig's
// four keys in CONFIG, sealed whole to the rig's seal key and signed. The
// supervisor alone opens it.

// The keys.
const (
	ConfigModelRoute    = "model-route"
	ConfigAdvisorRoutes = "advisor-routes"
	ConfigMCPServers    = "mcp-servers"
	ConfigGitAccess     = "git-access"
)

// ConfigKeys are a rig's keys in CONFIG.
var ConfigKeys = []string{ConfigModelRoute, ConfigAdvisorRoutes, ConfigMCPServers, ConfigGitAccess}

// HeaderRevision is the header of a message in CONFIG that says its revision,
// so that control reads what is there without its body.
const HeaderRevision = "Thermite-Revision"

// The errors of a message in CONFIG that is not taken, each wrapped by what
// OpenConfig says.
var (
	// ErrNoConfig: it can't be read as a value at all, or is of a newer
	// control.
	ErrNoConfig = errors.New("it is no config value that this build knows")
	// ErrOtherConfig: it is for another rig or another key.
	ErrOtherConfig = errors.New("it is a value for another")
	// ErrSealedToOther: it is sealed to another seal key, or was altered.
	ErrSealedToOther = errors.New("it does not open with this rig's seal key")
)

// SealedConfig is what is in CONFIG: a value for one key of one rig, which only
// that rig's seal key opens. It is signed by control.
type SealedConfig struct {
	Rig string `json:"rig"`
	Key string `json:"key"`
	// Revision changes with the value and the seal key. Only control makes it.
	Revision string `json:"revision"`
	// To is the fingerprint of the seal key.
	To string `json:"to"`
	// Sealed is the HPKE encapsulated key and the value's canonical JSON,
	// sealed; base64url without padding.
	Sealed string `json:"sealed"`
}

// revisionLength is that of a revision: 32 bytes in base64url.
const revisionLength = 43

// IsRevision says whether s can be a revision.
func IsRevision(s string) bool {
	return made(s, revisionLength, revisionLength, func(c byte) bool {
		return isLetter(c) || isDigit(c) || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
	})
}

// configInfo binds what is sealed to its rig, key and revision.
func configInfo(rig, key, revision string) []byte {
	return []byte("thermite/config/v1\n" + rig + "\n" + key + "\n" + revision)
}

// SealConfig seals the value to the seal key, for that rig and key, and signs
// it: what goes in CONFIG.
func SealConfig(s *Signer, to SealKey, rig, key, revision string, value ConfigValue) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("sealing %s of rig %s: %w", key, clip(rig), err)
	}
	if value.ConfigKey() != key {
		return fail(fmt.Errorf("it is a value of %s", value.ConfigKey()))
	}
	if err := first(CheckName("rig", rig), value.Check()); err != nil {
		return fail(err)
	}
	if !IsRevision(revision) {
		return fail(errors.New("its revision is none"))
	}
	plain, err := Canonical(value)
	if err != nil {
		return fail(err)
	}
	point, err := ecdh.X25519().NewPublicKey(to[:])
	if err != nil {
		return fail(err)
	}
	public, err := hpke.NewDHKEMPublicKey(point)
	if err != nil {
		return fail(err)
	}
	sealed, err := hpke.Seal(public, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), configInfo(rig, key, revision), plain)
	if err != nil {
		return fail(err)
	}
	b, err := sealSigned(DomainConfig, s, SealedConfig{Rig: rig, Key: key, Revision: revision, To: to.Fingerprint(),
		Sealed: base64.RawURLEncoding.EncodeToString(sealed)})
	if err == nil && len(b) > MaxConfigBytes {
		err = fmt.Errorf("it has %d bytes, at most %d", len(b), MaxConfigBytes)
	}
	if err != nil {
		return fail(err)
	}
	return b, nil
}

// OpenConfig opens what CONFIG holds for the rig's key: it checks that control
// signed it, that it is for that rig and key, and the value's form. No error
// says anything of the value.
func OpenConfig(control PublicKey, private *ecdh.PrivateKey, rig, key string, b []byte) (SealedConfig, ConfigValue, error) {
	fail := func(err error) (SealedConfig, ConfigValue, error) {
		return SealedConfig{}, nil, fmt.Errorf("opening %s of rig %s: %w", clip(key), clip(rig), err)
	}
	if len(b) > MaxConfigBytes {
		return fail(fmt.Errorf("it has %d bytes, at most %d: %w", len(b), MaxConfigBytes, ErrNoConfig))
	}
	if !slices.Contains(ConfigKeys, key) {
		return fail(fmt.Errorf("the key is not known: %w", ErrNoConfig))
	}
	var m SealedConfig
	if err := openSigned(DomainConfig, control, b, &m); errors.Is(err, ErrBadSignature) {
		return fail(err)
	} else if err != nil {
		return fail(fmt.Errorf("%w: %w", ErrNoConfig, err))
	}
	if m.Rig != rig || m.Key != key {
		return fail(fmt.Errorf("rig %s, key %s: %w", clip(m.Rig), clip(m.Key), ErrOtherConfig))
	}
	if !IsRevision(m.Revision) {
		return fail(fmt.Errorf("its revision is none: %w", ErrNoConfig))
	}
	plain, err := unseal(private, m)
	if err != nil {
		return fail(err)
	}
	value, err := DecodeConfigValue(key, plain)
	if err != nil {
		return fail(err)
	}
	return m, value, nil
}

func unseal(private *ecdh.PrivateKey, m SealedConfig) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(m.Sealed)
	if err != nil {
		return nil, fmt.Errorf("what is sealed is not base64url: %w", ErrNoConfig)
	}
	key, err := hpke.NewDHKEMPrivateKey(private)
	if err != nil {
		return nil, err
	}
	plain, err := hpke.Open(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), configInfo(m.Rig, m.Key, m.Revision), sealed)
	if err != nil {
		return nil, fmt.Errorf("it is sealed to %s: %w", clip(m.To), ErrSealedToOther)
	}
	return plain, nil
}

// DecodeConfigValue reads a key's value, canonical JSON: ModelRouteConfig for
// model-route and so on, by value. Its errors say nothing of what it holds.
func DecodeConfigValue(key string, b []byte) (ConfigValue, error) {
	switch key {
	case ConfigModelRoute:
		return configValue[ModelRouteConfig](key, b)
	case ConfigAdvisorRoutes:
		return configValue[AdvisorRoutesConfig](key, b)
	case ConfigMCPServers:
		return configValue[MCPServersConfig](key, b)
	case ConfigGitAccess:
		return configValue[GitAccessConfig](key, b)
	}
	return nil, fmt.Errorf("reading a value of %s: %w", clip(key), ErrNoConfig)
}

func configValue[V ConfigValue](key string, b []byte) (ConfigValue, error) {
	var v V
	if err := decodeCanonical(b, &v); err != nil {
		// The decoder's words may quote a part of a secret.
		return nil, fmt.Errorf("reading a value of %s: it is of another form: %w", key, ErrNoConfig)
	}
	if err := v.Check(); err != nil {
		return nil, fmt.Errorf("reading a value of %s: %w: %w", key, ErrNoConfig, err)
	}
	return v, nil
}
