// Package protocol carries the broker's lines over its socket: see
// wire/broker.go for what they say.
package protocol

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"thermite/pkg/wire"
)

// ErrLineTooLong is wrapped by the error about a line past
// wire.MaxBrokerLine. The connection can't be read on.
var ErrLineTooLong = errors.New("the line is too long")

// writeTimeout ends a write to a peer that does not read.
const writeTimeout = 10 * time.Second

// A Conn is one end of a connection. One goroutine reads; any may write.
type Conn struct {
	conn    net.Conn
	reader  *bufio.Reader
	writing sync.Mutex
}

// NewConn makes a Conn of a connection.
func NewConn(c net.Conn) *Conn { return &Conn{conn: c, reader: bufio.NewReaderSize(c, 64<<10)} }

// ReadLine gives the next line, without its end. A line that the connection's
// end cuts off is no line.
func (c *Conn) ReadLine() ([]byte, error) {
	var line []byte
	for {
		part, err := c.reader.ReadSlice('\n')
		if len(line)+len(part) > wire.MaxBrokerLine {
			return nil, fmt.Errorf("reading a line of more than %d bytes: %w", wire.MaxBrokerLine, ErrLineTooLong)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// Write writes a request or an answer as one line.
func (c *Conn) Write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %T for the broker's socket: %w", v, err)
	}
	if len(line)+1 > wire.MaxBrokerLine {
		return fmt.Errorf("writing a line of %d bytes, where it may have %d: %w", len(line)+1, wire.MaxBrokerLine, ErrLineTooLong)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err
}

// Close ends the connection; what waits on it ends too.
func (c *Conn) Close() error { return c.conn.Close() }
