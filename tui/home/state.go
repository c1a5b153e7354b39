package home

import (
	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/style"
)

// rank orders states by how much they want of the user.
func rank(s *api.Session) int {
	switch sign, _ := pane.State(s); sign {
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
	switch sign, _ := pane.State(s); sign {
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
