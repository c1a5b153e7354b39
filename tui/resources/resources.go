// Package resources shows what a session uses of the machine, against its limits.
package resources

import (
	"math"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/safe"
	"patio/tui/style"
)

// span is a stretch of time that the charts show.
type span struct {
	name string
	of   time.Duration // 0 for all
}

var spans = []span{{"1 m", time.Minute}, {"10 m", 10 * time.Minute}, {"1 h", time.Hour}, {"all", 0}}

// Pane is the tab.
type Pane struct {
	now     func() time.Time
	styles  *style.Styles
	session api.Session
	width   int
	height  int

	meters meters
	span   int
	whole  bool // the axes reach to the limits, however far those are
	top    int

	keys keys
	// drawn are the lines of the newest drawing, and of what they are.
	drawn   []string
	drawnOf drawing
}

// drawing is all that the lines depend on.
type drawing struct {
	width, height, span int
	whole               bool
	version             int
	end                 time.Time
	styles              *style.Styles
}

type keys struct{ span, longer, shorter, whole, up, down, pageUp, pageDown, first, last key.Binding }

func bind(help, label string, names ...string) key.Binding {
	return key.NewBinding(key.WithKeys(names...), key.WithHelp(label, help))
}

// New makes the tab.
func New(now func() time.Time) *Pane {
	return &Pane{now: now, keys: keys{
		span:    bind("next range", "r", "r"),
		longer:  bind("longer", "+", "+", "="),
		shorter: bind("shorter", "-", "-", "_"),
		whole:   bind("scale to the limits", "z", "z"),
		up:      bind("up", "k/↑", "up", "k"), down: bind("down", "j/↓", "down", "j"),
		pageUp: bind("page up", "pgup", "pgup", "ctrl+b", "ctrl+u"), pageDown: bind("page down", "pgdn", "pgdown", "ctrl+f"),
		first: bind("top", "g", "g", "home"), last: bind("bottom", "G", "G", "end"),
	}}
}

// version changes with every figure.
func (p *Pane) version() int { return p.drawnOf.version }

func (p *Pane) changed() { p.drawnOf.version++; p.drawn = nil }

// SetSize implements pane.Pane.
func (p *Pane) SetSize(width, height int) { p.width, p.height = width, height; p.scroll(0) }

// SetStyles implements pane.Pane.
func (p *Pane) SetStyles(s *style.Styles) { p.styles = s }

// SetSession implements pane.Follower.
func (p *Pane) SetSession(s api.Session) {
	p.session = s
	if s.Usage != nil {
		p.meters.add(*s.Usage)
	}
	p.changed()
}

// Apply implements pane.Follower.
func (p *Pane) Apply(records []journal.Record) {
	for _, r := range records {
		if r.Type == api.RecordStats && p.meters.read(r.Data) {
			p.changed()
		}
	}
}

// Keys implements pane.Pane.
func (p *Pane) Keys() []key.Binding {
	if p.meters.last == nil {
		return nil
	}
	k := p.keys
	if p.whole {
		k.whole.SetHelp("z", "scale to the figures")
	}
	out := []key.Binding{k.span, k.whole}
	if p.span < len(spans)-1 {
		out = append(out, k.longer)
	}
	if p.span > 0 {
		out = append(out, k.shorter)
	}
	if p.bottom() > 0 {
		out = append(out, k.down, k.up, k.pageDown, k.pageUp, k.first, k.last)
	}
	return out
}

// Update implements pane.Pane.
func (p *Pane) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		p.press(msg)
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			p.scroll(-3)
		case tea.MouseWheelDown:
			p.scroll(3)
		default:
		}
	}
	return nil
}

func (p *Pane) press(msg tea.KeyPressMsg) {
	k, page := p.keys, max(p.height-2, 1)
	switch {
	case key.Matches(msg, k.span):
		p.span = (p.span + 1) % len(spans)
	case key.Matches(msg, k.longer):
		p.span = min(p.span+1, len(spans)-1)
	case key.Matches(msg, k.shorter):
		p.span = max(p.span-1, 0)
	case key.Matches(msg, k.whole):
		p.whole = !p.whole
	case key.Matches(msg, k.down):
		p.scroll(1)
	case key.Matches(msg, k.up):
		p.scroll(-1)
	case key.Matches(msg, k.pageDown):
		p.scroll(page)
	case key.Matches(msg, k.pageUp):
		p.scroll(-page)
	case key.Matches(msg, k.first):
		p.scroll(math.MinInt32)
	case key.Matches(msg, k.last):
		p.scroll(math.MaxInt32)
	}
}

// bottom is how far down the view can be.
func (p *Pane) bottom() int {
	if p.styles == nil || p.meters.last == nil {
		return 0
	}
	return max(len(p.lines())-max(p.height-1, 1), 0)
}

func (p *Pane) scroll(by int) { p.top = min(max(p.top+by, 0), p.bottom()) }

// lines are all lines below the head, drawn anew only when something is another.
func (p *Pane) lines() []string {
	of := drawing{p.width, p.height, p.span, p.whole, p.version(), p.meters.end(p.now(), p.session.Phase.Final()), p.styles}
	if p.drawn == nil || of != p.drawnOf {
		p.drawn, p.drawnOf = p.draw(), of
	}
	return p.drawn
}

// View implements pane.Pane.
func (p *Pane) View() string {
	if p.width <= 0 || p.height <= 0 {
		return ""
	}
	lines := []string{p.head()}
	if p.meters.last == nil {
		return safe.Block(strings.Join(append(lines, p.empty()...), "\n"), p.width, p.height)
	}
	body := p.lines()
	from := min(p.top, max(len(body)-max(p.height-1, 1), 0))
	lines = append(lines, body[from:min(from+p.height-1, len(body))]...)
	return safe.Block(strings.Join(lines, "\n"), p.width, p.height)
}

// empty says why there are no figures.
func (p *Pane) empty() []string {
	s := p.styles
	if p.session.Phase.Final() {
		return []string{"", s.Muted.Render("  This session ended before its use was measured."), "", s.Muted.Render("  Its limits are in the Mounts tab.")}
	}
	return []string{"", s.Text.Render("  No figures yet."), "",
		s.Muted.Render("  Once the sandbox runs, CPU, memory, tasks and network are"), s.Muted.Render("  measured each second and drawn here against their limits.")}
}
