package home

import (
	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/style"
)

// state is what a session does, as a sign with a word.
func state(s *api.Session) (sign, word string) {
	switch s.Phase {
	case api.PhaseReady:
		switch s.Activity {
		case api.ActivityWorking:
			return "●", "working"
		case api.ActivityBlocked:
			return "?", "needs an answer"
		case api.ActivityIdle:
		}
		return "○", "idle"
	case api.PhaseEnded:
		return "–", "ended"
	case api.PhaseCrashed:
		return "!", "crashed"
	case api.PhaseFailed:
		return "✗", "failed"
	case api.PhaseStopping:
		return "◌", "stopping"
	case api.PhaseNew, api.PhasePreparing, api.PhaseStarting:
	}
	return "◌", "starting"
}

// rank orders states by how much they want of the user.
func rank(s *api.Session) int {
	switch sign, _ := state(s); sign {
	case "?":
		return 0
	case "!", "✗":
		return 1
	case "○":
		return 2
	case "●":
		return 3
	case "◌":
		return 4
	}
	return 5
}

func stateStyle(s *api.Session, st *style.Styles) *lipgloss.Style {
	switch sign, _ := state(s); sign {
	case "?":
		return &st.Warning
	case "!", "✗":
		return &st.Bad
	case "●":
		return &st.Good
	case "◌":
		return &st.Info
	case "–":
		return &st.Muted
	}
	return &st.Text
}
