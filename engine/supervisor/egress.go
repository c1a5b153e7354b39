package supervisor

import (
	"patio/engine/api"
	"patio/sandbox/network"
	"patio/sandbox/network/policy"
)

// recordEgress journals a decision of the gateway with the tool calls that ran then.
func (s *Supervisor) recordEgress(e network.Event) {
	if e.Verdict == policy.Deny {
		s.tracker.update(func(t *api.Session) { t.Denied += int(max(e.Count, 1)) })
	}
	if _, err := s.journal.Append(api.RecordEgress, api.EgressRecord{Event: e, ToolCalls: s.tracker.tools()}); err != nil {
		s.fail(err)
	}
	if e.Verdict == policy.Deny && e.Kind != network.KindEnd && s.refusals.add(e.Time, int(max(e.Count, 1))) {
		s.manyRefused()
	}
}
