// Package processes shows what runs inside a session's sandbox.
package processes

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/filter"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

// every is how often a visible pane asks what runs: ps is started inside for it.
const every = time.Second

// askAgain is how long an answer is waited for until the question counts as lost.
const askAgain = 30 * time.Second

func itoa(n int) string { return strconv.Itoa(n) }

// Pane is the tab.
type Pane struct {
	host    pane.Host
	now     func() time.Time
	styles  *style.Styles
	session api.Session
	width   int
	height  int

	processes []api.Process
	rows      []row
	answered  time.Time // of the newest list; zero before the first
	err       error     // of the newest question
	asked     time.Time // zero when nothing is on its way
	due       bool

	table   *table.Table
	order   order
	folded  map[int]bool
	filter  filter.Filter
	details bool
	// termed are those that TERM was sent to: the next signal is KILL. The command tells a
	// process from another one that got its pid.
	termed map[int]string

	keys keys
}

type keys struct{ filter, sort, fold, unfold, toggle, open, close, kill, copy, clear, apply key.Binding }

func bind(help, label string, names ...string) key.Binding {
	return key.NewBinding(key.WithKeys(names...), key.WithHelp(label, help))
}

// New makes the tab.
func New(h pane.Host, now func() time.Time) *Pane {
	p := &Pane{host: h, now: now, folded: map[int]bool{}, termed: map[int]string{}, filter: filter.New(), due: true, keys: keys{
		filter: bind("filter", "/", "/"),
		sort:   bind("sort", "o", "o"),
		fold:   bind("fold", "h/←", "h", "left"),
		unfold: bind("unfold", "l/→", "l", "right"),
		toggle: bind("fold or unfold", "space", "space"),
		open:   bind("details", "enter", "enter"),
		close:  bind("close", "esc", "esc"),
		kill:   bind("kill", "K", "K"),
		copy:   bind("copy command", "y", "y"),
		clear:  bind("clear filter", "esc", "esc"),
		apply:  bind("keep filter", "enter", "enter"),
	}}
	p.table = table.New(source{p},
		table.Column{Title: "pid", Width: 6, Right: true},
		table.Column{Title: "uid", Width: 5, Right: true, Rank: 3},
		table.Column{Title: "cpu %", Width: 6, Right: true},
		table.Column{Title: "memory", Width: 8, Right: true},
		table.Column{Title: "for", Width: 7, Right: true, Rank: 1},
		table.Column{Title: "command", Width: 20, Flex: 1},
	)
	p.say()
	return p
}

// listedMsg is the answer of what runs.
type listedMsg struct {
	pane      *Pane
	processes []api.Process
	err       error
}

// signalledMsg tells how sending a signal went.
type signalledMsg struct {
	pane    *Pane
	pid     int
	command string
	signal  string
	err     error
}

// SetSize implements pane.Pane.
func (p *Pane) SetSize(width, height int) { p.width, p.height = width, height; p.layout() }

// SetStyles implements pane.Pane.
func (p *Pane) SetStyles(s *style.Styles) { p.styles = s; p.table.SetStyles(s) }

// SetSession implements pane.Follower.
func (p *Pane) SetSession(s api.Session) {
	p.session = s
	if s.Phase.Final() && len(p.processes) > 0 {
		p.take(nil)
	}
	p.say()
}

// Apply implements pane.Follower. The journal doesn't have processes.
func (p *Pane) Apply([]journal.Record) {}

// Count implements pane.Counter.
func (p *Pane) Count() int { return len(p.processes) }

// Typing implements pane.Typist.
func (p *Pane) Typing() bool { return p.filter.Typing() }

// Escapes implements pane.Escaper.
func (p *Pane) Escapes() bool { return p.details || p.filter.Shown() }

// runs reports whether there is something to ask.
func (p *Pane) runs() bool {
	return p.session.Phase == api.PhaseReady || p.session.Phase == api.PhaseStopping
}

// Tick implements pane.Ticker. What it finds due is asked for by the TickMsg that follows.
func (p *Pane) Tick() {
	if !p.runs() {
		return
	}
	now := p.now()
	if !p.asked.IsZero() {
		p.due = now.Sub(p.asked) >= askAgain
		return
	}
	p.due = p.due || now.Sub(p.answered) >= every
}

// poll asks what runs, when it is time and no question is on its way.
func (p *Pane) poll() tea.Cmd {
	if !p.due || !p.runs() {
		return nil
	}
	p.due, p.asked = false, p.now()
	return p.host.Processes(func(ps []api.Process, err error) tea.Msg { return listedMsg{p, ps, err} })
}

// Update implements pane.Pane.
func (p *Pane) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case pane.TickMsg:
		return p.poll()
	case listedMsg:
		if msg.pane == p {
			p.listed(msg)
		}
	case signalledMsg:
		if msg.pane == p {
			return p.signalled(msg)
		}
	case tea.KeyPressMsg:
		if p.filter.Typing() {
			p.typed(msg)
			return nil
		}
		return p.press(msg)
	case tea.PasteMsg:
		if p.filter.Update(msg) {
			p.arrange()
		}
	case tea.MouseClickMsg:
		p.table.Update(tea.MouseClickMsg{X: msg.X, Y: msg.Y - p.top(), Button: msg.Button})
	case tea.MouseWheelMsg:
		p.table.Update(msg)
	}
	return nil
}

func (p *Pane) listed(m listedMsg) {
	p.asked, p.answered, p.err = time.Time{}, p.now(), m.err
	if m.err == nil && !p.session.Phase.Final() {
		p.take(m.processes)
	}
	p.say()
}

// take shows a list. What is remembered of processes that are gone goes.
func (p *Pane) take(ps []api.Process) {
	p.processes = slices.Clone(ps)
	alive := make(map[int]string, len(ps))
	for i := range p.processes {
		c := &p.processes[i]
		if len(c.Command) > maxCommand {
			c.Command = strings.Clone(c.Command[:maxCommand]) + "…"
		}
		if math.IsNaN(c.CPUPercent) || math.IsInf(c.CPUPercent, 0) {
			c.CPUPercent = 0
		}
		alive[c.PID] = c.Command
	}
	for pid := range p.folded {
		if _, ok := alive[pid]; !ok {
			delete(p.folded, pid)
		}
	}
	for pid, command := range p.termed {
		if alive[pid] != command {
			delete(p.termed, pid)
		}
	}
	p.arrange()
}

// arrange makes the rows anew, and keeps the cursor on its process.
func (p *Pane) arrange() {
	pid := -1
	if r := p.selected(); r != nil {
		pid = r.PID
	}
	p.rows = arrange(p.processes, p.order, p.folded, p.filter.Terms())
	p.table.Changed()
	if i := slices.IndexFunc(p.rows, func(r row) bool { return r.PID == pid }); i >= 0 {
		p.table.SetCursor(i)
	}
	p.say()
}

func (p *Pane) selected() *row {
	if i := p.table.Cursor(); i >= 0 && i < len(p.rows) {
		return &p.rows[i]
	}
	return nil
}

// typed gives a key or a paste to the filter.
func (p *Pane) typed(msg tea.Msg) {
	if p.filter.Update(msg) {
		p.arrange()
	}
	p.layout()
}

func (p *Pane) press(msg tea.KeyPressMsg) tea.Cmd {
	k, r := p.keys, p.selected()
	switch {
	case key.Matches(msg, k.filter):
		if len(p.processes) > 0 {
			p.filter.Open()
			p.layout()
		}
	case key.Matches(msg, k.sort):
		p.order = (p.order + 1) % orders
		p.arrange()
	case key.Matches(msg, k.toggle) && r != nil:
		p.fold(r, !r.folded)
	case key.Matches(msg, k.fold) && r != nil:
		p.foldOrRise(r)
	case key.Matches(msg, k.unfold) && r != nil:
		p.fold(r, false)
	case key.Matches(msg, k.open) && r != nil:
		p.details = true
		p.layout()
	case key.Matches(msg, k.close):
		if p.details {
			p.details = false
		} else if p.filter.Text() != "" {
			p.filter.Clear()
			p.arrange()
		}
		p.layout()
	case key.Matches(msg, k.kill) && r != nil && p.runs():
		return p.kill(r.Process)
	case key.Matches(msg, k.copy) && r != nil:
		return pane.Copy(r.Command, "the command line")
	default:
		p.table.Update(msg)
	}
	return nil
}

func (p *Pane) fold(r *row, on bool) {
	if p.order != byTree || r.children == 0 {
		return
	}
	if on {
		p.folded[r.PID] = true
	} else {
		delete(p.folded, r.PID)
	}
	p.arrange()
}

// foldOrRise folds what is below, or moves to the parent when there is nothing to fold.
func (p *Pane) foldOrRise(r *row) {
	if p.order != byTree {
		return
	}
	if r.children > 0 && !r.folded {
		p.fold(r, true)
		return
	}
	if i := slices.IndexFunc(p.rows, func(o row) bool { return o.PID == r.PPID }); i >= 0 && r.PPID != r.PID {
		p.table.SetCursor(i)
	}
}

// kill asks before it sends TERM, or KILL to what had a TERM already.
func (p *Pane) kill(c api.Process) tea.Cmd {
	signal, verb := "TERM", "end it"
	lost := "The program is asked to end, and may save what it has. K again, if it stays, kills it."
	if p.termed[c.PID] == c.Command {
		signal, verb = "KILL", "kill it"
		lost = "It was asked to end and stayed. Now it is killed at once, and what it hasn't saved is lost."
	}
	if c.PID == 1 {
		lost = "This is the session's own first process: the session ends with it. Stopping the session (x) is the orderly way."
	}
	return pane.Confirm(pane.ConfirmMsg{
		Question: fmt.Sprintf("Send %s to process %d (%s)?", signal, c.PID, safe.Fit(c.Command, 80)),
		Lost:     lost, Yes: verb,
		Then: p.host.Kill(c.PID, signal, func(err error) tea.Msg { return signalledMsg{p, c.PID, c.Command, signal, err} }),
	})
}

func (p *Pane) signalled(m signalledMsg) tea.Cmd {
	if m.err != nil {
		return pane.Failed(m.err)
	}
	if m.signal == "TERM" {
		p.termed[m.pid] = m.command
	}
	p.due = p.asked.IsZero()
	return pane.Notice(pane.Good, fmt.Sprintf("sent %s to process %d", m.signal, m.pid))
}

// Keys implements pane.Pane.
func (p *Pane) Keys() []key.Binding {
	k := p.keys
	if p.filter.Typing() {
		return []key.Binding{k.apply, k.clear}
	}
	if len(p.processes) == 0 {
		return nil
	}
	var out []key.Binding
	r := p.selected()
	if p.details {
		out = append(out, k.close)
	} else if r != nil {
		out = append(out, k.open)
	}
	if r != nil && p.runs() {
		if p.termed[r.PID] == r.Command {
			k.kill.SetHelp("K", "kill at once")
		}
		out = append(out, k.kill)
	}
	k.sort.SetHelp("o", "sort "+((p.order+1)%orders).String())
	out = append(out, k.filter, k.sort)
	if r != nil {
		if p.order == byTree && r.children > 0 {
			out = append(out, k.toggle)
			if r.folded {
				out = append(out, k.unfold)
			} else {
				out = append(out, k.fold)
			}
		}
		out = append(out, k.copy)
	}
	if !p.details && p.filter.Text() != "" {
		out = append(out, k.clear)
	}
	return out
}
