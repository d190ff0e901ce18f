package live

import (
	"container/list"

	"thermite/pkg/wire"
)

// logs know how far each source's log came, the newest of them.
type logs struct {
	most  int
	known map[logKey]*list.Element
	// used has the log used last at the front.
	used *list.List
}

// logKey names a log. Logs' names are random; the rig keeps one rig's from
// being used by another that learnt it.
type logKey struct{ rig, run, source, log string }

type logAt struct {
	key  logKey
	last uint64
}

func newLogs(most int) *logs {
	return &logs{most: most, known: map[logKey]*list.Element{}, used: list.New()}
}

// next takes a batch: skip is how many of its first lines came before, and
// missed how many lines of its log before it did not come. Of a log that was
// not seen yet, what came before its first batch is not missed: it is old.
func (l *logs) next(b wire.LiveBatch) (skip int, missed uint64) {
	key := logKey{b.Rig, b.Run, b.Source, b.Log}
	at := l.known[key]
	if at == nil {
		l.known[key] = l.used.PushFront(&logAt{key, b.Last})
		if l.used.Len() > l.most {
			oldest := l.used.Back()
			delete(l.known, oldest.Value.(*logAt).key)
			l.used.Remove(oldest)
		}
		return 0, 0
	}
	l.used.MoveToFront(at)
	has := at.Value.(*logAt)
	switch {
	case b.Last <= has.last:
		return len(b.Lines), 0
	case b.First <= has.last:
		skip = int(has.last - b.First + 1)
	default:
		missed = b.First - has.last - 1
	}
	has.last = b.Last
	return skip, missed
}
