package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"thermite/pkg/broker"
)

// What a thing's process ends with.
const (
	could   = 0
	refused = 7
	misuse  = 99
)

// doThing is what this test's program does as a process of a broker: it tries
// something, and says whether it could.
func doThing(what string, args []string) int {
	err := errors.New("no such thing: " + what)
	switch what {
	case "broker":
		err = serveAsBroker(args)
	case "read":
		_, err = os.ReadFile(args[0])
	case "list":
		_, err = os.ReadDir(args[0])
	case "write":
		err = os.WriteFile(args[0], []byte("x"), 0o600)
	case "remove":
		err = os.Remove(args[0])
	case "signal":
		err = unix.Kill(number(args[0]), unix.SIGCONT)
	case "ptrace":
		err = unix.PtraceAttach(number(args[0]))
	case "connect":
		err = connect(args[0], args[1])
	case "listen":
		err = listen(args[0])
	case "mount":
		err = unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "")
	case "unshare":
		err = unix.Unshare(unix.CLONE_NEWUSER)
	case "setuid":
		err = unix.Setuid(0)
	case "socket":
		err = socket(number(args[0]), number(args[1]))
	case "iouring":
		_, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
		if err = e; e == unix.EFAULT {
			err = nil // it was heard
		}
	case "hog":
		hog(number(args[0]))
		err = nil
	case "burn":
		err = burn(time.Duration(number(args[0])) * time.Millisecond)
	case "trap":
		signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
		fmt.Println("ready")
		select {}
	default:
		fmt.Fprintln(os.Stderr, err)
		return misuse
	}
	if err != nil {
		fmt.Println(err)
		return refused
	}
	return could
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// connect connects, and asks for a line, which a broker that refuses does not
// give.
func connect(network, to string) error {
	c, err := net.DialTimeout(network, to, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_, _ = c.Write([]byte(`{"seq":1,"ping":{}}` + "\n")) // one that speaks first may have closed
	_, err = io.ReadAtLeast(c, make([]byte, 1), 1)
	return err
}

func listen(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	return l.Close()
}

func socket(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// hog uses so many MiB, and stays a while.
func hog(mib int) {
	var all [][]byte
	for range mib {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	<-ctx.Done()
	fmt.Println(len(all))
}

// burn uses so much CPU time.
func burn(much time.Duration) error {
	var u unix.Rusage
	for time.Duration(u.Utime.Nano()+u.Stime.Nano()) < much {
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			return err
		}
	}
	return nil
}

// serveAsBroker is a broker in a process of its own, to be killed.
func serveAsBroker(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b, err := broker.New(ctx, broker.Config{File: args[0], StateDir: args[1], Socket: args[2], Build: "test", Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return b.Run(ctx)
}
