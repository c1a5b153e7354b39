package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"patio/engine/api"
	"patio/sandbox/network/policy"
)

// modelRule is the source of the rule that follows the effective model.
const modelRule = "model"

// Policy implements api.PolicyController.
func (s *Supervisor) Policy() api.PolicyState {
	return api.PolicyState{
		Rules: s.policy.Snapshot(), OnDeny: s.spec.OnDeny, Services: slices.Sorted(maps.Keys(s.services)),
	}
}

// ChangePolicy implements api.PolicyController.
func (s *Supervisor) ChangePolicy(_ context.Context, client string, c api.RuleChange) (api.PolicyState, error) {
	if p := s.Session().Phase; p != api.PhaseReady && p != api.PhaseStarting {
		return api.PolicyState{}, api.Errorf(api.CodeConflict, "`patio policy allow RULE` is for sessions to come", "the session is %s: it has no network", p)
	}
	if err := s.changePolicy(client, c); err != nil {
		return api.PolicyState{}, err
	}
	return s.Policy(), nil
}

func (s *Supervisor) changePolicy(client string, c api.RuleChange) error {
	s.policyMu.Lock()
	defer s.policyMu.Unlock()
	before := s.policy.Snapshot()
	after, err := changeRules(before, c, time.Now().UTC())
	if err != nil {
		return err
	}
	if err := s.policy.Replace(after...); err != nil {
		return api.Errorf(api.CodeUsage, "", "%w", err)
	}
	s.tracker.update(func(t *api.Session) { t.Plan.Egress = s.policy.Snapshot() })
	now := s.Session()
	s.state(api.StateRecord{Phase: now.Phase, Activity: now.Activity, Policy: &api.PolicyChange{RuleChange: c, Client: client}})
	return nil
}

// changeRules makes the rules after a change. What was asked for holds afterwards, or it
// is an error that says what is in the way.
func changeRules(rules []policy.Rule, c api.RuleChange, now time.Time) ([]policy.Rule, error) {
	const form = "a rule is HOST, HOST:PORT or *.SUFFIX[:PORT]"
	if c.Source == "" {
		c.Source = "user"
	}
	switch c.Action {
	case string(policy.ActionAllow):
		rule, err := policy.ParseRule(c.Rule)
		if err != nil {
			return nil, api.Errorf(api.CodeUsage, form, "%w", err)
		}
		rule.Source, rule.Since = c.Source, now
		// Who allows what was denied in the same words takes that back. What only the model
		// needed so far stays allowed when the model changes.
		after := slices.DeleteFunc(slices.Clone(rules), func(r policy.Rule) bool {
			return r.Host == rule.Host && r.Port == rule.Port && (r.Action == policy.ActionDeny || r.Source == modelRule)
		})
		after = append(after, rule)
		p, err := policy.New(after...)
		if err != nil {
			return nil, api.Errorf(api.CodeUsage, form, "%w", err)
		}
		if d := p.Decide(requestOf(rule)); !d.Allowed() && d.Reason == policy.ReasonRuleDenied {
			return nil, api.Errorf(api.CodeConflict, "take that rule out first: `patio policy rm ID "+d.Rule+"`", "the deny rule %s covers %s, and a deny rule beats an allow rule", d.Rule, rule)
		}
		return after, nil
	case string(policy.ActionDeny):
		rule, err := policy.ParseDeny(c.Rule)
		if err != nil {
			return nil, api.Errorf(api.CodeUsage, form, "%w", err)
		}
		rule.Source, rule.Since = c.Source, now
		return append(slices.Clone(rules), rule), nil
	case api.RuleRemove:
		return removeRule(rules, c.Rule)
	}
	return nil, api.Errorf(api.CodeUsage, "", "unknown action %q: allow, deny or remove", c.Action)
}

// removeRule takes out the rules that say text, whichever action they have.
func removeRule(rules []policy.Rule, text string) ([]policy.Rule, error) {
	var same []string
	if r, err := policy.ParseRule(text); err == nil {
		same = append(same, string(policy.ActionAllow)+r.String())
	}
	if r, err := policy.ParseDeny(text); err == nil {
		same = append(same, string(policy.ActionDeny)+r.String())
	}
	model := false
	after := slices.DeleteFunc(slices.Clone(rules), func(r policy.Rule) bool {
		if !slices.Contains(same, string(r.Action)+r.String()) {
			return false
		}
		model = model || r.Source == modelRule
		return r.Source != modelRule
	})
	switch {
	case len(after) < len(rules):
		return after, nil
	case model:
		return nil, api.Errorf(api.CodeConflict, "`patio policy deny ID "+text+"` closes it all the same", "%s is the model's own endpoint: this rule follows the model", text)
	}
	return nil, api.Errorf(api.CodeNotFound, "`patio policy ls ID` lists the rules", "there is no rule %s", text)
}

// requestOf is a request that the rule is meant for.
func requestOf(r policy.Rule) policy.Request {
	if a, ok := r.Literal(); ok {
		return policy.Request{Protocol: policy.TCP, Address: a, Port: r.Port}
	}
	host := r.Host
	if len(host) > 2 && host[:2] == "*." {
		host = "any" + host[1:]
	}
	return policy.Request{Protocol: policy.TCP, Host: host, Port: r.Port}
}

// allowModel lets the model's endpoint out, and closes the one before: one model, one
// endpoint.
func (s *Supervisor) allowModel(rules ...policy.Rule) error {
	s.policyMu.Lock()
	defer s.policyMu.Unlock()
	var before, after []policy.Rule
	for _, r := range s.policy.Snapshot() {
		if r.Source == modelRule {
			before = append(before, r)
			continue
		}
		after = append(after, r)
	}
	for _, r := range rules {
		r.Source, r.Since = modelRule, time.Now().UTC()
		if i := slices.IndexFunc(before, func(b policy.Rule) bool { return b.String() == r.String() }); i >= 0 {
			r.Since = before[i].Since
		}
		after = append(after, r)
	}
	if err := s.policy.Replace(after...); err != nil {
		return fmt.Errorf("allow the model's endpoint: %w", err)
	}
	s.tracker.update(func(t *api.Session) { t.Plan.Egress = s.policy.Snapshot() })
	return nil
}
