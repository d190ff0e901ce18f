package judge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"thermite/pkg/kit"
	"thermite/pkg/wire"
)

// secretSeeds are a judging's: one for each of its pairs, as what a run leaves
// where the next one sees it, if only which of its own files are in memory, is
// worth something on a case that comes again. They are all different, none
// public, and always the same for the same judging. Who lacks the key can
// foretell none.
func secretSeeds(key []byte, job Job, c kit.Cases, pairs int) []uint64 {
	var seeds []uint64
	for n := uint64(0); len(seeds) < pairs; n++ {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "thermite/seed/v1\n%s\n%s\n%d\n%d\n%d", job.Ledger, job.Run, job.Attempt, max(job.Judging, 1), n)
		seed := binary.BigEndian.Uint64(mac.Sum(nil)) & wire.MaxInteger
		if seed == 0 || slices.Contains(seeds, seed) || slices.Contains(c.Public, seed) {
			continue
		}
		seeds = append(seeds, seed)
	}
	return seeds
}
