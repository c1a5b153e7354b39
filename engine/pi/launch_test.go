package pi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckThinking(t *testing.T) {
	for _, level := range append([]string{""}, ThinkingLevels...) {
		require.NoError(t, CheckThinking(level), level)
	}
	for _, level := range []string{"High", "extreme", " low", "off\n"} {
		require.ErrorContains(t, CheckThinking(level), "off, minimal, low, medium, high, xhigh, max", level)
	}
}

func TestArgv(t *testing.T) {
	base := []string{"/usr/local/bin/node", "/opt/pi/node_modules/@earendil-works/pi-coding-agent/dist/cli.js", "--mode", "rpc"}
	require.Equal(t, base, Launch{}.Argv())
	// Pi knows the space form only.
	require.Equal(t, append(base, "--model", "demo/tour", "--thinking", "high"), Launch{Model: "demo/tour", Thinking: "high"}.Argv())
}

func TestEnv(t *testing.T) {
	t.Setenv("PATIO_CANARY", "canary")
	l := Launch{AgentDir: "/state/agent", SessionDir: "/state/pi-sessions", Home: "/home/sandbox"}
	env := map[string]string{}
	for _, v := range l.Env() {
		require.NotContains(t, env, v.Name, "each name once")
		require.NotEmpty(t, v.Reason, v.Name)
		require.False(t, strings.ContainsAny(v.Name, "= \n"), v.Name)
		env[v.Name] = v.Value
	}
	require.Equal(t, "/state/agent", env["PI_CODING_AGENT_DIR"])
	require.Equal(t, "/state/pi-sessions", env["PI_CODING_AGENT_SESSION_DIR"])
	require.Equal(t, "/home/sandbox", env["HOME"])
	require.Equal(t, "1", env["PI_OFFLINE"])
	require.Equal(t, "2", env["GIT_CONFIG_COUNT"])
	require.NotContains(t, env, "PATIO_CANARY")
}

func TestSettingsTrustNothing(t *testing.T) {
	var s map[string]any
	require.NoError(t, json.Unmarshal(Settings(), &s))
	require.Equal(t, map[string]any{"defaultProjectTrust": "never"}, s)
}
