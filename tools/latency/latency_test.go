package main

import (
	"strings"
	"testing"
	"time"
)

// Promise: the table has the seed's rows, says of each what was measured and
// whether it is within, and a change that took too long is never hidden by
// the others.
func TestTheTable(t *testing.T) {
	rows := seedRows()
	for i := range 20 {
		rows[rowCommand].took(time.Duration(i+1) * time.Millisecond)
	}
	rows[rowVerdict].took(30 * time.Second)
	rows[rowVerdict].took(63 * time.Second)
	got := table(rows)
	for _, want := range []string{"a command, such as Pause", "11 ms", "20 ms", "within", "63 s", "LATE", "a new model route", "not measured yet"} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	if rows[rowCommand].late() || !rows[rowVerdict].late() || rows[rowRoute].late() {
		t.Errorf("late are the wrong rows:\n%s", got)
	}
	if n := len(strings.Split(strings.TrimSpace(got), "\n")); n != rowsInAll+1 {
		t.Errorf("the table has %d lines:\n%s", n, got)
	}
}
