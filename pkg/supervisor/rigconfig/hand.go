package rigconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thermite/pkg/wire"
)

// hand keeps the harness on what is held: each change at once, and every Poll
// what it lost.
func (l *Loop) hand(ctx context.Context) {
	tick := time.NewTicker(l.cfg.Poll)
	defer tick.Stop()
	// handed are the revisions that the harness was handed last.
	handed := map[string]string{}
	said := ""
	for {
		look := false
		select {
		case <-ctx.Done():
			return
		case <-l.due:
		case <-tick.C:
			look = true
		}
		err := l.handAll(ctx, handed, look)
		if ctx.Err() != nil {
			return
		}
		words := ""
		if err != nil {
			words = err.Error()
		}
		l.mu.Lock()
		l.handing = words
		l.mu.Unlock()
		switch {
		case words == said:
		case words != "":
			l.cfg.Log.Warn("the harness has not all of the rig's config; trying again", "every", l.cfg.Poll, "err", err)
		default:
			l.cfg.Log.Info("the harness has the rig's config again")
		}
		said = words
	}
}

// handAll hands what the harness is not known to have; look asks it first.
func (l *Loop) handAll(ctx context.Context, handed map[string]string, look bool) error {
	var errs []error
	for _, key := range wire.HarnessConfigKeys {
		l.mu.Lock()
		has, known := l.held.values[key]
		l.mu.Unlock()
		if !known {
			continue
		}
		if look {
			is, err := l.cfg.Harness.HeldConfig(ctx, key)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			delete(handed, key)
			if is.Held {
				handed[key] = is.Revision
			}
		}
		if revision, ok := handed[key]; ok && revision == has.revision {
			continue
		}
		if err := l.cfg.Harness.HandConfig(ctx, key, has.revision, has.value); err != nil {
			delete(handed, key)
			errs = append(errs, err)
			continue
		}
		handed[key] = has.revision
	}
	return errors.Join(errs...)
}

// AdvisorRoutes gives the advisors' routes by role; known is false until the
// bus was read.
func (l *Loop) AdvisorRoutes() (v wire.AdvisorRoutesConfig, known bool) {
	return get[wire.AdvisorRoutesConfig](l, wire.ConfigAdvisorRoutes)
}

// MCPServers gives the MCP servers that the rig's runs name.
func (l *Loop) MCPServers() (v wire.MCPServersConfig, known bool) {
	return get[wire.MCPServersConfig](l, wire.ConfigMCPServers)
}

func get[V wire.ConfigValue](l *Loop, key string) (v V, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, known = l.held.values[key].value.(V)
	return v, known
}

// GitAccess gives the access of that name, for staging alone. It waits for one
// that control has not given yet.
func (l *Loop) GitAccess(ctx context.Context, name string) (wire.GitAccess, error) {
	timer := time.NewTimer(l.cfg.AccessWait)
	defer timer.Stop()
	for {
		changed := l.Changed()
		v, _ := get[wire.GitAccessConfig](l, wire.ConfigGitAccess)
		for _, a := range v.Accesses {
			if a.Name == name {
				return a, nil
			}
		}
		select {
		case <-changed:
		case <-timer.C:
			//lint:ignore ST1005 the name is Git's, and the sentence the seed's
			return wire.GitAccess{}, fmt.Errorf("Git access %s: control gave this rig none in its config on the message bus. "+
				"See in control's settings that there is one of that name and that its secret opens, and that the rig takes its config", name)
		case <-ctx.Done():
			return wire.GitAccess{}, ctx.Err()
		}
	}
}
