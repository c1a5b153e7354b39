package api

import (
	"context"
	"net/http"

	"patio/sandbox/network/policy"
)

// RuleRemove is the action of a RuleChange that takes a rule out; ActionAllow and
// ActionDeny add one.
const RuleRemove = "remove"

// RuleChange changes the egress rules of a live session.
type RuleChange struct {
	Action string `json:"action"` // allow, deny or remove
	Rule   string `json:"rule"`   // HOST[:PORT], as `--allow` takes it
	// Source says who set it, for those who list rules: user, tui, ask.
	Source string `json:"source,omitempty"`
}

// OnDeny is what a session does about refused connections.
type OnDeny string

// The ways: log tells of many refusals once; ask holds a connection that no rule allows and
// raises a question; pause stops the sandbox after many refusals until somebody answers.
const (
	OnDenyLog   OnDeny = "log"
	OnDenyAsk   OnDeny = "ask"
	OnDenyPause OnDeny = "pause"
)

// OnDenyModes are the values of `--on-deny`.
var OnDenyModes = []string{string(OnDenyLog), string(OnDenyAsk), string(OnDenyPause)}

// PolicyState is what a live session may reach.
type PolicyState struct {
	Rules  []policy.Rule `json:"rules"`
	OnDeny OnDeny        `json:"on_deny,omitempty"`
	// Services are the names that patio itself serves inside, such as the key broker's.
	Services []string `json:"services,omitempty"`
}

// PolicyController is the egress policy of a live session.
type PolicyController interface {
	Policy() PolicyState
	// ChangePolicy changes it at once, for this session alone. Connections that only a
	// withdrawn rule allowed are closed.
	ChangePolicy(ctx context.Context, client string, c RuleChange) (PolicyState, error)
}

// Policy returns the egress policy.
func (c *Client) Policy(ctx context.Context) (PolicyState, error) {
	var s PolicyState
	return s, c.call(ctx, http.MethodGet, "/v1/policy", nil, &s)
}

// ChangePolicy changes one rule.
func (c *Client) ChangePolicy(ctx context.Context, change RuleChange) (PolicyState, error) {
	var s PolicyState
	return s, c.call(ctx, http.MethodPost, "/v1/policy", change, &s)
}

func (s *server) policy(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, s.b.Policy())
}

func (s *server) changePolicy(w http.ResponseWriter, r *http.Request) error {
	var change RuleChange
	if err := readJSON(r, &change); err != nil {
		return err
	}
	state, err := s.b.ChangePolicy(r.Context(), r.Header.Get(clientHeader), change)
	if err != nil {
		return err
	}
	return writeJSON(w, state)
}
