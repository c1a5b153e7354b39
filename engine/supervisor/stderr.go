package supervisor

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

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
	torn  []byte // the start of a character whose rest is still to come
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
			l.end()
			return
		}
	}
}

// end records what the last character is missing its end of.
func (l *stderrLog) end() {
	if len(l.torn) > 0 {
		l.record(string(utf8.RuneError))
		l.torn = nil
	}
}

// add is for one goroutine at a time.
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
		b = append(l.torn, b...)
		whole := len(b) - torn(b)
		l.torn = bytes.Clone(b[whole:])
		if whole > 0 {
			l.record(strings.ToValidUTF8(string(b[:whole]), "\uFFFD"))
		}
	case before <= stderrLimit:
		l.record("[more than 1 MiB of stderr: the rest is not kept]")
	}
}

// torn counts the bytes at b's end that a character starts with and doesn't end.
func torn(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
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
