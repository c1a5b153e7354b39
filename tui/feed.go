package tui

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/engine/journal"
)

const (
	// frame is the least time between two batches of a trickle, and two redraws for them.
	frame = 33 * time.Millisecond
	// batchRecords bounds the work of one Update.
	batchRecords = 1000
	// feedBytes bounds what waits for the UI. A supervisor's journal is on disk: a feed that
	// stops reading loses nothing.
	feedBytes = 8 << 20
)

// feed reads a session's journal ahead of the UI, by a bounded amount.
type feed struct {
	session string
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing more is added
	err     error         // of reading, once done is closed

	mu      sync.Mutex
	waiting []journal.Record
	bytes   int
	some    chan struct{} // capacity 1: there may be something
	room    chan struct{} // capacity 1: there may be room

	last time.Time // of the last batch; only touched by the command that waits
}

// fed is a batch of records of a session, in order.
type fed struct {
	feed    *feed
	records []journal.Record
	ended   bool
	err     error
}

// startFeed reads from after since until the session ends or ctx does.
func startFeed(ctx context.Context, j Journals, session string, since uint64) *feed {
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{session: session, cancel: cancel, done: make(chan struct{}), some: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	go func() {
		defer close(f.done)
		f.err = j.Records(ctx, session, since, true, func(r journal.Record) error { return f.add(ctx, r) })
		if ctx.Err() != nil {
			f.err = nil
		}
	}()
	return f
}

func (f *feed) add(ctx context.Context, r journal.Record) error {
	for {
		f.mu.Lock()
		// One record of any size always fits into an empty queue.
		if len(f.waiting) == 0 || f.bytes+len(r.Data) <= feedBytes && len(f.waiting) < batchRecords {
			f.waiting = append(f.waiting, r)
			f.bytes += len(r.Data)
			f.mu.Unlock()
			signal(f.some)
			return nil
		}
		f.mu.Unlock()
		select {
		case <-f.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (f *feed) take() []journal.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.waiting
	f.waiting, f.bytes = nil, 0
	signal(f.room)
	return r
}

// wait is the command that returns the next batch. A trickle is collected for a frame, a
// flood comes as fast as it is taken.
func (f *feed) wait() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-f.some:
		case <-f.done:
		}
		if pause := frame - time.Since(f.last); pause > 0 {
			t := time.NewTimer(pause)
			defer t.Stop()
			select {
			case <-t.C:
			case <-f.done:
			}
		}
		f.last = time.Now()
		records := f.take()
		if len(records) > 0 {
			return fed{feed: f, records: records}
		}
		select {
		case <-f.done:
			// What came between taking and the end.
			return fed{feed: f, records: f.take(), ended: true, err: f.err}
		default:
			return fed{feed: f}
		}
	}
}

// close ends the feed and waits until it has.
func (f *feed) close() {
	f.cancel()
	<-f.done
}
