package rigconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"thermite/pkg/control/secrets"
	"thermite/pkg/wire"
)

// The kinds of what has a secret, as the secret is sealed for.
const (
	kindRoute  = "model-route"
	kindServer = "mcp-server"
	kindAccess = "git-access"
)

// Payload is a secret as it is sealed at rest.
type Payload struct {
	// Key is a provider's key, a subscription's token, a Git host's token, or
	// the token that Renew got last.
	Key wire.Secret `json:"key,omitzero"`
	// Headers are sent with each call.
	Headers map[string]wire.Secret `json:"headers,omitempty"`
	// Renew says how Key is got anew before ExpiresAt.
	Renew     *Renewal  `json:"renew,omitzero"`
	ExpiresAt wire.Time `json:"expires_at,omitzero"`
}

// Renewal is an OAuth 2.0 sign-in: how a token is got anew.
type Renewal struct {
	TokenURL     string      `json:"token_url"`
	ClientID     string      `json:"client_id"`
	ClientSecret wire.Secret `json:"client_secret,omitzero"`
	RefreshToken wire.Secret `json:"refresh_token"`
	Scope        string      `json:"scope,omitzero"`
}

// Empty says that there is no secret.
func (p Payload) Empty() bool { return p.Key == "" && len(p.Headers) == 0 && p.Renew == nil }

// headerNames are the headers' names, sorted.
func (p Payload) headerNames() []string { return slices.Sorted(maps.Keys(p.Headers)) }

// signIn are the headers of an MCP server.
func (p Payload) signIn() map[string]wire.Secret {
	if p.Key == "" {
		return p.Headers
	}
	all := map[string]wire.Secret{"Authorization": "Bearer " + p.Key}
	maps.Copy(all, p.Headers)
	return all
}

// Check says what is wrong with the secret, by its field, and nothing of it.
func (p Payload) Check() error {
	if err := wire.CheckSecret("secret.key", p.Key); err != nil {
		return err
	}
	for _, name := range p.headerNames() {
		if err := errors.Join(wire.CheckHeader(name), wire.CheckSecret("secret.headers."+name, p.Headers[name])); err != nil {
			return err
		}
	}
	if r := p.Renew; r != nil {
		switch {
		case r.RefreshToken == "":
			return errors.New("secret.renew.refresh_token is missing")
		case r.ClientID == "":
			return errors.New("secret.renew.client_id is missing")
		}
		return errors.Join(wire.CheckBaseURL("secret.renew.token_url", r.TokenURL), wire.CheckSecret("secret.renew.client_secret", r.ClientSecret),
			wire.CheckSecret("secret.renew.refresh_token", r.RefreshToken))
	}
	return nil
}

// seal seals the secret of the thing; nil when it holds none.
func (p Payload) seal(key *secrets.Key, kind, name string) ([]byte, error) {
	if p.Empty() {
		return nil, nil
	}
	b, err := wire.Canonical(p)
	if err != nil {
		return nil, fmt.Errorf("sealing the secret of %s %s: it can't be encoded", kind, name)
	}
	return key.Seal(kind+":"+name, b)
}

// openPayload opens it; nothing sealed is no secret.
func openPayload(key *secrets.Key, kind, name string, sealed []byte) (Payload, error) {
	var p Payload
	if sealed == nil {
		return p, nil
	}
	b, err := key.Open(kind+":"+name, sealed)
	if err != nil {
		return p, err
	}
	if err := wire.DecodeStrict(b, &p); err != nil {
		return Payload{}, fmt.Errorf("opening the secret of %s %s: it is of another form", kind, name)
	}
	return p, nil
}
