// The program makes the case of a seed: a text of 8 MiB, and, hidden from the
// run, what is in it.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// size is how many bytes a text has, about.
const size = 8 << 20

type counts struct {
	Bytes   int64      `json:"bytes"`
	Lines   int64      `json:"lines"`
	Words   int64      `json:"words"`
	Longest int64      `json:"longest"`
	Each    [256]int64 `json:"each"`
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(seedText, dir string) error {
	seed, err := strconv.ParseUint(seedText, 10, 64)
	if err != nil {
		return err
	}
	text := made(rand.New(rand.NewPCG(seed, 2)))
	expected, err := json.Marshal(counted(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "input.txt"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "expected.json"), expected, 0o644)
}

// made writes words and lines of every length, runs of spaces, empty lines,
// and bytes that are no letters. The last line may lack its newline.
func made(rng *rand.Rand) []byte {
	length := size + rng.IntN(size/8)
	text := make([]byte, 0, length+64)
	for len(text) < length {
		switch n := rng.IntN(100); {
		case n < 8:
			text = append(text, '\n')
		case n < 10:
			text = append(text, '\t')
		case n < 12:
			text = append(text, ' ', ' ', ' ')
		case n == 99:
			text = append(text, byte(rng.IntN(256)))
		default:
			bits := rng.Uint64()
			for range 1 + bits%11 {
				bits >>= 5
				text = append(text, 'a'+byte(bits%26))
			}
			text = append(text, ' ')
		}
	}
	return text
}

// counted counts the plain way: what it says is what is right.
func counted(text []byte) counts {
	c := counts{Bytes: int64(len(text))}
	line, inWord := int64(0), false
	for _, b := range text {
		c.Each[b]++
		if b == '\n' {
			c.Lines++
			c.Longest = max(c.Longest, line)
			line = 0
		} else {
			line++
		}
		space := b == ' ' || b == '\t' || b == '\n'
		if !space && !inWord {
			c.Words++
		}
		inWord = !space
	}
	c.Longest = max(c.Longest, line)
	return c
}
