// Package count counts what is in a text. It is all that a candidate may
// change.
package count

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// bufferSize is how much is read at a time.
const bufferSize = 4096

// Counts is what is in a text.
type Counts struct {
	Bytes int64 `json:"bytes"`
	// Lines is how many newlines there are.
	Lines int64 `json:"lines"`
	// Words are what is between spaces, tabs and newlines.
	Words int64 `json:"words"`
	// Longest is the longest line's length in bytes, without its newline.
	Longest int64 `json:"longest"`
	// Each is how often each byte is there.
	Each [256]int64 `json:"each"`
}

// File counts a file.
func File(name string) (Counts, error) {
	var c Counts
	f, err := os.Open(name)
	if err != nil {
		return c, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, bufferSize)
	for {
		line, err := in.ReadString('\n')
		c.line(line)
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return c, err
		}
	}
}

func (c *Counts) line(line string) {
	c.Bytes += int64(len(line))
	for _, b := range []byte(line) {
		c.Each[b]++
	}
	if text, ok := strings.CutSuffix(line, "\n"); ok {
		c.Lines++
		line = text
	}
	c.Longest = max(c.Longest, int64(len(line)))
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	c.Words += int64(len(words))
}
