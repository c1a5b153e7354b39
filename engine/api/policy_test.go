package api

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/sandbox/network/policy"
)

func TestPolicy(t *testing.T) {
	rule, err := policy.ParseRule("example.com")
	require.NoError(t, err)
	f := &fakeBackend{
		policy: func() PolicyState { return PolicyState{Rules: []policy.Rule{rule}, OnDeny: OnDenyAsk} },
		change: func(client string, c RuleChange) (PolicyState, error) {
			if c.Rule == "bad" {
				return PolicyState{}, Errorf(CodeConflict, "do this", "a deny rule covers it")
			}
			require.Equal(t, "test", client)
			require.Equal(t, RuleChange{Action: "deny", Rule: "example.com:80", Source: "tui"}, c)
			return PolicyState{OnDeny: OnDenyLog}, nil
		},
	}
	c := serve(t, f)
	ctx := context.Background()
	state, err := c.Policy(ctx)
	require.NoError(t, err)
	require.Equal(t, PolicyState{Rules: []policy.Rule{rule}, OnDeny: OnDenyAsk}, state)
	state, err = c.ChangePolicy(ctx, RuleChange{Action: "deny", Rule: "example.com:80", Source: "tui"})
	require.NoError(t, err)
	require.Equal(t, OnDenyLog, state.OnDeny)
	_, err = c.ChangePolicy(ctx, RuleChange{Rule: "bad"})
	require.Equal(t, &Error{Code: CodeConflict, Message: "a deny rule covers it", Hint: "do this"}, AsError(err))
}
