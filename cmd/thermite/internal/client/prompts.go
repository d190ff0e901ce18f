package client

import (
	"context"

	"thermite/pkg/control/service"
)

// Prompts gives what a run's agents were told, of the trial if it is not 0,
// the oldest first, at most limit of them; 0 gives all.
func (c *Client) Prompts(ctx context.Context, r service.RunName, trial uint64, limit int) (service.PromptList, error) {
	var all service.PromptList
	has := []service.Prompt{}
	err := c.pages(func(after string) (string, error) {
		v := pageQuery(left(limit, len(has)), after)
		if trial > 0 {
			v.Set("trial", number(trial))
		}
		page, err := get[service.PromptList](ctx, c, v, runPath(r, "prompts")...)
		all, has = page, append(has, page.Prompts...)
		return more(limit, len(has), page.Next), err
	})
	all.Prompts = has
	return all, err
}

// Prompt gives all of the prompt at the place in EVENTS.
func (c *Client) Prompt(ctx context.Context, r service.RunName, seq uint64) (service.PromptView, error) {
	return get[service.PromptView](ctx, c, nil, runPath(r, "prompts", number(seq))...)
}
