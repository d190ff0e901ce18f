package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"thermite/pkg/harness/judge"
	"thermite/pkg/harness/lanes"
	"thermite/pkg/harness/patches"
	"thermite/pkg/harness/repos"
	"thermite/pkg/harness/trialapi"
	"thermite/pkg/wire"
)

// Broker is what the controller itself asks of the broker's client.
type Broker interface {
	Wait(ctx context.Context, id string) (wire.BrokerExited, error)
	Signal(ctx context.Context, id, signal string) error
	List(ctx context.Context) ([]wire.BrokerProcess, error)
	Ping(ctx context.Context) (wire.BrokerPong, error)
	Forget(ctx context.Context, id string) error
}

// Work is what does the work that the state asks for.
type Work struct {
	Roles   Broker
	Kits    *Kits
	Judge   *judge.Judge
	Lanes   *lanes.Lanes
	Repos   *repos.Repos
	Patches *patches.Store
	API     *trialapi.Server
	// Sessions are what is known of the trials at work.
	Sessions Sessions
	// URL is the trial API's address, and Port its port.
	URL  string
	Port int
	// Worker is the command of thermite-worker, and Read what its process may
	// read besides the system's: its program.
	Worker []string
	Read   []string

	controller *Controller
}

// opened is what the broker has as the work begins: the lanes that it has
// roles for, and the workers to go on with, by their processes' names.
type opened struct {
	lanes   []uint64
	workers map[string]left
}

// open waits for the broker, finds the workers that an earlier harness left,
// and ends what else it left running.
func (w *Work) open(ctx context.Context) (opened, error) {
	pong, err := w.Roles.Ping(ctx)
	if err != nil {
		return opened{}, err
	}
	all, err := w.Roles.List(ctx)
	if err != nil {
		return opened{}, err
	}
	workers, rest, err := w.found(all)
	if err != nil {
		return opened{}, err
	}
	if err := w.endAll(ctx, rest); err != nil {
		return opened{}, fmt.Errorf("ending what the harness of before left running: %w", err)
	}
	if err := w.Judge.Clean(ctx); err != nil {
		return opened{}, err
	}
	lanes := lanesOf(pong.Roles)
	w.controller.cfg.Log.Info("the work begins", "launcher", pong.Launcher, "lanes", len(lanes), "adopted", len(workers))
	return opened{lanes, workers}, nil
}

// lanesOf gives the numbers of the lanes among the broker's roles.
func lanesOf(roles []string) []uint64 {
	found := []uint64{}
	for _, role := range roles {
		text, ok := strings.CutPrefix(role, "lane-")
		n, err := strconv.ParseUint(text, 10, 32)
		if ok && err == nil && n > 0 && lanes.RoleOf(n) == role {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

// endAll ends these processes: all that the broker has was the harness's.
func (w *Work) endAll(ctx context.Context, ids []string) error {
	var errs []error
	for _, id := range ids {
		w.controller.cfg.Log.Info("ending a process of the harness of before", "process", id)
		errs = append(errs, w.end(ctx, id))
	}
	return errors.Join(errs...)
}

// end ends a process, with all it started, and forgets it.
func (w *Work) end(ctx context.Context, id string) error {
	err := w.Roles.Signal(ctx, id, "SIGKILL")
	if err == nil {
		_, err = w.Roles.Wait(ctx, id)
	}
	if err != nil && wire.BrokerCode(err) != wire.BrokerEnded && wire.BrokerCode(err) != wire.BrokerUnknown {
		return err
	}
	if err := w.Roles.Forget(ctx, id); err != nil && wire.BrokerCode(err) != wire.BrokerUnknown {
		return err
	}
	return nil
}

// close waits until what judgings left is removed, but not for long: the next
// start removes the rest.
func (w *Work) close() {
	done := make(chan struct{})
	go func() {
		w.Judge.Close()
		close(done)
	}()
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Waits between tries of what failed.
const (
	firstWait = time.Second
	mostWait  = 30 * time.Second
)

// pause waits, and says whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
