package users_test

import (
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"thermite/pkg/wire"
)

// BenchmarkLook is a look that finds nothing changed, among many rigs.
func BenchmarkLook(b *testing.B) {
	for _, rigs := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("rigs-%d", rigs), func(b *testing.B) {
			w := newWorld(b)
			err := w.store.Write(b.Context(), func(tx *sqlx.Tx) error {
				for i := range rigs {
					name := fmt.Sprint("rig-", i)
					if _, err := w.store.AddRig(b.Context(), tx, name, []byte(name), w.clock.now()); err != nil {
						return err
					}
					if err := w.store.SetBusKeys(b.Context(), tx, name, key(b), wire.SealKey{1}); err != nil {
						return err
					}
					w.runs[name] = []string{name + "-1", name + "-2"}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			w.look()
			for b.Loop() {
				w.look()
			}
			if n := w.server.count(); n != 1 {
				b.Errorf("the server was asked %d times", n)
			}
		})
	}
}
