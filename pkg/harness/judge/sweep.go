package judge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"thermite/pkg/harness/steps"
	"thermite/pkg/wire"
)

// Clean ends what an earlier judge had under way, and removes what it left:
// before the first judging.
func (j *Judge) Clean(ctx context.Context) error {
	if err := j.endEarlier(ctx); err != nil {
		return fmt.Errorf("ending what an earlier judge started: %w", err)
	}
	stays, err := j.keeping.stays()
	if err != nil {
		return fmt.Errorf("cleaning the judge's folders: %w", err)
	}
	entries, err := os.ReadDir(j.folders())
	if err != nil {
		return fmt.Errorf("cleaning the judge's folders: %w", err)
	}
	for _, e := range entries {
		if stays(e.Name()) {
			j.sweepRest(e.Name())
		} else {
			j.sweep(e.Name())
		}
	}
	return nil
}

// endEarlier ends the processes of the judge's roles.
func (j *Judge) endEarlier(ctx context.Context) error {
	all, err := j.cfg.Roles.List(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		if strings.HasPrefix(p.ID, runPrefix) || strings.HasPrefix(p.ID, steps.Prefix) && strings.HasPrefix(p.Role, "judge-") {
			steps.End(j.cfg.Roles, j.cfg.Log, p.ID)
		}
	}
	return nil
}

// litter is a folder with a role's files in it.
type litter struct{ role, path string }

// litterIn lists a folder's, all of it or what is not needed once it is kept.
func litterIn(dir string, all bool) []litter {
	found := []litter{{RoleRun, filepath.Join(dir, "l")}, {RoleCheck, filepath.Join(dir, "k")}}
	for _, pattern := range []string{"r/*/out", "r/*/tmp"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, p := range paths {
			found = append(found, litter{RoleRun, p})
		}
	}
	if all {
		return append(found, litter{RoleBuild, filepath.Join(dir, "b")}, litter{RoleBuild, filepath.Join(dir, "t")}, litter{RoleCheck, filepath.Join(dir, "c")})
	}
	found = append(found, litter{RoleBuild, filepath.Join(dir, "b", "cache")}, litter{RoleBuild, filepath.Join(dir, "b", "tmp")})
	if _, err := os.Stat(filepath.Join(dir, "t")); errors.Is(err, fs.ErrNotExist) { // else it is a kit's, whose cases stay
		found = append(found, litter{RoleCheck, filepath.Join(dir, "c")})
	}
	return found
}

// sweep removes folders in the background, and sweepRest what one does not
// need once it is kept.
func (j *Judge) sweep(names ...string) {
	for _, name := range names {
		dir := filepath.Join(j.folders(), name)
		j.inBackground(func() error { return j.remove(dir, litterIn(dir, true), dir) })
	}
}

func (j *Judge) sweepRest(name string) {
	dir := filepath.Join(j.folders(), name)
	found := litterIn(dir, false)
	paths := []string{filepath.Join(dir, "r"), filepath.Join(dir, "tree")}
	for _, l := range found {
		paths = append(paths, l.path)
	}
	j.inBackground(func() error { return j.remove(dir, found, paths...) })
}

func (j *Judge) inBackground(do func() error) {
	j.sweeps.Go(func() {
		if err := do(); err != nil {
			j.cfg.Log.Warn("what a judging left is not all removed: the next start of the harness tries again", "err", err)
		}
	})
}

// remove removes paths. Where files there are others' roles', those empty
// their folders first.
func (j *Judge) remove(dir string, found []litter, paths ...string) error {
	if removeAll(paths) == nil {
		return nil
	}
	for _, role := range []string{RoleBuild, RoleCheck, RoleRun} {
		s := steps.Step{Role: role, ReadWrite: []string{dir}, Deadline: 2 * slack, Limits: wire.BrokerLimits{Memory: 2 * ownMemory, Tasks: ownTasks}}
		for _, l := range found {
			if info, err := os.Lstat(l.path); l.role != role || err != nil || !info.IsDir() {
				continue
			}
			_ = os.Chmod(l.path, 0o777) // it may be the role's own
			s.Ops = append(s.Ops, wire.StepOp{Empty: l.path, GoOn: true})
		}
		if len(s.Ops) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*slack)
		_, err := j.steps.Run(ctx, s)
		cancel()
		if err != nil {
			return errors.Join(err, removeAll(paths))
		}
	}
	return removeAll(paths)
}

func removeAll(paths []string) error {
	var errs []error
	for _, p := range paths {
		errs = append(errs, os.RemoveAll(p))
	}
	return errors.Join(errs...)
}
