package judge

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
)

// order says of each pair of a phase whether the champion runs first: in half
// of them, and in which nobody can foretell who lacks the key. A judging that
// was cut off has the same order when it is made again.
func (g *judging) order(phase string, pairs int) []bool {
	mac := hmac.New(sha256.New, g.j.cfg.Key)
	fmt.Fprintf(mac, "thermite/order/v1\n%s\n%s\n%d\n%d\n%s", g.job.Ledger, g.job.Run, g.job.Attempt, max(g.job.Judging, 1), phase)
	r := rand.New(rand.NewChaCha8([32]byte(mac.Sum(nil))))
	odd := r.IntN(2) // which half is the larger, where there are two
	first := make([]bool, pairs)
	for i := range first {
		first[i] = (i+odd)%2 == 0
	}
	r.Shuffle(pairs, func(a, b int) { first[a], first[b] = first[b], first[a] })
	return first
}
