package apply

// Lost says, with a *StreamError, that a store which applied the stream to
// the place finds no stream at all. It is for who makes the stream: one made
// anew would be in the way of one restored.
func Lost(place uint64) error { return pastEnd(place, 0) }
