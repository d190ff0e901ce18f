package faults

import "testing"

// The comparison the other tests end with sees each way in which a stream can
// differ from a ledger.
func TestSameEvents(t *testing.T) {
	events := func(all ...string) (b [][]byte) {
		for _, e := range all {
			b = append(b, []byte(e))
		}
		return b
	}
	ledger := events("1", "2", "3")
	for name, stream := range map[string][][]byte{
		"a gap":         events("1", "3"),
		"a double":      events("1", "2", "2", "3"),
		"another order": events("1", "3", "2"),
		"a short end":   events("1", "2"),
		"one too many":  events("1", "2", "3", "4"),
		"other bytes":   events("1", "x", "3"),
		"nothing":       nil,
	} {
		if sameEvents(stream, ledger) == nil {
			t.Errorf("%s passes", name)
		}
	}
	if err := sameEvents(ledger, ledger); err != nil {
		t.Error(err)
	}
}
