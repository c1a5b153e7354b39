package tui

import (
	"time"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
)

// noticeTime is how long a notice stays: long enough to read two lines.
const noticeTime = 8 * time.Second

// notice is the short text in place of the footer.
type notice struct {
	level pane.NoticeLevel
	text  string
	until time.Time
}

func (n *notice) show(now time.Time, level pane.NoticeLevel, text string) {
	*n = notice{level: level, text: safe.Fit(text, 1000), until: now.Add(noticeTime)}
}

// fail shows an error with what to do.
func (n *notice) fail(now time.Time, err error) {
	e := api.AsError(err)
	text := e.Message
	if e.Hint != "" {
		text += " · " + e.Hint
	}
	n.show(now, pane.Bad, text)
}

func (n *notice) visible(now time.Time) bool { return n.text != "" && now.Before(n.until) }

// view is the notice with a sign, so that its weight doesn't hang on its colour.
func (n *notice) view(s *style.Styles, width int) string {
	sign, st := "·", s.Info
	switch n.level {
	case pane.Good:
		sign, st = "✓", s.Good
	case pane.Warning:
		sign, st = "!", s.Warning
	case pane.Bad:
		sign, st = "✗", s.Bad
	case pane.Info:
	}
	return st.Bold(true).Render(safe.Pad(" "+sign+" "+n.text, width))
}
