package chat

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/safe"
)

var spinner = []string{"▖", "▘", "▝", "▗"}

// meterCells is how many cells the context's meter has.
const meterCells = 5

// duration is a time span as people say it.
func duration(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// meter draws how full the context is: in words too, for colour says how grave it is.
func (c *Chat) meter() string {
	window, used := c.s.Model.ContextWindow, c.s.Tokens.Context
	if window <= 0 || used < 0 {
		return ""
	}
	percent := min(int(float64(used)*100/float64(window)+0.5), 999)
	full := min((percent*meterCells+99)/100, meterCells)
	st := c.styles.Accent
	switch {
	case percent >= 90:
		st = c.styles.Bad
	case percent >= 70:
		st = c.styles.Warning
	}
	return st.Render(strings.Repeat("■", full)) + c.styles.Muted.Render(strings.Repeat("□", meterCells-full)) + c.styles.Text.Render(fmt.Sprintf(" %d %%", percent))
}

// activity says what goes on, with a sign.
func (c *Chat) activity() string {
	s := c.styles
	spin := spinner[c.frame%len(spinner)]
	switch c.s.Phase {
	case api.PhaseReady:
	case api.PhaseEnded:
		return s.Muted.Render("– ended")
	case api.PhaseCrashed:
		return s.Bad.Render("! crashed")
	case api.PhaseFailed:
		return s.Bad.Render("✗ failed")
	case api.PhaseStopping:
		return s.Warning.Render(spin + " stopping")
	default:
		return s.Info.Render(spin + " starting")
	}
	elapsed := ""
	if !c.since.IsZero() {
		if d := c.o.Now().Sub(c.since); d >= time.Second {
			elapsed = " " + duration(d)
		}
	}
	switch {
	case c.aborting:
		return s.Warning.Render(spin + " aborting" + elapsed)
	case c.s.Activity == api.ActivityBlocked:
		return s.Warning.Render("? needs an answer" + elapsed)
	case c.working():
		return s.Accent.Render(spin + " working" + elapsed)
	}
	return s.Good.Render("○ idle")
}

// status is the line between the conversation and the editor. What doesn't fit is left out
// from the right.
func (c *Chat) status(width int) string {
	s := c.styles
	parts := []string{c.activity()}
	add := func(st lipgloss.Style, text string) {
		if text != "" {
			parts = append(parts, st.Render(text))
		}
	}
	model := c.s.Model.String()
	if t := c.s.Model.Thinking; t != "" && model != "" {
		model += " · " + t
	}
	add(s.Text, safe.Fit(model, max(width/2, 16)))
	if m := c.meter(); m != "" {
		parts = append(parts, m)
	}
	switch {
	case c.s.CostUSD >= 0.01:
		add(s.Text, fmt.Sprintf("$%.2f", c.s.CostUSD))
	case c.s.CostUSD > 0:
		add(s.Text, fmt.Sprintf("$%.4f", c.s.CostUSD))
	}
	switch n := c.s.Turns; {
	case n == 1:
		add(s.Muted, "1 turn")
	case n > 1:
		add(s.Muted, thousand(n)+" turns")
	}
	steering, followUp := c.t.Queue()
	if n := len(steering) + len(followUp); n > 0 {
		add(s.Info, fmt.Sprintf("%d queued", n))
	}
	for _, text := range c.extension.words() {
		add(s.Muted, safe.Fit(text, 40))
	}
	end := ""
	if !c.t.AtEnd() {
		end = s.Warning.Render(" ↓ more below") + s.Border.Render(" ─")
	}
	rule := s.Border.Render(" ─ ")
	line := s.Border.Render("─ ") + parts[0]
	for _, p := range parts[1:] {
		if safe.Width(line)+safe.Width(p)+4 > width-safe.Width(end) {
			break
		}
		line += rule + p
	}
	line += " "
	if gap := width - safe.Width(line) - safe.Width(end); gap > 0 {
		line += s.Border.Render(strings.Repeat("─", gap))
	}
	return safe.Pad(line+end, width)
}

// notes are the lines above the status: what an extension shows, the queue, what just
// happened.
func (c *Chat) notes(width, room int) []string {
	s := c.styles
	var lines []string
	for _, text := range c.extension.lines() {
		lines = append(lines, s.Muted.Render(safe.Fit("  "+text, width)))
	}
	steering, followUp := c.t.Queue()
	queued := func(word string, texts []string) {
		for _, text := range texts {
			lines = append(lines, s.Info.Render(safe.Cut(" ↪ "+word+": ", width))+s.Muted.Render(safe.Fit(firstLine(text), max(width-safe.Width(word)-5, 0))))
		}
	}
	queued("steering", steering)
	queued("next", followUp)
	if c.note != "" {
		lines = append(lines, s.Info.Render(safe.Fit(" i "+c.note, width)))
	}
	if len(lines) > room && room > 0 {
		hidden := len(lines) - room + 1
		lines = append([]string{s.Muted.Render(safe.Cut(fmt.Sprintf("  %d more lines", hidden), width))}, lines[hidden:]...)
	}
	return lines[:min(len(lines), max(room, 0))]
}
