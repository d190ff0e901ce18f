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
	// URL is the trial API's address, and Port its port.
	URL  string
	Port int
	// Worker is the command of thermite-worker, and Read what its process may
	// read besides the system's: its program.
	Worker []string
	Read   []string

	controller *Controller
}

// open waits for the broker, ends what an earlier harness left running, and
// gives the lanes that the broker has roles for.
func (w *Work) open(ctx context.Context) ([]uint64, error) {
	pong, err := w.Roles.Ping(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.endAll(ctx); err != nil {
		return nil, fmt.Errorf("ending what the harness of before left running: %w", err)
	}
	if err := w.Judge.Clean(ctx); err != nil {
		return nil, err
	}
	found := lanesOf(pong.Roles)
	w.controller.cfg.Log.Info("the work begins", "launcher", pong.Launcher, "lanes", len(found))
	return found, nil
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

// endAll ends everything that the broker has: all of it was the harness's.
func (w *Work) endAll(ctx context.Context) error {
	all, err := w.Roles.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range all {
		w.controller.cfg.Log.Info("ending a process of the harness of before", "process", p.ID, "role", p.Role)
		errs = append(errs, w.end(ctx, p.ID))
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
