package client

import (
	"io"
	"log"
)

// quiet is the log of a test server whose handshakes fail on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
