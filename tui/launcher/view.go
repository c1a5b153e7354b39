package launcher

import (
	"fmt"
	"strings"
	"time"

	"patio/engine/api"
	"patio/tui/safe"
)

const (
	labelWidth = 10
	// inputLeft is the column in which the text of a field begins.
	inputLeft = 2 + labelWidth
	// wide is from where on the plan stands beside the form.
	wide = 100
	// formTop is the line of the first field.
	formTop = 1
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (l *Launcher) spin() string { return spinner[l.ticks%len(spinner)] }

func (l *Launcher) beside() bool { return l.width >= wide }

func (l *Launcher) formWidth() int {
	if l.beside() {
		return max(l.width*42/100, 44)
	}
	return l.width
}

// formHeight is the lines of the form; candidates lie over what is below it.
func (l *Launcher) formHeight() int {
	if l.beside() {
		return l.height
	}
	// The plan has some lines in any case.
	return max(min(formTop+len(l.fields)+1, l.height-3), formTop+1)
}

// shownFields are the fields for which there is room, around the one with the focus.
func (l *Launcher) shownFields() (from, to int) {
	room := l.formHeight() - formTop
	if l.candidates.open() && !l.beside() {
		// They need lines below their field.
		room = min(room, max(l.height-formTop-l.candidateLines()-1, 1))
	}
	n := len(l.fields)
	room = max(min(room, n), 1)
	from = max(min(l.focus-room/2, n-room), 0)
	return from, from + room
}

// fieldLine is the line of a field.
func (l *Launcher) fieldLine(i int) (int, bool) {
	from, to := l.shownFields()
	y := formTop + i - from
	if l.candidates.open() && i > l.focus {
		y += l.candidateLines()
	}
	return y, i >= from && i < to && y < l.height
}

func (l *Launcher) candidateLines() int {
	return min(len(l.candidates.all), shownCandidates, max(l.height/3, 1))
}

// planHeight is how many lines of the plan are seen.
func (l *Launcher) planHeight() int {
	switch {
	case l.beside():
		return max(l.height-2, 0)
	case l.whole:
		return max(l.height-1, 0)
	}
	return max(l.height-l.formHeight()-1, 0)
}

func (l *Launcher) planWidth() int {
	if l.beside() {
		return max(l.width-l.formWidth()-4, 1)
	}
	return max(l.width-2, 1)
}

// View implements pane.Pane.
func (l *Launcher) View() string {
	if l.width <= 0 || l.height <= 0 || l.styles == nil {
		return ""
	}
	if l.beside() {
		form := strings.Split(safe.Block(l.form(), l.formWidth(), l.height), "\n")
		lines := l.planLines(l.planWidth(), l.planHeight())
		for i := range lines {
			lines[i] = " " + lines[i]
		}
		box := strings.Split(l.styles.Box(l.planTitle(), strings.Join(lines, "\n"), l.width-l.formWidth(), l.height), "\n")
		for i := range form {
			if i < len(box) {
				form[i] += box[i]
			}
		}
		return safe.Block(strings.Join(form, "\n"), l.width, l.height)
	}
	rule := func() string {
		name := " " + l.planTitle() + " "
		right := " ctrl+o whole plan "
		if l.whole {
			right = " ctrl+o the form "
		}
		fill := max(l.width-safe.Width(name)-safe.Width(right)-2, 0)
		return l.styles.Border.Render("─") + l.styles.Title.Render(name) + l.styles.Border.Render(strings.Repeat("─", fill)) + l.styles.Muted.Render(right) + l.styles.Border.Render("─")
	}
	plan := func() string {
		lines := l.planLines(l.planWidth(), l.planHeight())
		for i := range lines {
			lines[i] = " " + lines[i]
		}
		return strings.Join(lines, "\n")
	}
	if l.whole {
		return safe.Block(rule()+"\n"+plan(), l.width, l.height)
	}
	above := l.form()
	height := l.formHeight()
	if n := strings.Count(above, "\n") + 1; l.candidates.open() && n > height {
		height = min(n, l.height)
	}
	return safe.Block(safe.Block(above, l.width, height)+"\n"+rule()+"\n"+plan(), l.width, l.height)
}

func (l *Launcher) form() string {
	st := l.styles
	width := l.formWidth()
	head := " " + st.Title.Render("New session")
	if from, to := l.shownFields(); from > 0 || to < len(l.fields) {
		head += st.Muted.Render(fmt.Sprintf("  %d of %d", l.focus+1, len(l.fields)))
	}
	lines := []string{head}
	from, to := l.shownFields()
	for i := from; i < to; i++ {
		lines = append(lines, l.field(i, width))
		if i == l.focus && l.candidates.open() {
			lines = append(lines, l.offered(width)...)
		}
	}
	if l.beside() {
		lines = append(lines, "")
		lines = append(lines, l.status(width)...)
	}
	return strings.Join(lines, "\n")
}

func (l *Launcher) field(i, width int) string {
	st, f := l.styles, l.fields[i]
	focused := i == l.focus && !l.starting
	// A sign beside the colour, for those who have none.
	mark, label := "  ", st.Muted.Render(safe.Pad(f.label, labelWidth))
	if focused {
		mark, label = st.Accent.Render("▶ "), st.Strong.Render(safe.Pad(f.label, labelWidth))
	}
	text := f.input.View()
	if f.value() == "" {
		hint := f.hint
		if i == fieldModel && l.modelsErr != nil {
			hint = "models can't be listed: " + safe.Fit(api.AsError(l.modelsErr).Message, 80)
		}
		if planned := l.defaulted(i); planned != "" {
			hint = planned
		}
		// In brackets, for those who can't tell it from text by its colour.
		text = st.Muted.Italic(true).Render("(" + safe.Fit(hint, max(width-inputLeft-3, 0)) + ")")
	}
	return safe.Pad(mark+label+safe.Cut(text, max(width-inputLeft-1, 0)), width)
}

// defaulted is what an empty field comes to.
func (l *Launcher) defaulted(i int) string {
	if l.plan == nil || l.planErr != nil {
		return ""
	}
	switch i {
	case fieldModel:
		return l.plan.Model.String()
	case fieldThinking:
		return l.plan.Model.Thinking
	case fieldWorkspace:
		return l.plan.Workspace
	}
	return ""
}

func (l *Launcher) offered(width int) []string {
	st, c := l.styles, &l.candidates
	n := l.candidateLines()
	top := max(min(c.top, len(c.all)-n), 0)
	top = max(top, c.cursor-n+1)
	var lines []string
	for i := top; i < min(top+n, len(c.all)); i++ {
		mark, style := "  ", st.Code
		if i == c.cursor {
			mark, style = "› ", st.Selected
		}
		text := safe.Pad(mark+safe.Fit(c.all[i], max(width-inputLeft-4, 1)), max(width-inputLeft-1, 1))
		if i == top+n-1 && i < len(c.all)-1 {
			more := fmt.Sprintf(" +%d ", len(c.all)-1-i)
			text = safe.Pad(text, max(width-inputLeft-1-len(more), 1)) + more
		}
		lines = append(lines, strings.Repeat(" ", inputLeft)+style.Render(safe.Cut(text, max(width-inputLeft-1, 1))))
	}
	return lines
}

// status says what enter does now, or how far a start is.
func (l *Launcher) status(width int) []string {
	st := l.styles
	switch {
	case l.starting:
		return l.phases()
	case l.startErr != nil:
		return l.failure("It didn't start", l.startErr, width-2)
	case l.planErr != nil && !l.planning:
		return []string{"  " + st.Bad.Render("✗ It can't start like this.")}
	case l.plan == nil || l.planning:
		return []string{"  " + st.Info.Render(l.spin()+" planning…")}
	}
	return []string{"  " + st.Good.Render("✓ It can start.") + "  " + st.Key.Render("enter") + st.Muted.Render(" starts it")}
}

// phases are the steps of a start.
func (l *Launcher) phases() []string {
	st := l.styles
	steps := []struct {
		phase api.Phase
		text  string
	}{
		{api.PhaseNew, "the plan is made"}, {api.PhasePreparing, "mounts, network and limits are prepared"},
		{api.PhaseStarting, "the sandbox starts, Pi in it"}, {api.PhaseReady, "Pi answers"},
	}
	at := 0
	for i, s := range steps {
		if s.phase == l.phase {
			at = i
		}
	}
	lines := []string{"  " + st.Info.Render(l.spin()+" starting") + st.Muted.Render("  "+fmt.Sprintf("%ds", int(l.options.Now().Sub(l.since)/time.Second)))}
	for i, s := range steps {
		switch {
		case i < at:
			lines = append(lines, "  "+st.Good.Render("✓ ")+st.Muted.Render(s.text))
		case i == at:
			lines = append(lines, "  "+st.Info.Render("◌ ")+st.Text.Render(s.text))
		default:
			lines = append(lines, "  "+st.Muted.Render("· "+s.text))
		}
	}
	return append(lines, "  "+st.Key.Render("esc")+st.Muted.Render(" leaves; it starts all the same"))
}

// failure is an error with what to do about it.
func (l *Launcher) failure(what string, err error, width int) []string {
	st, e := l.styles, api.AsError(err)
	lines := []string{"  " + st.Bad.Bold(true).Render("✗ "+what)}
	for _, row := range safe.Wrap(safe.Text(clip(e.Message, 2000)), max(width-2, 1)) {
		lines = append(lines, "  "+st.Text.Render(row))
	}
	if e.Hint != "" {
		for i, row := range safe.Wrap(safe.Text(clip(e.Hint, 2000)), max(width-4, 1)) {
			arrow := "→ "
			if i > 0 {
				arrow = "  "
			}
			lines = append(lines, "  "+st.Key.Render(arrow)+st.Text.Render(row))
		}
	}
	return lines
}
