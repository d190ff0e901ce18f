package confine

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// openPorts brings loopback up in the process's own network, listens there on
// the job's ports, and hands the listeners to the broker, which is in the
// machine's network and passes what comes on to the same port there.
func (p *initProcess) openPorts() error {
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("bringing its loopback up: %w", err)
	}
	var fds []int
	for _, port := range p.job.Start.Ports {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return fmt.Errorf("opening port %d for it: %w", port, err)
		}
		defer l.Close()
		f, err := l.File()
		if err != nil {
			return fmt.Errorf("opening port %d for it: %w", port, err)
		}
		defer f.Close()
		fds = append(fds, int(f.Fd()))
	}
	if len(fds) == 0 {
		return nil
	}
	line := []byte(`{"ports":` + strconv.Itoa(len(fds)) + "}\n")
	if _, _, err := p.control.WriteMsgUnix(line, unix.UnixRights(fds...), nil); err != nil {
		return fmt.Errorf("handing its ports over: %w", err)
	}
	return nil
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// A forwarder passes connections from a process's network to the machine's.
type forwarder struct {
	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	open      map[net.Conn]bool
}

// forward serves the listeners, the files of which it closes.
func forward(files []*os.File, ports []int) (*forwarder, error) {
	f := &forwarder{open: map[net.Conn]bool{}}
	for i, file := range files {
		l, err := net.FileListener(file)
		_ = file.Close() // the listener has a copy
		if err != nil {
			f.close()
			return nil, fmt.Errorf("taking port %d of a process: %w", ports[i], err)
		}
		f.listeners = append(f.listeners, l)
		go f.serve(l, "127.0.0.1:"+strconv.Itoa(ports[i]))
	}
	return f, nil
}

// maxForwards is how many connections of a process are passed on at a time.
const maxForwards = 64

func (f *forwarder) serve(l net.Listener, to string) {
	slots := make(chan struct{}, maxForwards)
	for {
		slots <- struct{}{}
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { <-slots }()
			f.pass(from, to)
		}()
	}
}

func (f *forwarder) pass(from net.Conn, to string) {
	defer f.drop(from)
	if !f.keep(from) {
		return
	}
	there, err := net.Dial("tcp4", to)
	if err != nil {
		return
	}
	defer f.drop(there)
	if !f.keep(there) {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyHalf(there, from)
	}()
	copyHalf(from, there)
	<-done
}

// copyHalf passes one direction on, and its end.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either end may go at any time
	if t, ok := to.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}

func (f *forwarder) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.open[c] = true
	}
	return !f.closed
}

func (f *forwarder) drop(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
	_ = c.Close()
}

func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, l := range f.listeners {
		_ = l.Close()
	}
	for c := range f.open {
		_ = c.Close()
	}
}
