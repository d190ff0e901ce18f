package launch

import (
	"io"
	"os"
)

// CopyOutput copies what a process writes to its file, at most limit bytes,
// and calls over, once, when there is more; what follows is read and dropped,
// so that the process does not hang before it is ended. It closes both.
func CopyOutput(to, from *os.File, limit int64, over func()) {
	defer from.Close()
	defer to.Close()
	if _, err := io.CopyN(to, from, limit); err != nil {
		if err != io.EOF { // the disk is full: the process must not think it wrote
			over()
		}
		return
	}
	var one [1]byte
	if n, _ := from.Read(one[:]); n == 0 {
		return
	}
	over()
	_, _ = io.Copy(io.Discard, from)
}
