package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Update is a list as it is now, and how it is kept so.
type Update struct {
	List
	// Live says that the kernel reports changes. A slow rescan, every so often, is made all the same: a network file system
	// reports only what this machine changes.
	Live bool
	// Why says why the list isn't live, for a user to read.
	Why string
	// Every is the time between rescans that nothing reported asks for.
	Every time.Duration
}

const (
	// watchInterval is the shortest time from the beginning of one rescan to that of the next: what changes all the time
	// is shown four times a second.
	watchInterval = 250 * time.Millisecond
	// watchLoad keeps rescans below a quarter of one processor when they take long.
	watchLoad = 4
	// watchSlow is the time between rescans of a list that is live.
	watchSlow = time.Minute
	// pollInterval and pollLoad are for a list that isn't live.
	pollInterval = 5 * time.Second
	pollLoad     = 20
	pollLimit    = 5 * time.Minute
	// retryFirst and retryLast are how long it takes until watching is tried again.
	retryFirst = 30 * time.Second
	retryLast  = 10 * time.Minute
	// saveInterval is how often the index is replaced while the list is watched.
	saveInterval = 5 * time.Minute
)

// Watcher keeps a list up to date.
type Watcher struct {
	updates chan Update
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // set before done is closed
}

// Watch scans, and again whenever something under the roots changes, until Close is called or ctx ends. Roots may come and go.
// Rescans read only what changed, and say nothing to Progress. The index is read at the beginning, and replaced now and then and
// at the end. Without the kernel's reports, it rescans at an interval.
func Watch(ctx context.Context, o Options) *Watcher { return watch(ctx, o, newInotify) }

func watch(ctx context.Context, o Options, notify func() (notifier, error)) *Watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{updates: make(chan Update, 1), cancel: cancel, done: make(chan struct{})}
	l := watchLoop{
		updates: w.updates, notify: notify, outcome: make(chan outcome, 1), retry: retryFirst,
		rescanner: rescanner{options: o, known: map[string]*record{}},
	}
	go func() {
		defer close(w.done)
		defer close(w.updates)
		defer cancel()
		w.err = l.run(ctx)
	}()
	return w
}

// Updates delivers the first list, then each that differs, and is closed at the end. Whoever receives late receives the newest
// one alone. What a list holds must not be changed.
func (w *Watcher) Updates() <-chan Update { return w.updates }

// Close ends the watching and waits for the end. The error is of what the watching used; the index's are among the problems of
// a list, or here when there is no further list.
func (w *Watcher) Close() error {
	w.cancel()
	<-w.done
	return w.err
}

// watchLoop receives what is reported and decides when to rescan. It never waits for a rescan, so that the kernel's queue stays
// short; all that it asks the file system is what kind of file a name is.
type watchLoop struct {
	rescanner rescanner
	updates   chan Update
	notify    func() (notifier, error)
	outcome   chan outcome // of the rescan that runs

	n        notifier // nil when the list isn't live
	events   <-chan fsnotify.Event
	failures <-chan error
	failure  error // why it isn't, or soon won't be
	retry    time.Duration
	retryAt  time.Time
	liveAt   time.Time // since when it is live
	scanning bool
	dirty    bool      // something was reported
	allowed  time.Time // no rescan is made before
	due      time.Time // a rescan is made anyway
	suspects []string  // paths that came, went or were renamed: a watch of such a path may be of what was there before
	watched  map[string]bool
	last     Update
	sent     bool
	closing  error
}

func (l *watchLoop) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		at := l.due
		if l.dirty && l.allowed.Before(at) {
			at = l.allowed
		}
		if !l.scanning && !at.After(now) {
			l.begin(ctx, now)
		}
		var alarm <-chan time.Time
		if !l.scanning {
			timer.Reset(at.Sub(now))
			alarm = timer.C
		}
		select {
		case <-ctx.Done():
		case <-alarm:
		case e, ok := <-l.events:
			if !ok {
				l.events = nil
				l.fail(errStopped)
				continue
			}
			l.event(e)
		case err, ok := <-l.failures:
			if !ok {
				l.failures, err = nil, errStopped
			}
			l.fail(err)
		case o := <-l.outcome:
			l.end(o)
		}
	}
	return l.stop()
}

// begin starts a rescan in a goroutine, which ends with an outcome.
func (l *watchLoop) begin(ctx context.Context, now time.Time) {
	if l.n == nil && !now.Before(l.retryAt) {
		l.failure = nil
		if n, err := l.notify(); err != nil {
			l.failure = err
			l.postpone(now)
		} else {
			l.failure = nil
			l.n, l.events, l.failures = n, n.Events(), n.Errors()
		}
	}
	l.scanning, l.dirty = true, false
	suspects := l.suspects
	l.suspects = nil
	go func(n notifier) { l.outcome <- l.rescanner.rescan(ctx, n, suspects) }(l.n)
}

// maxSuspects bounds what is remembered of a burst; beyond it, all watches are made anew.
const maxSuspects = 10_000

func (l *watchLoop) event(e fsnotify.Event) {
	if !concerns(l.rescanner.options.Roots, e, l.watched, l.scanning) {
		return
	}
	l.dirty = true
	if !e.Has(fsnotify.Write) && !isSession(e.Name) {
		if l.suspects = append(l.suspects, e.Name); len(l.suspects) > maxSuspects {
			l.fail(fsnotify.ErrEventOverflow)
		}
	}
}

// fail ends the watching for now. The notifier stays until no rescan uses it.
func (l *watchLoop) fail(err error) {
	if l.failure == nil {
		l.failure = err
	}
	l.dirty, l.suspects = true, nil
	if !l.scanning {
		l.drop(time.Now())
	}
}

// drop gives all watches back: other programs need them too.
func (l *watchLoop) drop(now time.Time) {
	if l.n == nil {
		return
	}
	l.closing = errors.Join(l.closing, l.n.Close())
	l.n, l.events, l.failures = nil, nil, nil
	l.postpone(now)
}

// postpone sets when watching is tried again: ever later, unless it worked for long. An overflow is tried again with the next
// rescan, as long as it is the only one.
func (l *watchLoop) postpone(now time.Time) {
	worked := !l.liveAt.IsZero() && now.Sub(l.liveAt) > retryLast
	l.liveAt = time.Time{}
	if worked {
		l.retry = retryFirst
	}
	l.retryAt = now.Add(l.retry)
	if !lasting(l.failure) && l.retry == retryFirst {
		l.retryAt = now.Add(pollInterval)
	}
	l.retry = min(2*l.retry, retryLast)
}

// end takes the outcome of a rescan in.
func (l *watchLoop) end(o outcome) {
	l.scanning = false
	if o.err != nil {
		return // ctx ended
	}
	now := time.Now()
	cost := now.Sub(o.began)
	l.watched = o.watched
	l.dirty = l.dirty || o.again
	if l.failure == nil {
		l.failure = o.failure
	}
	if l.failure != nil {
		l.drop(now)
	}
	u := Update{List: o.list, Live: l.n != nil, Every: watchSlow}
	l.allowed = o.began.Add(max(watchInterval, watchLoad*cost))
	if u.Live {
		if l.liveAt.IsZero() {
			l.liveAt = now
		}
	} else {
		u.Why, u.Every = whyNot(l.failure), pollEvery(cost)
	}
	l.due = now.Add(u.Every)
	if l.sent && !o.changed {
		u.List = l.last.List
		if u.Live == l.last.Live && u.Why == l.last.Why && u.Every == l.last.Every {
			return
		}
	}
	l.last, l.sent = u, true
	select {
	case <-l.updates: // the one that nobody received in time
	default:
	}
	l.updates <- u
}

// pollEvery is how often a rescan is made that takes as long as the cost. It comes in few steps, because it is shown.
func pollEvery(cost time.Duration) time.Duration {
	every := pollInterval
	for every < pollLoad*cost && every < pollLimit {
		every *= 2
	}
	return min(every, pollLimit)
}

// stop waits for the rescan that runs. Meanwhile it receives what is reported, because the notifier may wait for that.
func (l *watchLoop) stop() error {
	for l.scanning {
		select {
		case <-l.outcome:
			l.scanning = false
		case _, ok := <-l.events:
			if !ok {
				l.events = nil
			}
		case _, ok := <-l.failures:
			if !ok {
				l.failures = nil
			}
		}
	}
	if l.n != nil {
		l.closing = errors.Join(l.closing, l.n.Close())
	}
	return errors.Join(l.closing, l.rescanner.finish())
}
