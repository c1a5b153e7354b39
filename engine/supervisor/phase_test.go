package supervisor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
)

func TestPhaseTable(t *testing.T) {
	all := []api.Phase{
		api.PhaseNew, api.PhasePreparing, api.PhaseStarting, api.PhaseReady, api.PhaseStopping,
		api.PhaseEnded, api.PhaseFailed, api.PhaseCrashed,
	}
	legal := map[[2]api.Phase]bool{
		{api.PhaseNew, api.PhasePreparing}: true, {api.PhaseNew, api.PhaseFailed}: true,
		{api.PhasePreparing, api.PhaseStarting}: true, {api.PhasePreparing, api.PhaseStopping}: true, {api.PhasePreparing, api.PhaseFailed}: true,
		{api.PhaseStarting, api.PhaseReady}: true, {api.PhaseStarting, api.PhaseStopping}: true, {api.PhaseStarting, api.PhaseFailed}: true,
		{api.PhaseReady, api.PhaseStopping}: true,
		{api.PhaseStopping, api.PhaseEnded}: true, {api.PhaseStopping, api.PhaseFailed}: true,
	}
	for _, from := range append(slices.Clone(all), "", "other") {
		for _, to := range append(slices.Clone(all), "", "other") {
			err := checkPhase(from, to)
			if legal[[2]api.Phase{from, to}] {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, string(from)+" to "+string(to))
		}
	}
	for _, p := range all {
		require.Equal(t, p.Final(), len(next[p]) == 0, "%s: only a final phase has no next one", p)
	}
}

func TestPhaseIsChecked(t *testing.T) {
	s, _ := newSession(t, echo)
	require.Error(t, s.phase(api.PhaseReady, nil))
	require.Error(t, s.phase(api.PhaseStarting, nil))
	require.Equal(t, api.PhaseReady, s.Session().Phase)
	require.Empty(t, states(t, s), "a refused change leaves no record")
	require.NoError(t, s.phase(api.PhaseStopping, &api.StateRecord{Reason: "enough"}))
	require.Equal(t, []api.StateRecord{{Phase: api.PhaseStopping, Activity: api.ActivityIdle, Reason: "enough"}}, states(t, s))
	saved, err := ReadSession(s.spec.Dir)
	require.NoError(t, err)
	require.Equal(t, api.PhaseStopping, saved.Phase)
}
