// Package transcript shows the conversation of a session as one text to scroll through.
package transcript

import (
	"slices"
	"time"

	"charm.land/glamour/v2"
	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/style"
)

const (
	// maxItems bounds how many messages, calls and lines are kept, maxBytes what they hold.
	maxItems = 20_000
	maxBytes = 128 << 20
	// maxPrompts and maxPrompt bound what Prompts gives.
	maxPrompts = 200
	maxPrompt  = 32 << 10
)

// Transcript is the conversation. It is a pane, and belongs to one around it.
type Transcript struct {
	now     func() time.Time
	styles  *style.Styles
	session api.Session
	width   int
	height  int
	focused bool

	// items are numbered from base, so that a number stays valid when others come or go.
	items   []*item
	base    int
	dropped int // how many were too many
	bytes   int // of text in items, about

	story     // what the records told so far
	prompts   []string
	selected  int // number, none when there is no such item
	chosen    bool
	follow    bool
	top       place // when not following
	rows      []row // of the last View
	below     int   // lines below them, about
	belowMore bool

	allThinking, allOutput bool

	// drawing is the number of the layout: another width or theme is another one.
	drawing       int
	frame         uint64
	ticks         int
	renderers     map[int]*glamour.TermRenderer // by width, 0 for none
	painter       *painter
	coloured      int  // bytes of code, for this frame
	isRough       bool // the segment that is being drawn lacks colours
	cached        int  // drawn lines
	drawnSegments []*segment
	keys          keys
}

// New returns an empty conversation. now is the clock; its zone is the one times are
// shown in.
func New(now func() time.Time) *Transcript {
	if now == nil {
		now = time.Now
	}
	t := &Transcript{now: now, follow: true, drawing: 1, keys: newKeys()}
	t.reset()
	return t
}

// SetSize implements pane.Pane.
func (t *Transcript) SetSize(width, height int) {
	if width != t.width {
		t.drawing++
	}
	t.width, t.height = width, height
}

// SetStyles implements pane.Pane.
func (t *Transcript) SetStyles(s *style.Styles) {
	if s == t.styles {
		return
	}
	t.styles, t.renderers = s, map[int]*glamour.TermRenderer{}
	t.painter = newPainter(s)
	t.drawing++
}

// SetSession implements pane.Follower.
func (t *Transcript) SetSession(s api.Session) { t.session = s }

// SetFocused says that keys come here: what is selected is marked then.
func (t *Transcript) SetFocused(on bool) {
	t.focused = on
	if on && !t.chosen {
		t.selectVisible()
	}
}

// Tick implements pane.Ticker.
func (t *Transcript) Tick() { t.ticks++ }

// Count implements pane.Counter: the number of messages.
func (t *Transcript) Count() int { return t.messages }

// Working says that Pi is at work on an answer.
func (t *Transcript) Working() bool { return t.working }

// Prompts are the user's messages, the oldest first.
func (t *Transcript) Prompts() []string { return slices.Clone(t.prompts) }

// Queue are the messages that wait for Pi: those that change its course, and those for
// when it is done.
func (t *Transcript) Queue() (steering, followUp []string) {
	return slices.Clone(t.steering), slices.Clone(t.followUp)
}

// Clear forgets the conversation.
func (t *Transcript) Clear() {
	t.items, t.base, t.dropped, t.bytes = nil, 0, 0, 0
	t.prompts = nil
	t.chosen, t.follow = false, true
	t.rows = nil
	t.cached, t.drawnSegments = 0, nil
	t.reset()
}

// inner is the width beside the marks at the left.
func (t *Transcript) inner() int { return max(t.width-gutter, 1) }

// gutter is the room for the marks.
const gutter = 2

func (t *Transcript) at(n int) *item { return t.items[n-t.base] }

func (t *Transcript) has(n int) bool { return n >= t.base && n < t.base+len(t.items) }

// last is the newest item, nil without any.
func (t *Transcript) last() *item {
	if len(t.items) == 0 {
		return nil
	}
	return t.items[len(t.items)-1]
}

// push appends an item.
func (t *Transcript) push(i *item) *item {
	t.items = append(t.items, i)
	if i.counts {
		t.messages++
	}
	if len(t.items) > maxItems || t.bytes > maxBytes {
		t.trim(max(len(t.items)/20, 1))
	}
	return i
}

// trim drops the oldest items and leaves a note in their place.
func (t *Transcript) trim(n int) {
	n = min(n, len(t.items)-1)
	for _, i := range t.items[:n] {
		if i != t.older {
			t.dropped++
		}
		if i.call != nil {
			delete(t.calls, i.call.id)
		}
		t.bytes -= i.weight()
	}
	t.items = slices.Clone(t.items[n:])
	t.base += n
	if t.older == nil {
		t.older = &item{kind: kindNote, sign: "↑"}
	}
	t.older.title = plural(t.dropped, "older entry was", "older entries were") + " dropped here: `patio sessions show` has them"
	t.older.changed()
	t.items = slices.Insert(t.items, 0, t.older)
	t.base--
}

// weight is what an item holds, about.
func (i *item) weight() int {
	n := 300 + len(i.title)
	if i.body != nil {
		n += i.body.kept
	}
	if c := i.call; c != nil {
		n += len(c.args) + len(c.main)
		if c.out != nil {
			n += c.out.kept
		}
		if c.diff != nil {
			n += 60 * len(c.diff.lines)
		}
	}
	return n
}

// clock is a time of day.
func (t *Transcript) clock(at time.Time) string { return at.In(t.now().Location()).Format("15:04:05") }

// spinner turns while something goes on.
var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (t *Transcript) spin() string { return string(spinner[t.ticks%len(spinner)]) }

// Styles that items pick when they are drawn.
var (
	asBad     lipglossStyle = func(t *Transcript) lipgloss.Style { return t.styles.Bad }
	asWarning lipglossStyle = func(t *Transcript) lipgloss.Style { return t.styles.Warning }
)
