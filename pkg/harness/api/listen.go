package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"thermite/pkg/wire"
)

// socketMode lets the harness's user and the socket's group connect: the
// supervisor is in that group.
const socketMode = 0o660

// ErrAnswered says that a harness already listens on the socket.
var ErrAnswered = errors.New("a harness already answers there")

// Listen makes the socket at path. A socket that a harness left when it was
// killed is removed; one that is answered is an error, and so is any other
// file there.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("making the socket's folder: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: %w", path, err), l.Close())
	}
	return l, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return errors.New("there is a file that is no socket")
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		return errors.Join(ErrAnswered, c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// peerKey is where a connection's context keeps its peer's user.
type peerKey struct{}

// withPeer notes who is at the other end, as the kernel says.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	unixConn, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return ctx
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || failed != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, int(peer.Uid))
}

// peerOf gives the user id of who called.
func peerOf(ctx context.Context) (int, error) {
	uid, ok := ctx.Value(peerKey{}).(int)
	if !ok {
		return 0, &wire.HarnessProblem{Status: 403, Code: wire.CodeForbidden, Detail: "the kernel does not say who called"}
	}
	return uid, nil
}
