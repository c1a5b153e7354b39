package egress

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/dustin/go-humanize"

	"patio/tui/chart"
	"patio/tui/figure"
	"patio/tui/safe"
	"patio/tui/table"
)

// top is how many lines stand above the table.
func (p *Pane) top() int {
	if p.filter.Shown() {
		return 2
	}
	return 1
}

// layout gives the tables their room.
func (p *Pane) layout() {
	p.details.SetSize(p.width, max(p.height-p.top(), 0), p.top())
	w, h := p.details.List()
	p.list.SetSize(w, h)
	p.groups.SetSize(w, h)
	p.say()
}

// say sets what the tables tell when they are empty.
func (p *Pane) say() {
	var text string
	switch {
	case p.filter.Text() != "":
		text = "\nNothing here matches the filter.\nesc clears it."
	case p.deniedOnly:
		text = "\n✓ Nothing was denied.\nd shows all verdicts again."
	case p.session.Phase.Final():
		text = "\nThis session has ended, and tried to reach nothing."
	default:
		text = "\nNothing inside has tried to reach a host yet.\n\nEvery name that is looked up and every connection appears here when it is tried, allowed or denied, with the rule and the reason."
	}
	text = strings.Join(safe.Wrap(text, min(max(p.width-4, 8), 76)), "\n")
	p.list.SetEmpty(text)
	p.groups.SetEmpty(text)
}

// Cursor implements pane.Cursored.
func (p *Pane) Cursor() *tea.Cursor {
	return p.filter.Cursor(p.width, 1)
}

// mouse gives a click or the wheel to what is under it.
func (p *Pane) mouse(msg tea.Msg) {
	var m tea.Mouse
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		m = msg.Mouse()
	case tea.MouseWheelMsg:
		m = msg.Mouse()
	default:
		return
	}
	y := m.Y - p.top()
	if p.details.Over(m.X, y) {
		p.details.Wheel(m.Button)
		return
	}
	switch msg.(type) {
	case tea.MouseClickMsg:
		p.move(tea.MouseClickMsg{X: m.X, Y: y, Button: m.Button})
	case tea.MouseWheelMsg:
		p.move(tea.MouseWheelMsg{X: m.X, Y: y, Button: m.Button})
	}
}

// View implements pane.Pane.
func (p *Pane) View() string {
	lines := []string{p.summary()}
	if p.top() == 2 {
		lines = append(lines, p.filterLine())
	}
	room := max(p.height-len(lines), 0)
	if room > 0 {
		lines = append(lines, p.details.View(p.styles, p.table().View, p.title()))
	}
	return safe.Block(strings.Join(lines, "\n"), p.width, p.height)
}

// summary is the line of counts and of the chips.
func (p *Pane) summary() string {
	s, l := p.styles, p.ledger
	denied := s.Muted
	if l.denied > 0 {
		denied = s.Bad
	}
	parts := []string{
		s.Good.Render("✓ " + humanize.Comma(l.allowed) + " allowed"),
		denied.Render("✗ " + humanize.Comma(l.denied) + " denied"),
		s.Info.Render(fmt.Sprintf("● %d open", len(l.open))),
		s.Text.Render("↓ " + figure.Size(l.in) + " in  ↑ " + figure.Size(l.out) + " out"),
	}
	if l.lost > 0 {
		parts = append(parts, s.Warning.Render("⚠ "+humanize.Comma(l.lost)+" not recorded"))
	}
	if l.unreadable > 0 {
		parts = append(parts, s.Warning.Render(fmt.Sprintf("⚠ %d unreadable", l.unreadable)))
	}
	var chips []string
	chip := func(on bool, text string) {
		if on {
			chips = append(chips, s.ChipOn.Render("["+text+"]"))
		}
	}
	chip(p.deniedOnly, "denied only")
	chip(p.grouped, "by host")
	left, right := " "+strings.Join(parts, "  "), strings.Join(chips, " ")
	if right != "" {
		right += " "
	}
	if safe.Width(left)+safe.Width(right) > p.width {
		// The arrows say what the words do.
		parts[3] = s.Text.Render("↓ " + figure.Size(l.in) + " ↑ " + figure.Size(l.out))
		left = " " + strings.Join(parts, "  ")
	}
	return safe.Pad(left, max(p.width-safe.Width(right), 0)) + right
}

// filterLine shows the filter, with the end of a long one while it is typed.
func (p *Pane) filterLine() string {
	count := fmt.Sprintf(" %s of %s rows ", humanize.Comma(int64(len(p.shown))), humanize.Comma(int64(len(p.ledger.rows))))
	if p.grouped {
		count = fmt.Sprintf(" %d of %d hosts ", len(p.hosts), len(p.ledger.hosts))
	}
	return p.filter.View(p.styles, p.width, count)
}

// decisionRows are the rows of the list.
type decisionRows struct{ p *Pane }

// Len implements table.Source.
func (r decisionRows) Len() int { return len(r.p.shown) + r.p.head() }

// Row implements table.Source.
func (r decisionRows) Row(i int) []table.Cell {
	p := r.p
	s := p.styles
	i -= p.head()
	if i < 0 {
		return []table.Cell{{Text: "…", Style: &s.Muted}, {Text: "dropped", Style: &s.Muted},
			{Text: humanize.Comma(int64(p.ledger.dropped)) + " older ones", Style: &s.Muted}, {}, {}, {}, {}, {Text: "the journal has them: patio logs", Style: &s.Muted}}
	}
	d := p.ledger.at(p.shown[i])
	at := d.time.In(p.now().Location()).Format("15:04:05")
	if d.kind == kindDropped {
		return []table.Cell{{Text: at, Style: &s.Muted}, {Text: "⚠ lost ×" + strconv.FormatInt(d.count, 10), Style: &s.Warning}, {Text: "decisions that were not recorded", Style: &s.Warning},
			{}, {}, {}, {}, {Text: "there were too many at once", Style: &s.Warning}}
	}
	verdict, reason := p.verdict(d), &s.Muted
	if !d.allowed {
		reason = &s.Text
	}
	text := d.text()
	if d.endReason != "" {
		text, reason = "ended: "+strings.ReplaceAll(d.endReason, "_", " "), &s.Warning
	}
	cells := []table.Cell{{Text: at, Style: &s.Muted}, verdict, {Text: d.target()}, {Text: d.protocol, Style: &s.Muted}, p.lasted(d), {}, {},
		{Text: text, Style: reason}, {Text: d.rule, Style: &s.Muted}, {Text: strings.Join(d.calls, " "), Style: &s.Tool}}
	if d.ended {
		cells[5], cells[6] = table.Cell{Text: figure.Size(d.in)}, table.Cell{Text: figure.Size(d.out)}
	}
	return cells
}

// verdict is the cell that says what was decided, and how often.
func (p *Pane) verdict(d *decision) table.Cell {
	times := ""
	// The count of an allowed connection is that of its requests.
	if d.count > 1 && (!d.allowed || d.kind == kindDNS) {
		times = " ×" + short(d.count)
	}
	if d.allowed {
		return table.Cell{Text: "✓ allowed" + times, Style: &p.styles.Good}
	}
	return table.Cell{Text: "✗ denied" + times, Style: &p.styles.Bad}
}

// lasted is the cell that says how long a connection was open.
func (p *Pane) lasted(d *decision) table.Cell {
	switch {
	case d.open:
		return table.Cell{Text: "● open", Style: &p.styles.Info}
	case d.ended:
		return table.Cell{Text: lasting(d.duration)}
	case d.lostWithEnd:
		return table.Cell{Text: "unknown", Style: &p.styles.Muted}
	}
	return table.Cell{}
}

// lasting is a duration in at most seven columns.
func lasting(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return chart.Ago(d)
}

// hostRows are the rows of the list by host.
type hostRows struct{ p *Pane }

// Len implements table.Source.
func (r hostRows) Len() int { return len(r.p.hosts) }

// Row implements table.Source.
func (r hostRows) Row(i int) []table.Cell {
	p, h := r.p, r.p.hosts[i]
	s := p.styles
	denied, open := table.Cell{Text: "–", Style: &s.Muted}, table.Cell{Text: "–", Style: &s.Muted}
	if h.denied > 0 {
		denied = table.Cell{Text: "✗ " + short(h.denied), Style: &s.Bad}
	}
	if h.open > 0 {
		open = table.Cell{Text: "● " + strconv.Itoa(h.open), Style: &s.Info}
	}
	var ports []string
	for _, port := range h.portList() {
		ports = append(ports, strconv.Itoa(int(port)))
	}
	if h.morePorts {
		ports = append(ports, "…")
	}
	return []table.Cell{{Text: h.name}, {Text: short(h.hits())}, denied, open, {Text: figure.Size(h.in)}, {Text: figure.Size(h.out)},
		{Text: h.last.In(p.now().Location()).Format("15:04:05"), Style: &s.Muted}, {Text: strings.Join(ports, " "), Style: &s.Muted}, {Text: h.why, Style: &s.Muted}}
}

// short is a count in few columns.
func short(n int64) string {
	if n < 10_000 {
		return strconv.FormatInt(n, 10)
	}
	return strings.ReplaceAll(humanize.SIWithDigits(float64(n), 0, ""), " ", "")
}
