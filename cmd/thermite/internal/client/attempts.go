package client

import (
	"context"
	"net/url"

	"thermite/pkg/control/service"
)

// Attempts gives a run's newest attempts that have the verdict, if it is not
// empty, at most limit of them; 0 gives all.
func (c *Client) Attempts(ctx context.Context, r service.RunName, outcome string, limit int) (service.AttemptList, error) {
	var all service.AttemptList
	has := []service.Attempt{}
	err := c.pages(func(after string) (string, error) {
		v := pageQuery(left(limit, len(has)), after)
		set(v, "outcome", outcome)
		page, err := get[service.AttemptList](ctx, c, v, runPath(r, "attempts")...)
		all, has = page, append(has, page.Attempts...)
		return more(limit, len(has), page.Next), err
	})
	all.Attempts = has
	return all, err
}

// Attempt gives all of an attempt and of one of its judgings; 0 is the last.
func (c *Client) Attempt(ctx context.Context, r service.RunName, attempt, judging uint64) (service.AttemptView, error) {
	v := url.Values{}
	if judging > 0 {
		v.Set("judging", number(judging))
	}
	return get[service.AttemptView](ctx, c, v, runPath(r, "attempts", number(attempt))...)
}

// Patch gives what an attempt changes.
func (c *Client) Patch(ctx context.Context, r service.RunName, attempt uint64) (service.Patch, error) {
	return get[service.Patch](ctx, c, nil, runPath(r, "attempts", number(attempt), "patch")...)
}

// Disqualify marks an attempt that counts no more.
func (c *Client) Disqualify(ctx context.Context, r service.RunName, attempt uint64, why service.Disqualification) (service.Command, error) {
	return create[service.Command](ctx, c, why, runPath(r, "attempts", number(attempt), "disqualify")...)
}

// Rejudge has an attempt judged again.
func (c *Client) Rejudge(ctx context.Context, r service.RunName, attempt uint64, how service.Rejudging) (service.Command, error) {
	return create[service.Command](ctx, c, how, runPath(r, "attempts", number(attempt), "rejudge")...)
}

// Campaigns gives every campaign, by name.
func (c *Client) Campaigns(ctx context.Context) (service.CampaignList, error) {
	all := service.CampaignList{Campaigns: []service.CampaignSummary{}}
	err := c.pages(func(after string) (string, error) {
		page, err := get[service.CampaignList](ctx, c, pageQuery(service.MaxPage, after), "campaigns")
		all.Campaigns = append(all.Campaigns, page.Campaigns...)
		return page.Next, err
	})
	return all, err
}

// Campaign gives a campaign with its leaderboards.
func (c *Client) Campaign(ctx context.Context, name string) (service.Campaign, error) {
	return get[service.Campaign](ctx, c, nil, "campaigns", name)
}
