package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"thermite/cmd/thermite/internal/settings"
	"thermite/pkg/bus"
	"thermite/pkg/control/identity"
	"thermite/pkg/files"
)

// ErrInUse says that another thermite up uses the folder.
var ErrInUse = errors.New("another thermite up runs on this state folder")

// lockFolder holds the folder until the file is closed.
func lockFolder(dir string) (*os.File, error) {
	f, err := files.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, files.ErrLocked) {
		return nil, fmt.Errorf("%w: %s; stop it, or give this one a folder of its own with --state", ErrInUse, dir)
	}
	return f, err
}

// keepRig makes the rig local at the first start and keeps its token, and
// gives the token's file.
func (u *up) keepRig(ctx context.Context) (string, error) {
	path := filepath.Join(u.folders.supervisor, "token")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the token of rig %s: %w", RigName, err)
	}
	token, err := u.control.KeepRig(ctx, RigName)
	if err != nil {
		return "", fmt.Errorf("making rig %s: %w", RigName, err)
	}
	return path, files.Write(path, []byte(token+"\n"), 0o600)
}

// writeClient writes the settings with which the command line reaches
// control, and gives the file's path.
func (u *up) writeClient() (string, error) {
	token, err := os.ReadFile(filepath.Join(u.folders.control, identity.OwnerTokenFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the owner's token: %w", err)
	}
	path := filepath.Join(u.folders.state, settings.FileName)
	return path, settings.WriteFile(path, settings.File{URL: u.controlURL, Token: strings.TrimSpace(string(token)),
		Authority: filepath.Join(u.folders.control, bus.AuthorityFile)})
}
