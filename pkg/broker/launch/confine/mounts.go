package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A tree is a copy of what is mounted at a path.
type tree struct {
	path string
	fd   int
	dir  bool
}

// arrangeMounts makes init's mount namespace the process's: everything is
// read-only but what the job lets it write, /tmp and its like are empty and
// its own, and /proc shows its own processes.
func arrangeMounts(j Job) error {
	unix.Umask(0o022) // of the folders made on the way to the job's paths
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("parting from the machine's mounts: %w", err)
	}
	trees, err := cloneTrees(j)
	if err != nil {
		return err
	}
	ro := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &ro); err != nil {
		return fmt.Errorf("making the file system read-only: %w", err)
	}
	options := fmt.Sprintf("mode=1777,size=%d", min(j.Start.Limits.Disk, j.Start.Limits.Memory))
	for _, p := range existing(private) {
		if err := unix.Mount("tmpfs", p, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return fmt.Errorf("giving it a %s of its own: %w", p, err)
		}
	}
	for _, t := range trees {
		if err := t.put(); err != nil {
			return err
		}
	}
	if j.PIDs {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("giving it a /proc of its own: %w", err)
		}
	}
	return nil
}

// cloneTrees copies the mounts of the paths that the process may write, and of
// those it may read which its own /tmp would hide. They are looked up as the
// process's user: what that user can't reach is not brought into its reach.
func cloneTrees(j Job) ([]tree, error) {
	if j.Switch {
		// This thread only, and until the lookup is done.
		if err := lookAs(j.UID, j.GID, j.Groups); err != nil {
			return nil, err
		}
		defer lookAs(0, 0, nil)
	}
	var trees []tree
	add := func(path string, readOnly bool) error {
		t, err := cloneTree(path, readOnly)
		if err != nil {
			return fmt.Errorf("bringing %s to it: %w", path, err)
		}
		trees = append(trees, t)
		return nil
	}
	for _, p := range j.Start.ReadOnly {
		// Elsewhere everything is read-only anyway.
		if hidden(p) || slices.ContainsFunc(j.Start.ReadWrite, func(w string) bool { return below(p, w) }) {
			if err := add(p, true); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range j.Start.ReadWrite {
		if err := add(p, false); err != nil {
			return nil, err
		}
	}
	// What is in another comes after it, and hides that part of it.
	slices.SortStableFunc(trees, func(a, b tree) int { return strings.Compare(a.path, b.path) })
	return trees, nil
}

// lookAs makes the thread's look-ups those of the user.
func lookAs(uid, gid int, groups []int) error {
	if err := setThreadGroups(groups); err != nil {
		return fmt.Errorf("taking groups %v to look up its paths: %w", groups, err)
	}
	if err := unix.Setfsgid(gid); err != nil {
		return fmt.Errorf("taking group %d to look up its paths: %w", gid, err)
	}
	if err := unix.Setfsuid(uid); err != nil {
		return fmt.Errorf("taking user %d to look up its paths: %w", uid, err)
	}
	return nil
}

// hidden says whether the process's own folders hide the path.
func hidden(path string) bool {
	return slices.ContainsFunc(private, func(p string) bool { return below(path, p) })
}

// below says whether the path is dir or in it.
func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func cloneTree(path string, readOnly bool) (tree, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return tree{}, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return tree{}, err
	}
	return tree{path: path, fd: fd, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// put mounts the copy at its path, which is made if it is in one of the
// process's own folders.
func (t tree) put() error {
	defer unix.Close(t.fd)
	if hidden(t.path) {
		if err := t.makePlace(); err != nil {
			return fmt.Errorf("making the place of %s: %w", t.path, err)
		}
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("putting %s in its place: %w", t.path, err)
	}
	return nil
}

func (t tree) makePlace() error {
	if t.dir {
		return os.MkdirAll(t.path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // in a folder that is there already
	}
	if err != nil {
		return err
	}
	return f.Close()
}
