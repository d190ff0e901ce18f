package kb_test

import (
	"testing"
)

// A 50 MiB file, from the harness's outbox to kept by control: read from the
// harness, put on the bus in 50 chunks, put together, checked and on the disk.
func BenchmarkFile(b *testing.B) {
	w, _ := newWorld(b)
	var most int64
	b.SetBytes(50 << 20)
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		f := w.file(50<<20, byte(n))
		b.StartTimer()
		w.files.Round(b.Context())
		w.wait("the file is kept", func() bool { return w.kept(f) })
		b.StopTimer()
		state, err := w.admin.Server(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		most = max(most, state.MemBytes)
		if err := w.outbox.Kept([]string{f.SHA256}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/file")
	b.ReportMetric(float64(most)/(1<<20), "process-MiB")
}
