package chat

import (
	"cmp"
	"fmt"
	"strings"

	"patio/engine/api"
	"patio/tui/safe"
)

// ResumeMsg asks the root to go on with a session that has ended.
type ResumeMsg struct{ Session string }

// endLines say how a session ended and what can be done.
func (c *Chat) endLines(width, room int) []string {
	s := c.styles
	var lines []string
	put := func(render func(...string) string, text string, most int) {
		for i, line := range safe.Wrap(safe.Text(clip(text, 4096)), max(width-2, 1)) {
			if i == most {
				break
			}
			lines = append(lines, " "+render(line))
		}
	}
	switch c.s.Phase {
	case api.PhaseFailed:
		text := "it never became ready"
		if c.s.Error != nil {
			text = c.s.Error.Message
		}
		put(s.Bad.Render, "✗ The session failed: "+text, 3)
	case api.PhaseCrashed:
		text := "its supervisor is gone"
		if c.s.Error != nil {
			text = c.s.Error.Message
		}
		put(s.Bad.Render, "! The session crashed: "+text, 3)
	default:
		put(s.Strong.Render, "– The session has ended"+colon(c.reason()), 2)
	}
	if e := c.s.End; e != nil {
		code := fmt.Sprintf("exit code %d", e.ExitCode)
		if e.Signal != "" {
			code += ", " + e.Signal
		}
		if c.s.Phase != api.PhaseEnded {
			code = strings.TrimPrefix(colon(e.Reason), ": ") + ", " + code
		}
		put(s.Muted.Render, strings.TrimPrefix(code, ", "), 1)
	}
	command := s.Text.Render("patio resume " + safe.Fit(c.s.ID, 40))
	resume := " " + s.Muted.Render("resume it with ") + command
	if !c.o.ReadOnly {
		resume = " " + s.Key.Render("R") + s.Text.Render(" resumes it here")
		if !c.ed.empty() {
			resume += s.Muted.Render(" · ") + s.Key.Render("u") + s.Text.Render(" copies your unsent text")
		}
		resume += s.Muted.Render(" · or ") + command
	}
	// What to do stays when the rest doesn't fit.
	rest := room - len(lines) - 1
	if c.s.Error != nil && c.s.Error.Hint != "" && rest > 0 {
		put(s.Muted.Render, "→ "+c.s.Error.Hint, min(rest, 2))
		rest = room - len(lines) - 1
	}
	if e := c.s.End; e != nil && e.ExitCode != 0 && rest > 0 {
		stderr := strings.Split(strings.TrimSpace(safe.Text(last(e.Stderr, 4096))), "\n")
		for _, line := range stderr[max(len(stderr)-min(rest, 4), 0):] {
			if line != "" {
				lines = append(lines, s.Muted.Render(safe.Cut(" │ "+line, width)))
			}
		}
	}
	lines = append(lines[:max(min(len(lines), room-1), 0)], resume)
	for i := range lines {
		lines[i] = safe.Pad(lines[i], width)
	}
	return lines[:min(len(lines), max(room, 0))]
}

func (c *Chat) reason() string {
	if c.s.End == nil {
		return ""
	}
	return c.s.End.Reason
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func last(s string, n int) string { return s[max(len(s)-n, 0):] }

// waitText says what a session that isn't ready does.
func (c *Chat) waitText() string {
	text := map[api.Phase]string{
		api.PhaseNew:       "starting… the session waits for its turn",
		api.PhasePreparing: "starting… preparing the sandbox",
		api.PhaseStarting:  "starting… Pi starts in the sandbox",
		api.PhaseStopping:  "stopping… what Pi wrote stays",
	}[c.s.Phase]
	return cmp.Or(text, "starting…")
}
