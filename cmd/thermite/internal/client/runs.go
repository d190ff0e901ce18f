package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"thermite/pkg/control/service"
	"thermite/pkg/wire"
)

// Kits gives the kits that ship.
func (c *Client) Kits(ctx context.Context) (service.KitList, error) {
	return get[service.KitList](ctx, c, nil, "kits")
}

// Kit gives all of a kit that ships.
func (c *Client) Kit(ctx context.Context, name string) (service.KitView, error) {
	return get[service.KitView](ctx, c, nil, "kits", name)
}

// Runs gives the newest runs that fit, at most limit of them; 0 gives all.
func (c *Client) Runs(ctx context.Context, q service.RunsQuery, limit int) (service.RunList, error) {
	all := service.RunList{Runs: []service.RunSummary{}}
	err := c.pages(func(after string) (string, error) {
		v := pageQuery(left(limit, len(all.Runs)), after)
		set(v, "rig", q.Rig)
		set(v, "run", q.Run)
		set(v, "campaign", q.Campaign)
		set(v, "state", q.State)
		page, err := get[service.RunList](ctx, c, v, "runs")
		all.Runs = append(all.Runs, page.Runs...)
		return more(limit, len(all.Runs), page.Next), err
	})
	return all, err
}

// Run gives all that control shows of a run.
func (c *Client) Run(ctx context.Context, r service.RunName) (service.RunView, error) {
	return get[service.RunView](ctx, c, nil, runPath(r)...)
}

// Queue gives a run's queue.
func (c *Client) Queue(ctx context.Context, r service.RunName) (service.RunQueue, error) {
	return get[service.RunQueue](ctx, c, nil, runPath(r, "queue")...)
}

// Champion gives a run's champion and those before it.
func (c *Client) Champion(ctx context.Context, r service.RunName) (service.ChampionView, error) {
	return get[service.ChampionView](ctx, c, nil, runPath(r, "champion")...)
}

// StartRun gives a rig a run.
func (c *Client) StartRun(ctx context.Context, n service.NewRun) (service.Command, error) {
	return create[service.Command](ctx, c, n, "runs")
}

// ChangeRun changes a run's settings.
func (c *Client) ChangeRun(ctx context.Context, r service.RunName, to wire.RunSettings) (service.Command, error) {
	return change(ctx, c, to, runPath(r)...)
}

// OrderRun has a run paused, resumed or stopped.
func (c *Client) OrderRun(ctx context.Context, r service.RunName, verb string, why service.Reason) (service.Command, error) {
	return create[service.Command](ctx, c, why, runPath(r, verb)...)
}

// AddExperiment adds an experiment to a run's queue.
func (c *Client) AddExperiment(ctx context.Context, r service.RunName, n service.NewExperiment) (service.Command, error) {
	return create[service.Command](ctx, c, n, runPath(r, "queue")...)
}

// MoveExperiment moves an experiment in its queue.
func (c *Client) MoveExperiment(ctx context.Context, r service.RunName, experiment uint64, to service.Position) (service.Command, error) {
	return create[service.Command](ctx, c, to, runPath(r, "queue", number(experiment), "move")...)
}

// EditExperiment changes an experiment that nobody works on.
func (c *Client) EditExperiment(ctx context.Context, r service.RunName, experiment uint64, to service.ExperimentChange) (service.Command, error) {
	return change(ctx, c, to, runPath(r, "queue", number(experiment))...)
}

// DropExperiment takes an experiment out of its queue for good.
func (c *Client) DropExperiment(ctx context.Context, r service.RunName, experiment uint64, why service.Reason) (service.Command, error) {
	return create[service.Command](ctx, c, why, runPath(r, "queue", number(experiment), "drop")...)
}

// MessageTrial tells a trial's worker something.
func (c *Client) MessageTrial(ctx context.Context, r service.RunName, trial uint64, m service.Message) (service.Command, error) {
	return create[service.Command](ctx, c, m, runPath(r, "trials", number(trial), "message")...)
}

// StopTrial ends a trial.
func (c *Client) StopTrial(ctx context.Context, r service.RunName, trial uint64, why service.Reason) (service.Command, error) {
	return create[service.Command](ctx, c, why, runPath(r, "trials", number(trial), "stop")...)
}

// Commands gives the newest commands that fit, at most limit of them; 0 gives
// all.
func (c *Client) Commands(ctx context.Context, rig, run string, limit int) (service.CommandList, error) {
	all := service.CommandList{Commands: []service.Command{}}
	err := c.pages(func(after string) (string, error) {
		v := pageQuery(left(limit, len(all.Commands)), after)
		set(v, "rig", rig)
		set(v, "run", run)
		page, err := get[service.CommandList](ctx, c, v, "commands")
		all.Commands = append(all.Commands, page.Commands...)
		return more(limit, len(all.Commands), page.Next), err
	})
	return all, err
}

// Command gives a command as soon as it has its outcome, or as it is when the
// wait is over.
func (c *Client) Command(ctx context.Context, id string, wait time.Duration) (service.Command, error) {
	v := url.Values{}
	if wait > 0 {
		v.Set("wait", wait.String())
	}
	var is service.Command
	err := c.do(ctx, call{method: http.MethodGet, path: []string{"commands", id}, query: v, wait: wait}, &is)
	return is, err
}

// CancelCommand takes a command back.
func (c *Client) CancelCommand(ctx context.Context, id string) (service.Command, error) {
	return post[service.Command](ctx, c, nil, "commands", id, "cancel")
}

// change changes a thing once, even if an answer is lost.
func change(ctx context.Context, c *Client, body any, path ...string) (service.Command, error) {
	var is service.Command
	err := c.do(ctx, call{method: http.MethodPatch, path: path, body: body, key: rand.Text()}, &is)
	return is, err
}

// runPath is the path of a run, or of a thing of it.
func runPath(r service.RunName, of ...string) []string {
	return append([]string{"rigs", r.Rig, "runs", r.Run}, of...)
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// set gives a query what is not empty.
func set(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}
