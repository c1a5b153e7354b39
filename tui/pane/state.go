package pane

import "patio/engine/api"

// State is what a session does, as a sign with words: all views say it the same way, and
// never by a colour alone.
func State(s *api.Session) (sign, words string) {
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
