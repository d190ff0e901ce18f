package bus

import (
	"sync"

	"golang.org/x/time/rate"
)

// Bounds of what is logged because of what somebody else sends: each thing so
// often at once, and then at this rate. The rest is counted.
const (
	sayAtOnce    = 20
	saySecond    = 0.1
	mostThings   = 1000
	unsaidAttr   = "unsaid"
	tooManyNames = "other"
)

// seldom keeps a rig, or a stranger, from filling a log. Any number of
// goroutines may use it.
type seldom struct {
	mu     sync.Mutex
	things map[string]*thing
}

type thing struct {
	limit  *rate.Limiter
	unsaid int
}

// say says whether to log the thing now, and how often it was not logged
// since it last was.
func (s *seldom) say(what string) (now bool, unsaid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.things[what]
	if t == nil && len(s.things) >= mostThings {
		what = tooManyNames
		t = s.things[what]
	}
	if t == nil {
		if s.things == nil {
			s.things = map[string]*thing{}
		}
		t = &thing{limit: rate.NewLimiter(saySecond, sayAtOnce)}
		s.things[what] = t
	}
	if !t.limit.Allow() {
		t.unsaid++
		return false, 0
	}
	unsaid, t.unsaid = t.unsaid, 0
	return true, unsaid
}
