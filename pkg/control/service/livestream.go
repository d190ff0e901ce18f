package service

import (
	"bytes"
	"context"
	"strconv"
	"time"
)

// The stream of live lines, as server-sent events.
const (
	// LiveStreamType is its media type.
	LiveStreamType = "text/event-stream"
	// LiveWriteTimeout is how long a reader may take to take one event: one
	// that hangs is ended, and comes again from its last line.
	LiveWriteTimeout = 30 * time.Second
	// liveLife is how long one connection streams: the reader comes again by
	// itself, and who it is is looked at again.
	liveLife = 10 * time.Minute
	// liveBeat is how often a stream without lines shows that it is there.
	liveBeat = 15 * time.Second
	// liveGap is the least time between two events: lines that come meanwhile
	// go together.
	liveGap = 50 * time.Millisecond
)

// liveRetry is how soon a browser comes again after a drop.
const liveRetry = "retry: 1000\n\n"

// Stream writes the lines as they come as server-sent events, each an event
// "lines" whose id is the place after them, until ctx ends, the reader goes,
// or it is time to come again. write must have the event on its way when it
// returns.
//
//	id: 20311.4.1764590000000.77
//	event: lines
//	data: {"missed":0,"lines":[…]}
func (w *LiveWatch) Stream(ctx context.Context, write func(event []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, liveLife)
	defer cancel()
	if err := write([]byte(liveRetry)); err != nil {
		return err
	}
	for ctx.Err() == nil {
		beat, stop := context.WithTimeout(ctx, liveBeat)
		news, ok := w.Next(beat)
		stop()
		event := []byte(": still here\n\n")
		if ok {
			event = news.event()
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := write(event); err != nil {
			return err
		}
		if ok {
			pause(ctx, liveGap)
		}
	}
	return nil
}

// event writes the lines as one event.
func (n LiveNews) event() []byte {
	var b bytes.Buffer
	b.WriteString("id: " + n.Next + "\nevent: lines\ndata: {\"missed\":" + strconv.FormatUint(n.Missed, 10) + ",\"lines\":[")
	for i, line := range n.Lines {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(line)
	}
	b.WriteString("]}\n\n")
	return b.Bytes()
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
