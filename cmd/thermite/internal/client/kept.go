package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Dailies gives the newest days that a rig reported, at most limit of them; 0
// gives all.
func (c *Client) Dailies(ctx context.Context, rig string, limit int) (service.DailyList, error) {
	all := service.DailyList{Reports: []service.DailySummary{}}
	err := c.pages(func(after string) (string, error) {
		page, err := get[service.DailyList](ctx, c, pageQuery(left(limit, len(all.Reports)), after), "rigs", rig, "daily")
		all.Reports = append(all.Reports, page.Reports...)
		return more(limit, len(all.Reports), page.Next), err
	})
	return all, err
}

// Daily gives a rig's report of a day, or of service.NewestDay.
func (c *Client) Daily(ctx context.Context, rig, day string) (service.DailyView, error) {
	return get[service.DailyView](ctx, c, nil, "rigs", rig, "daily", day)
}

// Space gives what a rig keeps on its disk.
func (c *Client) Space(ctx context.Context, rig string) (service.SpaceView, error) {
	return get[service.SpaceView](ctx, c, nil, "rigs", rig, "space")
}

// RemoveSpace has a rig remove what it keeps.
func (c *Client) RemoveSpace(ctx context.Context, rig string, what service.SpaceRemoval) (service.Command, error) {
	return create[service.Command](ctx, c, what, "rigs", rig, "space", "remove")
}

// Screen has a trial watched, and gives its newest screen: one later than
// after, if one comes within the wait.
func (c *Client) Screen(ctx context.Context, r service.RunName, trial uint64, after wire.Time, wait time.Duration) (service.ScreenView, error) {
	q := url.Values{"wait": {wait.String()}}
	if !after.IsZero() {
		q.Set("after", after.String())
	}
	var v service.ScreenView
	err := c.do(ctx, call{method: http.MethodGet, path: runPath(r, "trials", number(trial), "screen"), query: q, wait: wait}, &v)
	return v, err
}
