package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"thermite/pkg/control/service"
)

// Authority gives the certificate that signs control's. It needs no token.
func (c *Client) Authority(ctx context.Context) (service.Authority, error) {
	return get[service.Authority](ctx, c, nil, "authority")
}

// JoinRig gives what a rig must know, by its own token.
func (c *Client) JoinRig(ctx context.Context, rig string) (service.Join, error) {
	return get[service.Join](ctx, c, nil, "rigs", rig, "join")
}

// Health says how control is. It needs no token; with one it says more.
func (c *Client) Health(ctx context.Context) (service.Health, error) {
	return get[service.Health](ctx, c, nil, "health")
}

// Bus gives the bus as control sees it.
func (c *Client) Bus(ctx context.Context) (service.BusState, error) {
	return get[service.BusState](ctx, c, nil, "bus")
}

// AddRig makes a rig and gives its token, which control shows this once.
func (c *Client) AddRig(ctx context.Context, name string) (service.RigToken, error) {
	return create[service.RigToken](ctx, c, service.NewRig{Name: name}, "rigs")
}

// Rigs gives every rig, by name.
func (c *Client) Rigs(ctx context.Context) (service.RigList, error) {
	var all service.RigList
	err := c.pages(func(after string) (string, error) {
		page, err := get[service.RigList](ctx, c, pageQuery(service.MaxPage, after), "rigs")
		all.Rigs = append(all.Rigs, page.Rigs...)
		return page.Next, err
	})
	return all, err
}

// Rig gives all that control shows of a rig, of its current ledger or of the
// one named.
func (c *Client) Rig(ctx context.Context, rig, ledger string) (service.RigView, error) {
	q := url.Values{}
	if ledger != "" {
		q.Set("ledger", ledger)
	}
	return get[service.RigView](ctx, c, q, "rigs", rig)
}

// Events gives a page of a rig's events.
func (c *Client) Events(ctx context.Context, rig string, q service.EventsQuery) (service.EventsPage, error) {
	v := url.Values{"after": {strconv.FormatUint(q.After, 10)}}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Wait > 0 {
		v.Set("wait", q.Wait.String())
	}
	if q.Run != "" {
		v.Set("run", q.Run)
	}
	if len(q.Kinds) > 0 {
		v.Set("kind", strings.Join(q.Kinds, ","))
	}
	var page service.EventsPage
	err := c.do(ctx, call{method: http.MethodGet, path: []string{"rigs", rig, "events"}, query: v, wait: q.Wait}, &page)
	return page, err
}

// History gives the newest steps of a rig's history, at most limit of them;
// 0 gives all.
func (c *Client) History(ctx context.Context, rig string, limit int) (service.History, error) {
	var all service.History
	err := c.pages(func(after string) (string, error) {
		page, err := get[service.History](ctx, c, pageQuery(left(limit, len(all.Steps)), after), "rigs", rig, "history")
		all.Steps = append(all.Steps, page.Steps...)
		return more(limit, len(all.Steps), page.Next), err
	})
	return all, err
}

// AcceptKey accepts the report key of the rig that waits for the owner, which
// must have the fingerprint.
func (c *Client) AcceptKey(ctx context.Context, rig, fingerprint string) (service.RigSummary, error) {
	return post[service.RigSummary](ctx, c, service.KeyFingerprint{Fingerprint: fingerprint}, "rigs", rig, "report-key")
}

// Retire takes a rig off the bus for good, until it is restored.
func (c *Client) Retire(ctx context.Context, rig string) (service.RigSummary, error) {
	return post[service.RigSummary](ctx, c, nil, "rigs", rig, "retire")
}

// Restore brings a retired rig back.
func (c *Client) Restore(ctx context.Context, rig string) (service.RigSummary, error) {
	return post[service.RigSummary](ctx, c, nil, "rigs", rig, "restore")
}

// NewRigToken gives a rig a new token; the old one is no good from then on.
func (c *Client) NewRigToken(ctx context.Context, rig string) (service.RigToken, error) {
	return post[service.RigToken](ctx, c, nil, "rigs", rig, "token")
}

// Audit gives the newest entries of the audit log that fit, at most limit of
// them; 0 gives all.
func (c *Client) Audit(ctx context.Context, limit int, action, subject string) (service.AuditPage, error) {
	var all service.AuditPage
	err := c.pages(func(after string) (string, error) {
		q := pageQuery(left(limit, len(all.Entries)), after)
		if action != "" {
			q.Set("action", action)
		}
		if subject != "" {
			q.Set("subject", subject)
		}
		page, err := get[service.AuditPage](ctx, c, q, "audit")
		all.Entries = append(all.Entries, page.Entries...)
		return more(limit, len(all.Entries), page.Next), err
	})
	return all, err
}

// Needs gives everything that waits for the owner.
func (c *Client) Needs(ctx context.Context) (service.NeedList, error) {
	return get[service.NeedList](ctx, c, nil, "needs")
}

// Seen answers a need that being seen answers.
func (c *Client) Seen(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodPost, path: []string{"needs", id, "seen"}}, nil)
}

// Tokens gives every token of the owner and of readers, without the secrets.
func (c *Client) Tokens(ctx context.Context) (service.TokenList, error) {
	return get[service.TokenList](ctx, c, nil, "tokens")
}

// AddToken makes a token, which control shows this once.
func (c *Client) AddToken(ctx context.Context, role, name string) (service.MadeToken, error) {
	return create[service.MadeToken](ctx, c, service.NewToken{Role: role, Name: name}, "tokens")
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: []string{"tokens", id}}, nil)
}

func get[T any](ctx context.Context, c *Client, q url.Values, path ...string) (T, error) {
	var out T
	err := c.do(ctx, call{method: http.MethodGet, path: path, query: q}, &out)
	return out, err
}

func post[T any](ctx context.Context, c *Client, body any, path ...string) (T, error) {
	var out T
	err := c.do(ctx, call{method: http.MethodPost, path: path, body: body}, &out)
	return out, err
}

// create makes something once, even if an answer is lost.
func create[T any](ctx context.Context, c *Client, body any, path ...string) (T, error) {
	var out T
	err := c.do(ctx, call{method: http.MethodPost, path: path, body: body, key: rand.Text()}, &out)
	return out, err
}

// pages calls read with each page's after until there is no next one, or
// control names the same one again.
func (c *Client) pages(read func(after string) (next string, err error)) error {
	for after := ""; ; {
		next, err := read(after)
		if err != nil || next == "" {
			return err
		}
		if next == after {
			return notControl(c.config.URL, http.StatusOK, "its list has no end")
		}
		after = next
	}
}

func pageQuery(limit int, after string) url.Values {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if after != "" {
		q.Set("after", after)
	}
	return q
}

// left is how many to ask for, of a limit of which has are there.
func left(limit, has int) int {
	if limit == 0 {
		return service.MaxPage
	}
	return min(limit-has, service.MaxPage)
}

// more is next, unless the limit is reached.
func more(limit, has int, next string) string {
	if limit > 0 && has >= limit {
		return ""
	}
	return next
}
