package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What can be named is what has a key, and the demo, which needs none; each can be planned.
func TestModels(t *testing.T) {
	m := newMachine(t)
	names, err := m.engine().Models()
	require.NoError(t, err)
	require.Contains(t, names, "demo/tour")
	require.Len(t, names, len(demoModels()), "nothing else has a key")
	m.env = append(m.env, "OPENAI_API_KEY=k")
	names, err = m.engine().Models()
	require.NoError(t, err)
	require.Equal(t, []string{"openai/gpt-5"}, names[len(demoModels()):])
	for _, name := range names {
		_, err := m.plan(t, Request{Workspace: m.workspace, Model: name})
		require.NoError(t, err, name)
	}
}
