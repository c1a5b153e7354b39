package supervisor

import (
	"io"
	"strings"
	"sync"

	"patio/engine/api"
	"patio/engine/journal"
)

const (
	// stderrLimit bounds what a session's stderr may put into its journal.
	stderrLimit = 1 << 20
	// stderrTail is kept for the message of a start that failed.
	stderrTail = 8 << 10
)

// stderrLog keeps Pi's stderr: bounded in the journal, and its end in memory.
type stderrLog struct {
	journal *journal.Journal

	mu    sync.Mutex
	last  []byte
	total int64
}

// read follows stderr to its end.
func (l *stderrLog) read(r io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			l.add(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

func (l *stderrLog) add(b []byte) {
	l.mu.Lock()
	before := l.total
	l.total += int64(len(b))
	l.last = append(l.last, b...)
	if over := len(l.last) - stderrTail; over > 0 {
		l.last = append(l.last[:0], l.last[over:]...)
	}
	l.mu.Unlock()
	switch {
	case before+int64(len(b)) <= stderrLimit:
		l.record(strings.ToValidUTF8(string(b), "\uFFFD"))
	case before <= stderrLimit:
		l.record("[more than 1 MiB of stderr: the rest is not kept]")
	}
}

func (l *stderrLog) record(text string) {
	// The session goes on without: a journal that can't be written ends it elsewhere.
	_, _ = l.journal.Append(api.RecordStderr, api.StderrRecord{Text: text})
}

// tail is the last of what Pi wrote.
func (l *stderrLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(l.last), "\uFFFD"))
}
