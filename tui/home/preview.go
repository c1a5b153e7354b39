package home

import (
	"fmt"
	"path"
	"strings"
	"time"

	"patio/engine/api"
	"patio/tui/chart"
	"patio/tui/figure"
	"patio/tui/pane"
	"patio/tui/safe"
)

// previewBox tells of the selected session what its row has no room for.
func (h *Home) previewBox(width, height int) string {
	s, ok := h.Selected()
	if !ok {
		return h.styles.Box("Preview", "", width, height)
	}
	w := width - 4
	above := append(h.standing(&s, w), h.troubles(&s, w)...)
	below := append(h.figures(&s, w), h.inside(&s, w)...)
	room := height - 2
	// The conversation takes what is left, and some of it in any case.
	const least = 5
	if len(above) > room {
		above = above[:room]
	}
	if most := room - len(above) - least; len(below) > most {
		below = below[:max(most, 0)]
	}
	lines := append(above, h.conversation(&s, w, room-len(above)-len(below))...)
	for len(lines)+len(below) < room {
		lines = append(lines, "")
	}
	lines = append(lines, below...)
	for i := range lines {
		lines[i] = " " + lines[i]
	}
	return h.styles.Box(safe.Fit(title(&s), w-2), strings.Join(lines, "\n"), width, height)
}

// standing is what it is and does.
func (h *Home) standing(s *api.Session, w int) []string {
	st := h.styles
	sign, word := pane.State(s)
	head := stateStyle(s, st).Render(sign + " " + word)
	if span := h.span(s); span != "" {
		head += st.Muted.Render(" · " + span)
	}
	lines := []string{safe.Cut(head, w), st.Text.Render(shorten(s.Workspace, h.home, w))}
	about := []string{s.ID}
	if m := s.Model.String(); m != "" {
		about = append(about, safe.Fit(m, w))
	}
	if s.Model.Thinking != "" {
		about = append(about, "thinking "+safe.Fit(s.Model.Thinking, 12))
	}
	return append(lines, st.Muted.Render(safe.Fit(strings.Join(about, " · "), w)))
}

// span is since when, or how long.
func (h *Home) span(s *api.Session) string {
	switch {
	case s.Ended != nil:
		text := "ended " + age(h.now().Sub(*s.Ended)) + " ago"
		if d := s.Ended.Sub(s.Created); d > 0 {
			text += " after " + chart.Ago(d.Round(time.Second))
		}
		return text
	case s.Phase.Final():
		return ""
	case s.Ready != nil:
		return "up " + chart.Ago(h.now().Sub(*s.Ready).Round(time.Second))
	}
	return "for " + chart.Ago(h.now().Sub(s.Created).Round(time.Second))
}

// troubles are what the user should know first: questions, and how it went wrong.
func (h *Home) troubles(s *api.Session, w int) []string {
	st := h.styles
	var lines []string
	wrapped := func(prefix, text string, most int, render func(...string) string) {
		all := safe.Wrap(safe.Text(clip(text)), max(w-2, 1))
		if len(all) > most {
			all = append(all[:most-1], "…")
		}
		for i, line := range all {
			if i > 0 {
				prefix = "  "
			}
			lines = append(lines, render(prefix+line))
		}
	}
	if !s.Phase.Final() {
		for i, q := range s.Questions {
			if i == 2 {
				lines = append(lines, st.Muted.Render(fmt.Sprintf("  and %d more", len(s.Questions)-i)))
				break
			}
			text := q.Title
			if text == "" {
				text = q.Message
			}
			wrapped("? ", text, 3, st.Warning.Render)
			if len(q.Options) > 0 {
				lines = append(lines, st.Muted.Render("  "+safe.Fit(options(q.Options), w-2)))
			}
		}
		if len(s.Questions) > 0 {
			lines = append(lines, "  "+st.Key.Render("enter")+st.Muted.Render(" opens it, to answer"))
		}
	}
	if s.End != nil && s.End.Reason != "" {
		render := st.Text.Render
		if s.Phase != api.PhaseEnded {
			render = st.Bad.Render
		}
		wrapped("– ", s.End.Reason, 3, render)
	}
	if s.Error != nil {
		wrapped("✗ ", s.Error.Message, 4, st.Bad.Render)
		if s.Error.Hint != "" {
			wrapped("→ ", s.Error.Hint, 3, st.Text.Render)
		}
	}
	if len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

// options are the first answers of a question.
func options(all []string) string {
	var b strings.Builder
	for i, o := range all[:min(len(all), 10)] {
		if i > 0 {
			b.WriteString(" · ")
		}
		b.WriteString(safe.Fit(o, 40))
	}
	return b.String()
}

func (h *Home) heading(text string, w int) string {
	line := h.styles.Header.Render(text) + " "
	return line + h.styles.Border.Render(strings.Repeat("─", max(w-len(text)-1, 0)))
}

// conversation is the newest of what was said.
func (h *Home) conversation(s *api.Session, w, height int) []string {
	if height < 3 {
		return nil
	}
	st := h.styles
	lines := []string{"", h.heading("Last said", w)}
	room := height - len(lines)
	if h.preview != s.ID && s.SessionFile != "" {
		return append(lines, st.Muted.Render("reading…"))
	}
	if h.preview != s.ID || len(h.lines) == 0 {
		text := "nothing yet: enter opens it, to say something"
		if s.Phase.Final() {
			text = "nothing was said"
		}
		return append(lines, st.Muted.Render(safe.Cut(text, w)))
	}
	// From the last one up, as far as there is room.
	var rows []string
	for i := len(h.lines) - 1; i >= 0 && len(rows) < room; i-- {
		wrapped := safe.Wrap(safe.Line(clip(h.lines[i])), w)
		for j, row := range wrapped {
			speaker, said, ok := strings.Cut(row, ": ")
			if j > 0 || !ok || strings.ContainsRune(speaker, ' ') {
				wrapped[j] = st.Text.Render(row)
				continue
			}
			wrapped[j] = st.Header.Render(speaker+":") + " " + st.Text.Render(said)
		}
		rows = append(wrapped[:len(wrapped):len(wrapped)], rows...)
	}
	return append(lines, rows[max(0, len(rows)-room):]...)
}

// figures are what it used.
func (h *Home) figures(s *api.Session, w int) []string {
	st := h.styles
	label := func(name string) string { return st.Muted.Render(safe.Pad(name, 9)) }
	text := fmt.Sprintf("%s in, %s out in %d turns, %s", count(s.Tokens.Input+s.Tokens.CacheRead+s.Tokens.CacheWrite), count(s.Tokens.Output), s.Turns, cost(s.CostUSD))
	if s.CostUSD <= 0 {
		text = strings.TrimSuffix(text, ", -")
	}
	if s.Turns == 1 {
		text = strings.Replace(text, "1 turns", "1 turn", 1)
	}
	lines := []string{"", h.heading("Use", w), label("tokens") + st.Text.Render(safe.Cut(text, w-9))}
	if window := s.Model.ContextWindow; window > 0 && s.Tokens.Context > 0 {
		share := float64(s.Tokens.Context) / float64(window)
		lines = append(lines, label("context")+h.gauge(share, w-9, fmt.Sprintf("%.0f%% of %s", 100*share, count(window))))
	}
	past := h.history[s.ID]
	if u := s.Usage; u != nil && past != nil && !s.Phase.Final() {
		bar := func(values []float64, limit float64, used float64, text string) string {
			width := max(w-9-safe.Width(text)-1, 0)
			return h.heat(used, limit).Render(chart.Spark(newest(values, width), width, limit)) + " " + st.Text.Render(text)
		}
		lines = append(lines,
			label("CPU")+bar(past.cpu, cpuLimit(s), u.CPUPercent, fmt.Sprintf("%s of %.0f%%", percent(u.CPUPercent), cpuLimit(s))),
			label("memory")+bar(past.memory, float64(memoryLimit(s)), float64(u.Memory), share(u.Memory, memoryLimit(s))))
		tasks := fmt.Sprintf("%d", u.Pids)
		if u.PidsLimit > 0 {
			tasks += fmt.Sprintf(" of %d", u.PidsLimit)
		}
		lines = append(lines, label("tasks")+st.Text.Render(safe.Cut(fmt.Sprintf("%s · network %s in, %s out", tasks, figure.Size(int64(u.NetworkIn)), figure.Size(int64(u.NetworkOut))), w-9)))
	}
	return lines
}

func share(used, limit int64) string {
	if limit <= 0 {
		return figure.Size(used)
	}
	return figure.Size(used) + " of " + figure.Size(limit)
}

// gauge is a bar with its text behind it.
func (h *Home) gauge(share float64, w int, text string) string {
	st := h.styles
	width := max(min(w-safe.Width(text)-1, 24), 0)
	full := int(min(max(share, 0), 1) * float64(width))
	return h.heat(share, 1).Render(strings.Repeat("█", full)) + st.Border.Render(strings.Repeat("░", width-full)) + " " + st.Text.Render(text)
}

// inside is what it can see and reach.
func (h *Home) inside(s *api.Session, w int) []string {
	st := h.styles
	label := func(name string) string { return st.Muted.Render(safe.Pad(name, 9)) }
	lines := []string{"", h.heading("Sandbox", w)}
	var writable, readable []string
	for _, m := range s.Plan.Mounts {
		if m.Mode == api.ReadWrite {
			writable = append(writable, mountName(m.Destination, s.Workspace, h.home))
		} else {
			readable = append(readable, mountName(m.Destination, s.Workspace, h.home))
		}
	}
	list := func(name string, items []string, none string) {
		text := none
		if len(items) > 0 {
			text = strings.Join(items[:min(len(items), 12)], ", ")
		}
		if len(items) > 12 {
			text += fmt.Sprintf(" and %d more", len(items)-12)
		}
		rows := safe.Wrap(safe.Line(clip(text)), max(w-9, 1))
		if len(rows) > 2 {
			rows = []string{rows[0], safe.Cut(rows[1]+"……", max(w-9, 1))}
		}
		for i, row := range rows {
			if i > 0 {
				name = ""
			}
			lines = append(lines, label(name)+st.Text.Render(row))
		}
	}
	list("writes", writable, "nothing")
	list("reads", readable, "nothing else")
	var allowed []string
	for _, r := range s.Plan.Egress {
		if r.Action == api.ActionAllow {
			r.Host = clip(r.Host)
			allowed = append(allowed, r.String())
		}
	}
	list("reaches", allowed, "no host")
	if s.Denied > 0 {
		lines = append(lines, label("denied")+st.Warning.Render(fmt.Sprintf("⊘ %d connections", s.Denied)))
	}
	return lines
}

// mountName is a mount in as few letters as tell it apart.
func mountName(destination, workspace, home string) string {
	if len(destination) > 4<<10 {
		return clip(destination)
	}
	if destination == workspace {
		return "the workspace"
	}
	if rest, ok := strings.CutPrefix(destination, workspace+"/"); ok && workspace != "" {
		return "./" + rest
	}
	return path.Clean(shorten(destination, home, 40))
}
