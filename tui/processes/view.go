package processes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"

	"patio/engine/api"
	"patio/tui/chart"
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

// detailHeight is the room of the details, below the table.
func (p *Pane) detailHeight() int {
	if !p.details {
		return 0
	}
	return min(max(p.height/4, 6), 9, max(p.height-p.top(), 0))
}

// layout gives the table its room.
func (p *Pane) layout() {
	p.table.SetSize(p.width, max(p.height-p.top()-p.detailHeight(), 0))
	p.say()
}

// say sets what the table tells when it is empty.
func (p *Pane) say() {
	text := "\n◌ Asking what runs inside…"
	switch {
	case p.session.Phase.Final():
		text = "\nThis session has ended: nothing of it runs.\n\nWhat ran is in the Timeline."
	case !p.runs():
		text = "\nThe sandbox isn't up yet.\n\nWhat runs inside is listed here once the session is ready, anew each second."
	case p.err != nil && len(p.processes) == 0:
		text = "\n✗ What runs inside can't be listed:\n" + safe.Fit(p.err.Error(), 400) + "\n\nIt is tried again each second."
	case p.filter.Text() != "":
		text = "\nNo process matches the filter.\nesc clears it."
	case !p.answered.IsZero():
		text = "\nNothing runs inside."
	}
	p.table.SetEmpty(strings.Join(safe.Wrap(text, min(max(p.width-4, 8), 76)), "\n"))
}

// Cursor implements pane.Cursored.
func (p *Pane) Cursor() *tea.Cursor {
	return p.filter.Cursor(p.width, 1)
}

// View implements pane.Pane.
func (p *Pane) View() string {
	lines := []string{p.summary()}
	if p.top() == 2 {
		lines = append(lines, p.filterLine())
	}
	if p.height > len(lines) {
		if body := p.table.View(); body != "" {
			lines = append(lines, body)
		}
		if h := p.detailHeight(); h > 0 {
			lines = append(lines, p.box(h))
		}
	}
	return safe.Block(strings.Join(lines, "\n"), p.width, p.height)
}

// summary counts, and tells when the list is old.
func (p *Pane) summary() string {
	s := p.styles
	if len(p.processes) == 0 {
		return s.Title.Render(safe.Cut(" Processes", p.width))
	}
	var memory int64
	var cpu float64
	for _, c := range p.processes {
		memory += max(c.RSS, 0)
		cpu += c.CPUPercent
	}
	noun := " processes"
	if len(p.processes) == 1 {
		noun = " process"
	}
	left := " " + s.Strong.Render(humanize.Comma(int64(len(p.processes)))+noun) +
		s.Muted.Render("  cpu ") + s.Text.Render(cpuPercent(cpu)+" %") + s.Muted.Render("  memory ") + s.Text.Render(humanize.IBytes(uint64(memory)))
	right := s.ChipOn.Render("[" + p.order.String() + "]")
	switch {
	case p.err != nil:
		right = s.Bad.Render("✗ "+safe.Fit(p.err.Error(), max(p.width/3, 10))) + " " + right
	case p.old() > 5*every:
		right = s.Warning.Render("⚠ as of "+chart.Ago(p.old())+" ago") + " " + right
	}
	return safe.Pad(left, max(p.width-safe.Width(right)-1, 0)) + right + " "
}

// old is the age of the list.
func (p *Pane) old() time.Duration { return p.now().Sub(p.answered) }

func cpuPercent(v float64) string { return strconv.FormatFloat(min(max(v, 0), 1e6), 'f', 1, 64) }

func (p *Pane) filterLine() string {
	n := 0
	for i := range p.rows {
		if p.rows[i].match {
			n++
		}
	}
	count := fmt.Sprintf(" %d of %d ", n, len(p.processes))
	return p.filter.View(p.styles, p.width, count)
}

// source has the rows of the table.
type source struct{ p *Pane }

// Len implements table.Source.
func (t source) Len() int { return len(t.p.rows) }

// Row implements table.Source.
func (t source) Row(i int) []table.Cell {
	p, r := t.p, t.p.rows[i]
	s := p.styles
	cells := []table.Cell{
		{Text: itoa(r.PID)}, {Text: itoa(r.UID), Style: &s.Muted}, {Text: cpuPercent(r.CPUPercent), Style: p.heat(r.CPUPercent)},
		{Text: memory(r.Process)}, {Text: lasting(r.Process), Style: &s.Muted}, {Text: p.command(r)},
	}
	if !r.match {
		for i := range cells {
			cells[i].Style = &s.Muted
		}
	}
	return cells
}

func (p *Pane) heat(cpu float64) *lipgloss.Style {
	switch {
	case cpu >= 50:
		return &p.styles.Warning
	case cpu < 0.05:
		return &p.styles.Muted
	}
	return &p.styles.Text
}

// command is the command line with its place in the tree.
func (p *Pane) command(r row) string {
	text := r.Command
	if text == "" {
		text = "(no name)"
	}
	if p.termed[r.PID] == r.Command && r.Command != "" {
		text = "(asked to end) " + text
	}
	if p.order != byTree {
		return text
	}
	sign := ""
	switch {
	case r.folded:
		sign = "▸ +" + itoa(r.children) + " "
	case r.children > 0:
		sign = "▾ "
	case r.prefix == "":
		sign = ""
	}
	return r.prefix + sign + text
}

func memory(c api.Process) string { return humanize.IBytes(uint64(max(c.RSS, 0))) }

func lasting(c api.Process) string {
	return chart.Ago(time.Duration(min(max(c.Elapsed, 0), 1<<31)) * time.Second)
}

// box shows one process: the whole command line, and its place.
func (p *Pane) box(height int) string {
	s, r := p.styles, p.selected()
	width := p.width
	if r == nil {
		return safe.Block(s.Box("Process", "", width, height), width, height)
	}
	inner := max(width-4, 1)
	var lines []string
	parent := "pid " + itoa(r.PPID)
	for _, o := range p.processes {
		if o.PID == r.PPID {
			parent += " (" + safe.Fit(o.Command, 40) + ")"
		}
	}
	facts := fmt.Sprintf("pid %d · uid %d · parent %s", r.PID, r.UID, parent)
	figures := fmt.Sprintf("cpu %s %% over its life · memory %s · for %s", cpuPercent(r.CPUPercent), memory(r.Process), lasting(r.Process))
	if r.children > 0 {
		figures += fmt.Sprintf(" · %d below it", r.children)
	}
	for _, text := range []string{facts, figures} {
		lines = append(lines, s.Muted.Render(safe.Cut(text, inner)))
	}
	command := safe.Wrap(safe.Line(r.Command), inner)
	if room := max(height-2-len(lines), 1); len(command) > room {
		command = command[:room]
		command[room-1] = safe.Cut(command[room-1]+strings.Repeat(" ", inner), inner-1) + "…"
	}
	for _, line := range command {
		lines = append(lines, s.Text.Render(line))
	}
	for i := range lines {
		lines[i] = " " + safe.Cut(lines[i], inner)
	}
	return safe.Block(s.Box("Process "+itoa(r.PID), strings.Join(lines, "\n"), width, height), width, height)
}
