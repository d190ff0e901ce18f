package wire

import (
	"bytes"
	"errors"
	"fmt"
)

// The values of TrialResult.Outcome.
const (
	ResultDone   = "done"
	ResultFailed = "failed"
)

// maxResultBytes is how long the line with a worker's result may be.
const maxResultBytes = 64 << 10

// ErrNoResult: a worker's last line is no TrialResult.
var ErrNoResult = errors.New("is no result of a trial")

// LastLine gives the last line of what a worker printed that is not blank.
func LastLine(printed []byte) []byte {
	printed = bytes.TrimRight(printed, " \t\r\n")
	return bytes.TrimSpace(printed[bytes.LastIndexByte(printed, '\n')+1:])
}

// DecodeTrialResult reads the last line that a worker printed.
func DecodeTrialResult(line []byte) (TrialResult, error) {
	var r TrialResult
	if len(line) == 0 {
		return r, fmt.Errorf("the last line %w: nothing was printed", ErrNoResult)
	}
	if len(line) > maxResultBytes {
		return r, fmt.Errorf("the last line %w: it has %d bytes, at most %d", ErrNoResult, len(line), maxResultBytes)
	}
	if err := DecodeStrict(line, &r); err != nil {
		return TrialResult{}, fmt.Errorf("the last line %w: %q: %w", ErrNoResult, clip(string(line)), err)
	}
	if err := r.Check(); err != nil {
		return TrialResult{}, fmt.Errorf("the last line %w: %w", ErrNoResult, err)
	}
	return r, nil
}

// Check says what is wrong with r.
func (r TrialResult) Check() error {
	if r.Outcome != ResultDone && r.Outcome != ResultFailed {
		return fmt.Errorf("outcome %q is not %s or %s", clip(r.Outcome), ResultDone, ResultFailed)
	}
	if r.Outcome == ResultFailed && r.Why == "" {
		return errors.New("a failed trial says why")
	}
	return nil
}
