package lanes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"thermite/pkg/harness/steps"
	"thermite/pkg/wire"
)

// A Worker is a process that works in a lane.
type Worker struct {
	// ID is its name at the broker.
	ID   string
	Argv []string
	// Env comes besides PATH, HOME and TMPDIR.
	Env      map[string]string
	Deadline time.Duration
	// Ports are those of loopback that it reaches: the trial API's.
	Ports []int
	// ReadOnly are further paths that it may read: its program's.
	ReadOnly []string
	Limits   wire.BrokerLimits
}

// Adopt takes a lane as an earlier harness left it: project is its clone, as
// Prepare gave it.
func (l *Lanes) Adopt(lane uint64, project string) error {
	dir := filepath.Dir(project)
	if filepath.Base(project) != projectName || filepath.Dir(dir) != l.dir(lane) {
		return fmt.Errorf("taking lane %d as it is: %s is no folder of it", lane, project)
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("taking lane %d as it is: %w", lane, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[lane] = dir
	return nil
}

// Start starts a worker in the lane, as the lane's user: it begins in the
// project, may write there and in its home, and reaches nothing else but the
// system's programs and its ports.
func (l *Lanes) Start(ctx context.Context, lane uint64, w Worker) (wire.BrokerStarted, error) {
	dir, err := l.folder(lane)
	if err != nil {
		return wire.BrokerStarted{}, err
	}
	project, home := filepath.Join(dir, projectName), filepath.Join(dir, homeName)
	env := map[string]string{"PATH": l.cfg.Path, "HOME": home, "TMPDIR": "/tmp"}
	maps.Copy(env, w.Env)
	started, err := steps.Start(ctx, l.cfg.Roles, wire.BrokerStart{ID: w.ID, Role: RoleOf(lane), Argv: w.Argv, Env: env, Cwd: project,
		Limits: w.Limits, Deadline: w.Deadline, Ports: w.Ports, ReadOnly: w.ReadOnly, ReadWrite: []string{project, home}})
	if err != nil {
		return wire.BrokerStarted{}, fmt.Errorf("starting the worker of lane %d: %w", lane, err)
	}
	return started, nil
}
