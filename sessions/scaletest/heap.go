// Package scaletest measures what a test takes.
package scaletest

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Heap runs fn and returns how far the heap grew meanwhile, and by how much afterwards. Garbage is collected early, so that
// nearly all of it is in use.
func Heap(t testing.TB, fn func()) (peak, after int64) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, top := m.HeapAlloc, m.HeapAlloc
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		var m runtime.MemStats
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				top = max(top, m.HeapAlloc)
			}
		}
	}()
	fn()
	close(stop)
	<-done
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(top - before), int64(m.HeapAlloc) - int64(before)
}
