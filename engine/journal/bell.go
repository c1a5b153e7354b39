package journal

import (
	"sync"
	"sync/atomic"
	"time"
)

// After waking n readers the bell rests n times restPerReader. A wake costs a reader a few microseconds of processor, so
// however many follow a busy writer, together they take at most about half a core; each then reads in larger pieces.
// Below minRest there is no rest, so a few readers are told at once, always.
const (
	restPerReader = 10 * time.Microsecond
	minRest       = 200 * time.Microsecond
	maxRest       = 50 * time.Millisecond
)

// bell wakes readers that wait for the next record. Ringing costs the writer the same whether nobody or a thousand
// readers wait: a goroutine of the bell's own does the waking, once for however many rings came meanwhile.
// The first ring after quiet wakes at once.
//
// A waiter must take the channel first, then look again for what it waits for, then wait.
type bell struct {
	pressed chan struct{}
	waiting atomic.Bool

	mu      sync.Mutex
	ch      chan struct{} // nil while nobody waits
	waiters int           // how many took ch

	stopped chan struct{}
	done    chan struct{}
}

func newBell() *bell {
	b := &bell{
		pressed: make(chan struct{}, 1),
		stopped: make(chan struct{}),
		done:    make(chan struct{}),
	}
	go b.run()
	return b
}

func (b *bell) run() {
	defer close(b.done)
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-b.pressed:
		case <-b.stopped:
			b.wake()
			return
		}
		d := min(time.Duration(b.wake())*restPerReader, maxRest)
		if d < minRest {
			continue
		}
		rest.Reset(d)
		select {
		case <-rest.C:
		case <-b.stopped:
		}
	}
}

// wake says how many it woke.
func (b *bell) wake() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Store(false)
	n := b.waiters
	if b.ch != nil {
		close(b.ch)
		b.ch, b.waiters = nil, 0
	}
	return n
}

// ring never blocks.
func (b *bell) ring() {
	if !b.waiting.Load() {
		return
	}
	select {
	case b.pressed <- struct{}{}:
	default:
	}
}

// wait gives a channel that is closed by the next ring, or by stop.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
		b.waiting.Store(true)
	}
	b.waiters++
	return b.ch
}

// stop wakes everyone a last time and joins the goroutine. Call it once.
func (b *bell) stop() {
	close(b.stopped)
	<-b.done
}
