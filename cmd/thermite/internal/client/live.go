package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"thermite/pkg/control/service"
)

// Live gives live lines: the newest, or those after a page's next.
func (c *Client) Live(ctx context.Context, q service.LiveQuery) (service.LivePage, error) {
	v := url.Values{}
	for name, value := range map[string]string{"rig": q.Rig, "run": q.Run, "after": q.After} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Wait > 0 {
		v.Set("wait", q.Wait.String())
	}
	var page service.LivePage
	err := c.do(ctx, call{method: http.MethodGet, path: []string{"live"}, query: v, wait: q.Wait}, &page)
	return page, err
}
