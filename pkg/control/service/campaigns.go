package service

import (
	"context"
	"errors"
	"slices"

	"thermite/pkg/control/views"
	"thermite/pkg/wire"
)

// CampaignSummary is a campaign in the list of campaigns.
type CampaignSummary struct {
	Campaign string    `json:"campaign" doc:"The campaign's name" example:"packing"`
	Kits     []string  `json:"kits" nullable:"false" doc:"The kits of its runs"`
	Rigs     []string  `json:"rigs" nullable:"false" doc:"The rigs that work, or worked, on it, by name"`
	Runs     int       `json:"runs" doc:"How many runs are in it"`
	Running  int       `json:"running" doc:"How many of them go on"`
	Attempts uint64    `json:"attempts" doc:"How many attempts they have"`
	Last     wire.Time `json:"last" doc:"When its last event was"`
	Best     *Entry    `json:"best,omitzero" doc:"The best run of its first leaderboard; absent before the first score"`
}

// CampaignList is a page of campaigns, by name.
type CampaignList struct {
	Campaigns []CampaignSummary `json:"campaigns" nullable:"false" doc:"The campaigns, by name"`
	Next      string            `json:"next,omitzero" doc:"Give this as after for the next page; absent on the last"`
}

// Campaigns gives a page of the campaigns of the rigs that are not retired,
// by name.
func (s *Service) Campaigns(ctx context.Context, c Caller, q PageQuery) (CampaignList, error) {
	list := CampaignList{Campaigns: []CampaignSummary{}}
	if err := c.Check(MayRead); err != nil {
		return list, err
	}
	limit, err := q.limit()
	if err != nil {
		return list, err
	}
	if q.After != "" && wire.CheckName("campaign", q.After) != nil {
		return list, invalid("query.after", errors.New("after must be the next of another page"))
	}
	all, err := s.campaigns(ctx)
	if err != nil {
		return list, err
	}
	for _, campaign := range all {
		switch {
		case campaign.Campaign <= q.After:
		case len(list.Campaigns) == limit:
			list.Next = list.Campaigns[limit-1].Campaign
			return list, nil
		default:
			list.Campaigns = append(list.Campaigns, summaryOfCampaign(campaign))
		}
	}
	return list, nil
}

// Campaign gives a campaign with its leaderboards.
func (s *Service) Campaign(ctx context.Context, c Caller, name string) (Campaign, error) {
	if err := c.Check(MayRead); err != nil {
		return Campaign{}, err
	}
	all, err := s.campaigns(ctx)
	if err != nil {
		return Campaign{}, err
	}
	i := slices.IndexFunc(all, func(c Campaign) bool { return c.Campaign == name })
	if i < 0 {
		return Campaign{}, newError(CodeNoCampaign, "no run of a rig that is not retired is in a campaign of that name")
	}
	return all[i], nil
}

// campaigns gives every campaign, by name.
func (s *Service) campaigns(ctx context.Context) ([]Campaign, error) {
	of, err := s.rigsOf(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []views.Rig
	for _, r := range of {
		v, err := s.view(ctx, r, "")
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return views.Campaigns(all, s.campaignOf), nil
}

// campaignOf is the campaign that the registry has the rig's run in; empty
// when it has not entered the run.
func (s *Service) campaignOf(rig, run string) string {
	for _, r := range s.config.Runs.Named(run) {
		if r.Rig == rig {
			return r.Campaign
		}
	}
	return ""
}

func summaryOfCampaign(c Campaign) CampaignSummary {
	sum := CampaignSummary{Campaign: c.Campaign, Kits: []string{}, Rigs: c.Rigs, Runs: c.Runs, Running: c.Running, Attempts: c.Attempts, Last: c.Last}
	for _, b := range c.Boards {
		if b.Kit != "" && !slices.Contains(sum.Kits, b.Kit) {
			sum.Kits = append(sum.Kits, b.Kit)
		}
		if sum.Best == nil && len(b.Entries) > 0 && b.Entries[0].Rank == 1 {
			sum.Best = &b.Entries[0]
		}
	}
	return sum
}
