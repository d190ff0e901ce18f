package isolation_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// A probe is one thing that a role's process tries.
type probe struct {
	What string   `json:"what"`
	Args []string `json:"args"`
}

func (p probe) String() string { return fmt.Sprint(p.What, " ", p.Args) }

// A found is what came of a probe: empty words when it could be done.
type found struct {
	probe
	Refused string `json:"refused"`
}

// try does the probes of a file and prints what came of each.
func try(file string) int {
	b, err := os.ReadFile(file)
	var probes []probe
	if err == nil {
		err = json.Unmarshal(b, &probes)
	}
	var all []found
	for _, p := range probes {
		f := found{probe: p}
		if err := do(p); err != nil {
			f.Refused = err.Error()
		}
		all = append(all, f)
	}
	if err == nil {
		err = json.MarshalWrite(os.Stdout, all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func do(p probe) error {
	arg := func(i int) string { return p.Args[i] }
	switch p.What {
	case "read":
		f, err := os.OpenFile(arg(0), os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err = f.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case "write":
		f, err := os.OpenFile(arg(0), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case "list":
		_, err := os.ReadDir(arg(0))
		return err
	case "make":
		if err := os.WriteFile(arg(0)+"/planted", nil, 0o600); err != nil {
			return err
		}
		return os.Remove(arg(0) + "/planted")
	case "move":
		if err := os.Rename(arg(0), arg(0)+".moved"); err != nil {
			return err
		}
		return os.Rename(arg(0)+".moved", arg(0))
	case "connect":
		return connect(arg(0), arg(1))
	case "signal":
		return unix.Kill(number(arg(0)), unix.Signal(0))
	case "trace":
		return unix.PtraceAttach(number(arg(0)))
	case "detach":
		cmd := exec.Command("/bin/sleep", arg(0))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	}
	return errors.New("no such probe")
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// connect connects and waits for the other's first byte.
func connect(network, to string) error {
	c, err := net.DialTimeout(network, to, 2*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("GET /v1/trial HTTP/1.0\r\n\r\n")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}
