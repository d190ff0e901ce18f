// The program holds a candidate's prompt to the kit's rules; there is nothing
// to build.
package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"unicode/utf8"
)

const (
	file = "prompt.txt"
	// maxBytes leaves room for how to work, and none for a book of answers.
	maxBytes = 4000
	// maxAnswers is how many numbers with an equals sign or Answer: before
	// them a prompt may show as examples.
	maxAnswers = 8
)

var (
	question = []byte("{{question}}")
	shown    = regexp.MustCompile(`(?i)(?:answer:?|=|is|->)\s*-?[0-9]`)
)

func main() {
	if err := rules(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func rules() error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	switch n := bytes.Count(b, question); {
	case len(b) > maxBytes:
		return fmt.Errorf("%s has %d bytes, at most %d", file, len(b), maxBytes)
	case !utf8.Valid(b):
		return fmt.Errorf("%s is no UTF-8 text", file)
	case n != 1:
		return fmt.Errorf("%s has %s %d times, where it is there once", file, question, n)
	case len(shown.FindAll(b, -1)) > maxAnswers:
		return fmt.Errorf("%s shows more than %d answers", file, maxAnswers)
	}
	return nil
}
