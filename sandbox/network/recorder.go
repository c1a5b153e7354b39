package network

import (
	"sync"
	"sync/atomic"
	"time"

	"patio/sandbox/network/policy"
)

const (
	// queueSize is how many events wait for a slow Record: some seconds of the highest rate the limits admit.
	queueSize = 8192
	// window is the time in which equal events become one.
	window = time.Second
	// maxKeys is how many different events a window tells apart; what comes on top is counted without its host and port.
	// A port scan is then some hundred events each second, not a thousand times as many.
	maxKeys = 256
)

// recorder hands events to Record from one goroutine, without ever holding up who reports them.
type recorder struct {
	record  func(Event)
	now     func() time.Time
	dropped atomic.Int64

	mu     sync.Mutex
	closed bool
	recent map[eventKey]*repeats
	tick   *time.Timer // runs while recent has entries
	queue  chan Event
	done   chan struct{}
}

type eventKey struct {
	kind     Kind
	verdict  policy.Verdict
	host     string
	port     uint16
	protocol policy.Protocol
	rule     string
	reason   policy.Reason
}

type repeats struct {
	last  Event
	count int64
}

func newRecorder(record func(Event), now func() time.Time) *recorder {
	if record == nil {
		record = func(Event) {}
	}
	r := &recorder{
		record: record, now: now,
		recent: make(map[eventKey]*repeats), tick: time.NewTimer(window),
		queue: make(chan Event, queueSize), done: make(chan struct{}),
	}
	r.tick.Stop()
	go r.run()
	return r
}

// emit queues an event as it is.
func (r *recorder) emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(e)
}

func (r *recorder) put(e Event) {
	if r.closed {
		return
	}
	if e.Time.IsZero() {
		e.Time = r.now()
	}
	select {
	case r.queue <- e:
	default:
		r.dropped.Add(1)
	}
}

// repeat queues the first of equal events at once, and those of the following second as one with their number.
func (r *recorder) repeat(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	e.Time, e.Count = r.now(), 1
	key := eventKey{e.Kind, e.Verdict, e.Host, e.Port, e.Protocol, e.Rule, e.Reason}
	seen, ok := r.recent[key]
	if !ok && len(r.recent) >= maxKeys {
		e.Host, e.Port = "", 0
		key.host, key.port = "", 0
		seen, ok = r.recent[key]
	}
	if ok {
		seen.last = e
		seen.count++
		return
	}
	if len(r.recent) == 0 {
		r.tick.Reset(window)
	}
	r.recent[key] = &repeats{}
	r.put(e)
}

func (r *recorder) run() {
	defer close(r.done)
	reported := int64(0)
	deliver := func(e Event) {
		r.record(e)
		if d := r.dropped.Load(); d > reported {
			r.record(Event{Time: r.now(), Kind: KindDropped, Count: d - reported})
			reported = d
		}
	}
	for {
		select {
		case e, open := <-r.queue:
			if !open {
				for _, e := range r.flush() {
					deliver(e)
				}
				return
			}
			deliver(e)
		case <-r.tick.C:
			for range len(r.queue) { // what came first goes first
				if e, open := <-r.queue; open {
					deliver(e)
				}
			}
			for _, e := range r.flush() {
				deliver(e)
			}
		}
	}
}

// flush ends a window: it gives what was repeated in it, and forgets what was not.
func (r *recorder) flush() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events []Event
	for key, seen := range r.recent {
		if seen.count == 0 || r.closed {
			delete(r.recent, key)
		}
		if seen.count == 0 {
			continue
		}
		seen.last.Count = seen.count
		events = append(events, seen.last)
		seen.count = 0
	}
	if len(r.recent) > 0 {
		r.tick.Reset(window)
	}
	return events
}

// close delivers what is left and waits for it.
func (r *recorder) close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		r.tick.Stop()
		close(r.queue)
	}
	r.mu.Unlock()
	<-r.done
}
