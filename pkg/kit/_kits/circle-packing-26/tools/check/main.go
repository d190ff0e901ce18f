// The program checks a packing in exact arithmetic: every number that the
// candidate wrote is taken as the rational it is, and no tolerance is given.
// Circles may touch each other and the border; nothing overlaps by anything.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
)

const (
	circles = 26
	maxFile = 64 << 10
)

// number is what one may be written as; its length and exponent bound what
// the exact arithmetic costs.
var number = regexp.MustCompile(`\A-?[0-9]{1,20}(\.[0-9]{1,30})?(e[-+]?[0-9]{1,2})?\z`)

func main() {
	sum, why, err := check(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answer := map[string]any{"ok": why == "", "why": why, "values": map[string]float64{}}
	if why == "" {
		answer["values"] = map[string]float64{"sum": sum}
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer)
}

// check gives the sum of the radii for a side of 1, or why the packing is
// none. An error is the judge's own trouble.
func check(caseDir, outDir string) (sum float64, why string, err error) {
	b, err := os.ReadFile(filepath.Join(caseDir, "square.json"))
	if err != nil {
		return 0, "", err
	}
	var square struct{ X, Y, Side json.Number }
	if err := json.Unmarshal(b, &square); err != nil {
		return 0, "", err
	}
	var corner [3]*big.Rat
	for i, n := range []json.Number{square.X, square.Y, square.Side} {
		if corner[i] = rational(string(n)); corner[i] == nil {
			return 0, "", fmt.Errorf("the case says %q", n)
		}
	}
	rows, err := read(filepath.Join(outDir, "circles.json"))
	if err != nil {
		return 0, err.Error(), nil
	}
	total, err := judge(corner[0], corner[1], corner[2], rows)
	if err != nil {
		return 0, err.Error(), nil
	}
	sum, _ = total.Quo(total, corner[2]).Float64()
	return sum, "", nil
}

func rational(s string) *big.Rat {
	if !number.MatchString(s) {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	return r
}

func read(file string) ([][]string, error) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, errors.New("circles.json is missing, no plain file, or larger than 64 KiB")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.New("circles.json can't be read")
	}
	var answer struct {
		Circles [][]string `json:"circles"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&answer); err != nil {
		return nil, errors.New("circles.json is no list of circles")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("circles.json goes on after its end")
	}
	return answer.Circles, nil
}

// judge gives the sum of the radii of circles in the square.
func judge(x, y, side *big.Rat, rows [][]string) (*big.Rat, error) {
	if len(rows) != circles {
		return nil, fmt.Errorf("there are %d circles, not %d", len(rows), circles)
	}
	right, top := new(big.Rat).Add(x, side), new(big.Rat).Add(y, side)
	all := make([][3]*big.Rat, circles)
	sum := new(big.Rat)
	for i, row := range rows {
		if len(row) != 3 {
			return nil, fmt.Errorf("circle %d is no x, y and radius", i+1)
		}
		for k, s := range row {
			if all[i][k] = rational(s); all[i][k] == nil {
				return nil, fmt.Errorf("circle %d has something that is no number", i+1)
			}
		}
		cx, cy, r := all[i][0], all[i][1], all[i][2]
		if r.Sign() <= 0 {
			return nil, fmt.Errorf("circle %d has no radius", i+1)
		}
		var t big.Rat
		if t.Sub(cx, r).Cmp(x) < 0 || t.Add(cx, r).Cmp(right) > 0 || t.Sub(cy, r).Cmp(y) < 0 || t.Add(cy, r).Cmp(top) > 0 {
			return nil, fmt.Errorf("circle %d is not in the square", i+1)
		}
		sum.Add(sum, r)
	}
	for i := range all {
		for j := range i {
			if overlap(all[i], all[j]) {
				return nil, fmt.Errorf("circles %d and %d overlap", j+1, i+1)
			}
		}
	}
	return sum, nil
}

func overlap(a, b [3]*big.Rat) bool {
	var dx, dy, reach big.Rat
	dx.Sub(a[0], b[0])
	dy.Sub(a[1], b[1])
	reach.Add(a[2], b[2])
	dx.Mul(&dx, &dx)
	dy.Mul(&dy, &dy)
	return dx.Add(&dx, &dy).Cmp(reach.Mul(&reach, &reach)) < 0
}
