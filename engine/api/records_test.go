package api

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/sandbox/network"
	"patio/sandbox/network/policy"
)

func TestEgressRecord(t *testing.T) {
	event := network.Event{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kind: network.KindEnd, ID: "c1", Verdict: policy.Allow,
		Host: "example.com", Port: 443, Rule: "example.com:443", Reason: policy.ReasonRule,
		Address: netip.MustParseAddrPort("192.0.2.1:443"), BytesIn: 10, BytesOut: 20, Duration: 1500 * time.Millisecond, Count: 3,
	}
	for name, r := range map[string]EgressRecord{
		"with tool calls": {Event: event, ToolCalls: []string{"call_1", `quote "`}},
		"without":         {Event: event},
		"denied":          {Event: network.Event{Time: event.Time, Kind: network.KindDNS, Verdict: policy.Deny, Host: "example.com"}, ToolCalls: []string{"call_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(r)
			require.NoError(t, err)
			require.Equal(t, len(r.ToolCalls) > 0, strings.Contains(string(b), "tool_calls"))
			var back EgressRecord
			require.NoError(t, json.Unmarshal(b, &back))
			require.Equal(t, r, back)
		})
	}
	require.Error(t, json.Unmarshal([]byte(`{"tool_calls":7}`), &EgressRecord{}))
	require.Error(t, json.Unmarshal([]byte(`{"time":"x"}`), &EgressRecord{}))
}

func TestPhases(t *testing.T) {
	final := map[Phase]bool{
		PhaseNew: false, PhasePreparing: false, PhaseStarting: false, PhaseReady: false, PhaseStopping: false,
		PhaseEnded: true, PhaseFailed: true, PhaseCrashed: true,
	}
	for p, want := range final {
		require.Equal(t, want, p.Final(), p)
	}
}

func TestModelString(t *testing.T) {
	require.Equal(t, "demo/tour", Model{Provider: "demo", ID: "tour"}.String())
	require.Equal(t, "tour", Model{ID: "tour"}.String())
}
