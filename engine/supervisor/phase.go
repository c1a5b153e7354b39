package supervisor

import (
	"fmt"
	"slices"

	"patio/engine/api"
)

// next is the one table of legal changes of phase. A session ends in its own good time
// (ended), before it was ready (failed), or because its supervisor died (crashed, which
// only a reaper writes).
var next = map[api.Phase][]api.Phase{
	api.PhaseNew:       {api.PhasePreparing, api.PhaseFailed},
	api.PhasePreparing: {api.PhaseStarting, api.PhaseStopping, api.PhaseFailed},
	api.PhaseStarting:  {api.PhaseReady, api.PhaseStopping, api.PhaseFailed},
	api.PhaseReady:     {api.PhaseStopping},
	api.PhaseStopping:  {api.PhaseEnded, api.PhaseFailed},
}

func checkPhase(from, to api.Phase) error {
	if !slices.Contains(next[from], to) {
		return fmt.Errorf("a session can't go from %s to %s", from, to)
	}
	return nil
}
