package resources

import (
	"fmt"
	"strings"

	"patio/tui/safe"
)

// limits lists what bounds the session: what was asked for, what is in effect, and what
// keeps it. One that nothing keeps is said to be so.
func (p *Pane) limits(width int) []string {
	s := p.styles
	entries := p.session.Plan.Enforced
	if len(entries) == 0 {
		return []string{"", s.Muted.Render(safe.Cut("  Which limits are kept isn't known: the session has not said so.", width))}
	}
	kept := 0
	for _, e := range entries {
		if e.Enforced {
			kept++
		}
	}
	lines := []string{"", " " + s.Title.Render("Limits") + s.Muted.Render(fmt.Sprintf("  %d of %d are kept", kept, len(entries)))}
	const name, value = 12, 9
	rest := max(width-2-name-2*(value+1)-2-1, 10)
	header := "  " + safe.Pad("limit", name) + " " + safe.PadLeft("asked", value) + " " + safe.PadLeft("in effect", value) + "  kept by"
	lines = append(lines, s.Header.Render(safe.Cut(header, width)))
	for _, e := range entries {
		by, st, sign := e.By, s.Text, "✓ "
		effective := e.Effective
		if effective == "unknown" {
			effective = "–"
		}
		switch {
		case !e.Enforced && (e.Requested == "none" || e.Requested == ""):
			by, st, sign = "no limit was asked for", s.Muted, "– "
		case !e.Enforced:
			by, st, sign = "NOT KEPT", s.Bad, "✗ "
		}
		if e.Why != "" && sign != "– " {
			by += ": " + e.Why
		}
		left := "  " + safe.Pad(safe.Fit(e.Name, name), name) + " " + safe.PadLeft(safe.Fit(e.Requested, value), value) + " " + safe.PadLeft(safe.Fit(effective, value), value) + "  "
		for i, line := range safe.Wrap(safe.Fit(sign+by, 4*rest), rest-2) {
			if i > 0 {
				left, line = strings.Repeat(" ", safe.Width(left)), "  "+line
			}
			lines = append(lines, s.Text.Render(left)+st.Render(safe.Cut(line, rest)))
		}
	}
	return lines
}
