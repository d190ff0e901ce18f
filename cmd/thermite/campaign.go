package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"thermite/cmd/thermite/internal/client"
	"thermite/pkg/control/service"
)

func campaignCommand(a *app) *cobra.Command {
	return group("campaign", "list the campaigns, and rank the runs of one", campaignListCommand(a), campaignShowCommand(a))
}

func campaignListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "list the campaigns: runs of one question, on any rigs", Args: noArgs,
		RunE: a.calling(func(ctx context.Context, c *client.Client, _ []string) error {
			list, err := c.Campaigns(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			if len(list.Campaigns) == 0 {
				a.warn("There is no campaign yet. A run begins one: thermite run start KIT --campaign NAME")
			}
			now := a.now()
			t := &table{header: []string{"CAMPAIGN", "KIT", "RUNS", "RUNNING", "ATTEMPTS", "BEST", "BY", "LAST EVENT"}, wide: []int{6, 1}}
			for _, is := range list.Campaigns {
				best, by := "-", "-"
				if is.Best != nil {
					best, by = bestOf(is.Best.Best), is.Best.Rig+"/"+is.Best.Run
				}
				t.add(is.Campaign, orDash(strings.Join(is.Kits, ", ")), strconv.Itoa(is.Runs), strconv.Itoa(is.Running), count(is.Attempts), best, by,
					a.moment(is.Last.Time(), now))
			}
			return a.printTable(t)
		}),
	}
}

func campaignShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show CAMPAIGN", Short: "rank the runs of a campaign: a leaderboard for each kit and metric", Args: exactly("campaign"),
		ValidArgsFunction: completeFirst(a, campaignNames),
		RunE: a.calling(func(ctx context.Context, c *client.Client, args []string) error {
			is, err := c.Campaign(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(is)
			}
			for i, b := range is.Boards {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				if err := a.printTables(a.boardFacts(is, b), a.boardTable(b)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func (a *app) boardFacts(is service.Campaign, b service.Board) *table {
	t := a.factsTable()
	t.add("campaign", is.Campaign)
	t.add("kit", strings.TrimSpace(orDash(b.Kit)+" "+versionOf(b.Version)))
	if words := scoreWords(b.Metric); words != "" {
		t.add("score", words)
	}
	return t
}

func (a *app) boardTable(b service.Board) *table {
	now := a.now()
	t := &table{header: []string{"RANK", "RUN", "RIG", "STATE", "WORKER", "ATTEMPTS", "BASE", "BEST", "SINCE", "TITLE"}, wide: []int{9, 1, 2}}
	for _, e := range b.Entries {
		rank, since := "-", "-"
		if e.Rank > 0 {
			rank = strconv.Itoa(e.Rank)
		}
		if e.Best != nil {
			since = a.moment(e.Best.Time.Time(), now)
		}
		t.add(rank, e.Run, e.Rig, e.State, orDash(e.Worker), count(e.Attempts), scoreOf(e.Base), bestOf(e.Best), since, e.Title)
	}
	return t
}

// campaignNames gives a shell the campaigns.
func campaignNames(ctx context.Context, c *client.Client) ([]cobra.Completion, error) {
	list, err := c.Campaigns(ctx)
	var names []cobra.Completion
	for _, is := range list.Campaigns {
		names = append(names, cobra.CompletionWithDesc(is.Campaign, fmt.Sprintf("%d runs", is.Runs)))
	}
	return names, err
}
