// The program checks counts: they are exactly what the case's maker counted,
// and the run left nothing else.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const maxFile = 64 << 10

type counts struct {
	Bytes   int64   `json:"bytes"`
	Lines   int64   `json:"lines"`
	Words   int64   `json:"words"`
	Longest int64   `json:"longest"`
	Each    []int64 `json:"each"`
}

func main() {
	b, err := os.ReadFile(filepath.Join(os.Args[1], "expected.json"))
	var want counts
	if err = errors.Join(err, json.Unmarshal(b, &want)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	why := ""
	if err := check(want, os.Args[2]); err != nil {
		why = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"ok": why == "", "why": why, "values": map[string]float64{}})
}

func check(want counts, outDir string) error {
	entries, err := os.ReadDir(outDir)
	if err != nil {
		return errors.New("the run left no folder")
	}
	if len(entries) != 1 || entries[0].Name() != "counts.json" {
		return errors.New("the run left something else than counts.json")
	}
	file := filepath.Join(outDir, "counts.json")
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return errors.New("counts.json is no plain file of 64 KiB at most")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return errors.New("counts.json can't be read")
	}
	var got counts
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		return errors.New("counts.json holds no counts")
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("counts.json goes on after its end")
	}
	return compare(want, got)
}

// compare says which count is wrong and never what is right: what it says
// reaches the candidate's maker.
func compare(want, got counts) error {
	switch {
	case got.Bytes != want.Bytes:
		return errors.New("bytes is wrong")
	case got.Lines != want.Lines:
		return errors.New("lines is wrong")
	case got.Words != want.Words:
		return errors.New("words is wrong")
	case got.Longest != want.Longest:
		return errors.New("longest is wrong")
	case len(got.Each) != len(want.Each):
		return errors.New("each has not 256 counts")
	}
	for i := range want.Each {
		if got.Each[i] != want.Each[i] {
			return errors.New("each is wrong")
		}
	}
	return nil
}
