package commands

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"thermite/pkg/wire"
)

// The phases of a command that the supervisor holds.
type phase int

const (
	// renewing waits for control's answer: the command had expired.
	renewing phase = iota
	// lapsed is one whose renewal failed: it is asked for again when the bus
	// hands it again.
	lapsed
	// staging is one whose content is being fetched.
	staging
	// ready is to be handed to the harness, and handing is being handed.
	ready
	handing
	// applying is with the harness, which has no outcome yet: it is asked
	// again when the bus hands the command again.
	applying
)

// item is a command that the supervisor holds: the bus does until it is acked.
type item struct {
	id string
	// seq is its place in COMMANDS.
	seq     uint64
	raw     jsontext.Value
	expires time.Time
	// run is what it is about, source what it brings, if anything, and access
	// the Git access to fetch it with.
	run    string
	source *wire.KitSource
	access string

	phase phase
	// folder is what was staged, and failed why it could not be.
	folder, failed string
	// staged says that either is known.
	staged bool
	// asked says that a renewal was asked for and not answered.
	asked bool
	// renewNext and handNext are when the next try may be.
	renewNext, handNext time.Time
	// tries counts those to hand it that failed in a row.
	tries int
}

// Pauses of the supervisor's own.
const (
	// handPause is between tries to hand a command to a harness that could
	// not be reached, twice as long each time, up to the bus's own pause.
	handPause = 250 * time.Millisecond
	// renewPause is between asks for a command whose content still stages.
	renewPause = time.Minute
	// missSlack is how much later than it should the bus may hand a command
	// again.
	missSlack = time.Second
	// mostHands is how many commands are handed at once, each of another run.
	mostHands = 4
	// mostDone is how many commands that are over are known.
	mostDone = 1000
)

// An effect is something to do, for the command of that id.
type effect struct {
	do what
	id string
}

type what int

const (
	// toStage fetches what the command brings, toRenew asks control for it
	// again, and toHand hands it to the harness.
	toStage what = iota
	toRenew
	toHand
	// toAck tells the bus that the command is over, and toDrop removes what
	// was staged for it.
	toAck
	toDrop
)

// queue is what a supervisor knows of the commands that the bus handed it. It
// is pure: time comes from outside, and what is to be done goes back.
//
//	delivered ─▶ (expired: renewed) ─▶ (content: staged) ─▶ handed ─▶ outcome ─▶ acked
//
// Commands about one run are handed in their order: one never overtakes that
// which begins the run. Those of other runs go on meanwhile.
type queue struct {
	items []*item
	// done are the ids of commands that are over, the newest last.
	done []string
	// missing is how many commands the bus handed out that did not come: to a
	// supervisor before this one, or on a connection that broke. It hands them
	// again only after a while, and later ones wait for them, until missUntil
	// at most.
	missing   int
	missUntil time.Time
	// handedOut counts what the bus handed out.
	handedOut uint64
}

// began takes that the bus waits for so many acks as it begins to hand out
// commands, and how many it handed out before.
func (q *queue) began(now time.Time, unacked int, handedOut uint64) {
	q.handedOut, q.missing = handedOut, 0
	q.miss(now, unacked-len(q.items))
}

// miss takes that so many commands did not come.
func (q *queue) miss(now time.Time, n int) {
	if n > 0 {
		q.missing, q.missUntil = q.missing+n, now.Add(wire.CommandAgain+missSlack)
	}
}

// came takes how many commands the bus has handed out with the one that comes
// now: those between it and the one before were lost on their way.
func (q *queue) came(now time.Time, handedOut uint64) {
	if handedOut > q.handedOut+1 {
		q.miss(now, int(min(handedOut-q.handedOut-1, wire.MaxCommandsWaiting)))
	}
	q.handedOut = handedOut
}

// get gives the command with that id, nil when it is not held.
func (q *queue) get(id string) *item {
	i := slices.IndexFunc(q.items, func(it *item) bool { return it.id == id })
	if i < 0 {
		return nil
	}
	return q.items[i]
}

// delivered takes a command that the bus handed, maybe again.
func (q *queue) delivered(now time.Time, new item, again bool) []effect {
	if slices.Contains(q.done, new.id) {
		return []effect{{toAck, new.id}}
	}
	it := q.get(new.id)
	if it == nil {
		if again {
			q.missing--
		}
		it = &new
		at, _ := slices.BinarySearchFunc(q.items, new.seq, func(has *item, seq uint64) int { return int(has.seq) - int(seq) })
		q.items = slices.Insert(q.items, at, it)
		return append(q.begin(now, it), q.next(now)...)
	}
	var do []effect
	switch it.phase {
	case lapsed:
		do = q.begin(now, it)
	case applying:
		it.phase = ready
	}
	it.handNext, it.tries = time.Time{}, 0
	return append(do, q.next(now)...)
}

// begin has an expired command renewed, and starts with one that is in force.
func (q *queue) begin(now time.Time, it *item) []effect {
	switch {
	case !now.Before(it.expires):
		under := it.asked
		it.phase, it.asked = renewing, true
		if under {
			return nil
		}
		return []effect{{toRenew, it.id}}
	case it.source != nil && !it.staged:
		it.phase = staging
		return []effect{{toStage, it.id}}
	}
	it.phase = ready
	return nil
}

// wasStaged takes that the content is in the folder, or why it can't be: the
// harness records that.
func (q *queue) wasStaged(now time.Time, id, folder, failed string) []effect {
	it := q.get(id)
	if it == nil || it.phase != staging {
		return []effect{{toDrop, id}} // it was wanted no more meanwhile
	}
	it.folder, it.failed, it.staged, it.phase = folder, failed, true, ready
	return q.next(now)
}

// wasRenewed takes control's answer: the command as it is signed now, or that
// it is wanted no more; an err tells nothing.
func (q *queue) wasRenewed(now time.Time, id string, raw jsontext.Value, expires time.Time, pending bool, err error) []effect {
	it := q.get(id)
	if it == nil {
		return nil
	}
	it.asked = false
	switch {
	case err != nil:
		if it.phase == renewing {
			it.phase = lapsed
		}
		return nil
	case it.phase == handing || it.phase == applying:
		return nil // the harness has it by now, and its outcome ends it
	case !pending:
		return append(q.over(it), q.next(now)...)
	}
	it.raw, it.expires = raw, expires
	var do []effect
	if it.phase == renewing {
		if !now.Before(expires) {
			it.phase = lapsed
			return nil
		}
		do = q.begin(now, it)
	}
	return append(do, q.next(now)...)
}

// wasHanded takes the harness's answer; an err tells that it gave none.
func (q *queue) wasHanded(now time.Time, id string, answer wire.CommandAnswer, err error) []effect {
	it := q.get(id)
	if it == nil || it.phase != handing {
		return nil
	}
	switch {
	case err != nil:
		it.phase, it.handNext = ready, now.Add(min(handPause<<min(it.tries, 10), wire.CommandAgain))
		it.tries++
		return q.next(now)
	case answer.State == wire.CommandApplying:
		it.phase = applying
		return q.next(now)
	}
	return append(q.over(it), q.next(now)...)
}

// over drops a command: the harness has its outcome, or control wants it no
// more.
func (q *queue) over(it *item) []effect {
	q.items = slices.DeleteFunc(q.items, func(other *item) bool { return other == it })
	if q.done = append(q.done, it.id); len(q.done) > mostDone {
		q.done = q.done[1:]
	}
	do := []effect{{toAck, it.id}}
	if it.source != nil {
		do = append(do, effect{toDrop, it.id})
	}
	return do
}

// next gives what is to be done by now.
func (q *queue) next(now time.Time) []effect {
	var do []effect
	hands := 0
	for _, it := range q.items {
		if it.phase == handing {
			hands++
		}
	}
	runs := map[string]bool{}
	for _, it := range q.items {
		first := it.run == "" || !runs[it.run]
		runs[it.run] = true
		switch {
		case it.phase == staging:
			if !it.asked && !now.Before(it.expires.Add(-wire.RenewBefore)) && !now.Before(it.renewNext) {
				it.asked, it.renewNext = true, now.Add(renewPause)
				do = append(do, effect{toRenew, it.id})
			}
		case it.phase != ready || !first || hands == mostHands || now.Before(it.handNext), q.missing > 0 && now.Before(q.missUntil):
		case !now.Before(it.expires):
			do = append(do, q.begin(now, it)...)
		default:
			it.phase = handing
			hands++
			do = append(do, effect{toHand, it.id})
		}
	}
	return do
}
