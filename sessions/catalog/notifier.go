package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// notifier reports changes in directories. Adding one that was added already does no harm. Both channels must be received from
// until Close is called.
type notifier interface {
	Add(dir string) error
	Remove(dir string) error // fs.ErrNotExist when it isn't watched
	Events() <-chan fsnotify.Event
	Errors() <-chan error
	Close() error
}

// inotify is the kernel's.
type inotify struct{ w *fsnotify.Watcher }

func newInotify() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return inotify{w}, nil
}

func (n inotify) Add(dir string) error          { return n.w.Add(dir) }
func (n inotify) Events() <-chan fsnotify.Event { return n.w.Events }
func (n inotify) Errors() <-chan error          { return n.w.Errors }

func (n inotify) Remove(dir string) error {
	err := n.w.Remove(dir)
	if errors.Is(err, fsnotify.ErrNonExistentWatch) {
		return fs.ErrNotExist
	}
	return err
}

// Close receives what is still reported: fsnotify reports some errors while it holds the lock that its Close waits for.
func (n inotify) Close() error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for range n.w.Events {
		}
	})
	wg.Go(func() {
		for range n.w.Errors {
		}
	})
	return n.w.Close()
}

// maxWatches bounds the directories that are watched: a user's watches are for all programs, and each takes a kilobyte of the
// kernel's memory.
const maxWatches = 20_000

var (
	errManyDirs = fmt.Errorf("there are more than %d directories", maxWatches)
	errStopped  = errors.New("the kernel's reports ended")
)

// whyNot says in a user's words why changes aren't reported.
func whyNot(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return "out of inotify watches; fs.inotify.max_user_watches says how many there are"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return "out of inotify instances or open files; fs.inotify.max_user_instances says how many instances there are"
	case errors.Is(err, fsnotify.ErrEventOverflow):
		return "more changed at once than the kernel keeps; fs.inotify.max_queued_events says how much that is"
	}
	return err.Error()
}

// lasting says that trying again at once would meet the same error.
func lasting(err error) bool { return !errors.Is(err, fsnotify.ErrEventOverflow) }
