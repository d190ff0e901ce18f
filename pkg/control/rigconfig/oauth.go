package rigconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/wire"
)

// OAuth renews sign-ins by OAuth 2.0's refresh token grant.
type OAuth struct{ Client *http.Client }

// Bounds of a renewal.
const (
	renewWait      = 20 * time.Second
	maxRenewAnswer = 64 << 10
)

// NewOAuth makes one that follows no redirect: a secret goes to the address it
// was meant for, and to no other.
func NewOAuth() *OAuth {
	return &OAuth{&http.Client{Timeout: renewWait, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Renew implements Renewer.
func (o *OAuth) Renew(ctx context.Context, r Renewal) (Renewed, error) {
	fail := func(err error) (Renewed, error) {
		return Renewed{}, fmt.Errorf("renewing a sign-in at %s: %w", hostOf(r.TokenURL), err)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.RefreshToken.Reveal()}, "client_id": {r.ClientID}}
	if r.ClientSecret != "" {
		form.Set("client_secret", r.ClientSecret.Reveal())
	}
	if r.Scope != "" {
		form.Set("scope", r.Scope)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return fail(errors.New("the address can't be called"))
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	answer, err := o.Client.Do(request)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return fail(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxRenewAnswer))
	if err != nil {
		return fail(err)
	}
	if answer.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("it answers %d%s", answer.StatusCode, refusal(b)))
	}
	var body struct {
		AccessToken  wire.Secret `json:"access_token"`
		RefreshToken wire.Secret `json:"refresh_token"`
		ExpiresIn    float64     `json:"expires_in"`
	}
	if err := json.Unmarshal(b, &body); err != nil {
		return fail(errors.New("its answer can't be read")) // the decoder's words may quote it
	}
	if body.ExpiresIn <= 0 {
		body.ExpiresIn = time.Hour.Seconds()
	}
	const longest = 365 * 24 * time.Hour
	life := min(body.ExpiresIn, longest.Seconds())
	return Renewed{Token: body.AccessToken, RefreshToken: body.RefreshToken, Life: time.Duration(life * float64(time.Second))}, nil
}

// refusal is OAuth's word for why, one of a few; what else is said may quote a
// secret.
func refusal(b []byte) string {
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(b, &body) != nil {
		return ""
	}
	for _, known := range []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope"} {
		if body.Error == known {
			return ": " + known
		}
	}
	return ""
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is none"
	}
	return u.Host
}
