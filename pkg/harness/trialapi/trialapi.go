// Package trialapi is the trial API: HTTP on loopback for the workers of
// trials, as wire/trial.go has its paths, answers and codes.
//
// A worker has its trial's token and reaches its own trial's things: its
// lane's files, its notices, and of its run's attempts what a worker may
// see. The controller admits a trial before it starts the worker, and
// dismisses it when the worker has ended: from then on the token is nobody's.
//
//	server := trialapi.New(Config{Trials: controller, Files: lanes, …})
//	token, sum, err := trialapi.NewToken(rand)
//	trial := server.Admit(Session{Trial: …, Sum: sum, Editable: …})
//	trial.Tell("try fewer restarts"); trial.Stop("the run is stopped"); trial.Dismiss()
package trialapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"

	"thermite/pkg/wire"
)

// Ref names a trial: its number counts in its run.
type Ref struct {
	Run   string
	Trial uint64
}

// Trials is the controller, as the API asks it. Its methods are called from
// many goroutines. An error that is, or wraps, a *wire.TrialProblem is the
// answer as it is; any other is answered as failed.
type Trials interface {
	// Submit takes the trial's lane, as it is now, for an attempt, and
	// returns once the attempt is in the ledger. Of one trial, one Submit
	// is under way at a time. It answers with the codes TrialNothing (and
	// the Attempt that holds the same), TrialRefused, TrialBudget and
	// TrialStopping. Ctx ends when the worker has gone: what is in the
	// ledger by then stays there, and a worker that asks again is told
	// TrialNothing.
	Submit(ctx context.Context, trial Ref, s wire.Submit) (wire.Submitted, error)
	// Attempts gives attempts of the trial's run whose numbers are above
	// after, oldest first, at most as many as most. Of each, the steps may
	// lack.
	Attempts(ctx context.Context, trial Ref, after uint64, most int) ([]Facts, error)
	// Attempt gives one attempt of the trial's run, with the steps of its
	// newest judging, and a channel that is closed when there may be more to
	// say of it: at its verdict at the latest. It fails with TrialNotFound.
	Attempt(ctx context.Context, trial Ref, attempt uint64) (Facts, <-chan struct{}, error)
	// Progress is what the worker says it is doing, in a line.
	Progress(ctx context.Context, trial Ref, p wire.TrialProgress) error
	// Live is what a person may see of its work as it happens.
	Live(ctx context.Context, trial Ref, lines wire.TrialLines) error
}

// Facts are what the ledger has of an attempt. View says what of it a worker
// may see.
type Facts struct {
	Attempt wire.Attempt
	// Build, Check, Measure and Verdict are those of the judging that counts;
	// nil while there is none.
	Build, Check, Measure *wire.Step
	Verdict               *wire.Verdict
	// Public is its score on the public cases, if it passed those: of one that
	// failed on secret cases, the verdict has no score.
	Public       *float64
	Disqualified bool
}

// Files are the lanes' files, by the number of the lane: what pkg/harness/lanes
// has. Each is done as the lane's user, in the lane's folder; paths are
// checked by kit.CheckPath. A file that is not there is fs.ErrNotExist.
type Files interface {
	List(ctx context.Context, lane uint64) ([]wire.StepEntry, error)
	ReadFile(ctx context.Context, lane uint64, path string) ([]byte, error)
	WriteFile(ctx context.Context, lane uint64, path string, data []byte) error
	RemoveFile(ctx context.Context, lane uint64, path string) error
}

// Session is a trial that is to be admitted.
type Session struct {
	// Trial is what its worker is told.
	Trial wire.Trial
	// Sum is its token's.
	Sum Sum
	// Editable and Ignore are the kit's project's: what a candidate may
	// change, and what a list of the lane's files leaves out.
	Editable, Ignore []string
}

func (s Session) ref() Ref { return Ref{Run: s.Trial.Run, Trial: s.Trial.Trial} }

// Sum is a token's SHA-256: what is kept of it.
type Sum [sha256.Size]byte

// tokenBytes are a token's random bytes: 256 bits.
const tokenBytes = 32

// NewToken draws a token for a trial.
func NewToken(rand io.Reader) (token string, sum Sum, err error) {
	var b [tokenBytes]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return "", Sum{}, fmt.Errorf("drawing a trial's token: %w", err)
	}
	token = base64.RawURLEncoding.EncodeToString(b[:])
	return token, sha256.Sum256([]byte(token)), nil
}
