package tui

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/changes"
	"patio/tui/chat"
	"patio/tui/contract"
	"patio/tui/egress"
	"patio/tui/mounts"
	"patio/tui/pane"
	"patio/tui/processes"
	"patio/tui/resources"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/timeline"
	"patio/tui/traffic"
	"patio/tui/transcript"
)

// tab is one view of a session.
type tab struct {
	name string
	pane pane.Pane
}

// sessionView is one opened session: its tabs, and the feed that fills them.
type sessionView struct {
	session api.Session
	tabs    []tab
	current int
	feed    *feed
	seq     uint64 // of the last record that the tabs have
	ended   bool   // the feed is at the journal's end
	err     error  // why the journal can't be read
	used    time.Time
}

func newSessionView(ctx context.Context, b *Backend, s api.Session, o chat.Options) *sessionView {
	h := &host{ctx: ctx, session: s.ID, backend: b}
	o.Workspace = s.Workspace
	v := &sessionView{session: s, tabs: []tab{
		{"Chat", chat.New(h, transcript.New(o.Now), o)},
		{"Traffic", traffic.New(h, o.Now)},
		{"Timeline", timeline.New(o.Now)},
		{"Egress", egress.New(h, o.Now)},
		{"Mounts", mounts.New()},
		{"Resources", resources.New(o.Now)},
		{"Processes", processes.New(h, o.Now)},
		{"Changes", changes.New()},
		{"Contract", contract.New()},
	}}
	v.setSession(s)
	return v
}

// start reads the journal from where the tabs are.
func (v *sessionView) start(ctx context.Context, b *Backend) tea.Cmd {
	v.ended, v.err = false, nil
	v.feed = startFeed(ctx, b.Journals, v.session.ID, v.seq)
	return v.feed.wait()
}

func (v *sessionView) setSession(s api.Session) {
	v.session = s
	for _, t := range v.tabs {
		if f, ok := t.pane.(pane.Follower); ok {
			f.SetSession(s)
		}
	}
}

// apply gives records to every tab.
func (v *sessionView) apply(records []journal.Record) {
	if len(records) == 0 {
		return
	}
	v.seq = records[len(records)-1].Seq
	for _, t := range v.tabs {
		if f, ok := t.pane.(pane.Follower); ok {
			f.Apply(records)
		}
	}
}

func (v *sessionView) setSize(width, height int) {
	for _, t := range v.tabs {
		t.pane.SetSize(width, height)
	}
}

func (v *sessionView) setStyles(s *style.Styles) {
	for _, t := range v.tabs {
		t.pane.SetStyles(s)
	}
}

func (v *sessionView) shown() pane.Pane { return v.tabs[v.current].pane }

// toTab changes to a tab by its name.
func (v *sessionView) toTab(name string) {
	for i, t := range v.tabs {
		if t.name == name {
			v.current = i
		}
	}
}

// deliver gives a message that isn't input to every tab: it says itself whose it is.
func (v *sessionView) deliver(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, t := range v.tabs {
		cmds = append(cmds, t.pane.Update(msg))
	}
	return tea.Batch(cmds...)
}

// tabLine draws the tabs, and tells where each begins and ends for the mouse. When there
// is no room for all, those around the current one are shown.
func (v *sessionView) tabLine(s *style.Styles, width int) (string, [][2]int) {
	labels := make([]string, len(v.tabs))
	for i, t := range v.tabs {
		labels[i] = t.name
		if c, ok := t.pane.(pane.Counter); ok {
			if n := c.Count(); n > 0 {
				labels[i] += " " + compact(n)
			}
		}
	}
	from, to := fitAround(labels, v.current, width-4)
	spans := make([][2]int, len(v.tabs))
	var b strings.Builder
	x := 1
	b.WriteByte(' ')
	if from > 0 {
		b.WriteString(s.Muted.Render("‹ "))
		x += 2
	}
	for i := from; i < to; i++ {
		st, label := s.Tab, labels[i]
		if i == v.current {
			st = s.TabActive
		}
		spans[i] = [2]int{x, x + safe.Width(label)}
		b.WriteString(st.Render(label) + "  ")
		x += safe.Width(label) + 2
	}
	if to < len(labels) {
		b.WriteString(s.Muted.Render("›"))
	}
	return safe.Pad(b.String(), width), spans
}

// fitAround is the longest run of labels around one of them that fits.
func fitAround(labels []string, current, width int) (from, to int) {
	from, to = current, current+1
	used := safe.Width(labels[current]) + 2
	for grown := true; grown; {
		grown = false
		if to < len(labels) && used+safe.Width(labels[to])+2 <= width {
			used += safe.Width(labels[to]) + 2
			to++
			grown = true
		}
		if from > 0 && used+safe.Width(labels[from-1])+2 <= width {
			used += safe.Width(labels[from-1]) + 2
			from--
			grown = true
		}
	}
	return from, to
}

// compact is a count in at most four columns.
func compact(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}

// title is what a session is called.
func title(s api.Session) string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}
