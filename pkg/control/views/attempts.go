package views

// attempts are all of a run's attempts, compactly, as snapshots share them.
type attempts struct{}
