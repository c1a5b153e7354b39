package supervisor

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/rules"
	"patio/sandbox/network"
	"patio/sandbox/network/policy"
)

func silent(gjson.Result) []string { return nil }

func change(t *testing.T, s *Supervisor, action, rule string) error {
	t.Helper()
	_, err := s.ChangePolicy(context.Background(), "test-1", api.RuleChange{Action: action, Rule: rule})
	return err
}

func decide(s *Supervisor, host string) policy.Decision {
	return s.policy.Decide(policy.Request{Protocol: policy.TLS, Host: host, Port: 443})
}

func TestChangePolicy(t *testing.T) {
	s, _ := newSession(t, silent)
	require.Equal(t, policy.ReasonEmptyPolicy, decide(s, "example.com").Reason)
	require.NoError(t, change(t, s, "allow", "example.com"))
	require.True(t, decide(s, "example.com").Allowed())
	rule := s.Policy().Rules[0]
	require.Equal(t, "user", rule.Source)
	require.WithinDuration(t, time.Now(), rule.Since, time.Minute)
	require.Equal(t, s.policy.Snapshot(), s.Session().Plan.Egress, "the snapshot shows the rules that hold now")

	require.NoError(t, change(t, s, "deny", "*.example.com"))
	err := change(t, s, "allow", "a.example.com")
	require.ErrorContains(t, err, "the deny rule *.example.com:* covers a.example.com:443")
	require.Equal(t, api.CodeConflict, api.AsError(err).Code)
	require.NoError(t, change(t, s, "remove", "*.example.com"))
	require.NoError(t, change(t, s, "allow", "a.example.com"))

	require.NoError(t, change(t, s, "deny", "example.com:443"))
	require.Equal(t, policy.ReasonRuleDenied, decide(s, "example.com").Reason)
	require.NoError(t, change(t, s, "allow", "example.com"), "the last word counts")
	require.True(t, decide(s, "example.com").Allowed())

	require.Equal(t, api.CodeNotFound, api.AsError(change(t, s, "remove", "other.example.com")).Code)
	require.Equal(t, api.CodeUsage, api.AsError(change(t, s, "allow", "http://example.com")).Code)
	require.Equal(t, api.CodeUsage, api.AsError(change(t, s, "perhaps", "example.com")).Code)
}

func TestModelRuleFollowsTheModelAlone(t *testing.T) {
	s, _ := newSession(t, silent)
	one, err := policy.ParseRule("one.example.com")
	require.NoError(t, err)
	two, err := policy.ParseRule("two.example.com")
	require.NoError(t, err)
	require.NoError(t, s.allowModel(one))
	require.Equal(t, api.CodeConflict, api.AsError(change(t, s, "remove", "one.example.com")).Code)
	require.NoError(t, change(t, s, "allow", "one.example.com"))
	require.NoError(t, s.allowModel(two))
	require.True(t, decide(s, "one.example.com").Allowed(), "the user allowed it too")
	require.NoError(t, change(t, s, "remove", "one.example.com"))
	require.False(t, decide(s, "one.example.com").Allowed())
	since := s.policy.Snapshot()[0].Since
	require.NoError(t, s.allowModel(two))
	require.Equal(t, since, s.policy.Snapshot()[0].Since)
}

// waitQuestion waits until the session has an open question.
func waitQuestion(t *testing.T, s *Supervisor) api.Question {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.Session().Questions) == 1 }, 5*time.Second, time.Millisecond)
	require.Equal(t, api.ActivityBlocked, s.Session().Activity)
	return s.Session().Questions[0]
}

func answer(t *testing.T, s *Supervisor, answer map[string]any) error {
	t.Helper()
	answer["type"] = "extension_ui_response"
	b, err := json.Marshal(answer)
	require.NoError(t, err)
	_, err = s.Command(context.Background(), "test", b)
	return err
}

func TestAppeal(t *testing.T) {
	request := policy.Request{Protocol: policy.TLS, Host: "example.com", Port: 443}
	for _, c := range []struct {
		name, answer string
		want         policy.Reason
		after        policy.Reason
		kept         int
	}{
		{"for the session", askAllow, policy.ReasonRule, policy.ReasonRule, 0},
		{"for good", askForGood, policy.ReasonRule, policy.ReasonRule, 1},
		{"refused once", askOnce, policy.ReasonAskDenied, policy.ReasonEmptyPolicy, 0},
		{"refused", askRefuse, policy.ReasonAskDenied, policy.ReasonRuleDenied, 0},
		{"dismissed", "", policy.ReasonAskDenied, policy.ReasonEmptyPolicy, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newSession(t, silent)
			s.spec.RulesFile = filepath.Join(t.TempDir(), rules.FileName)
			decided := make(chan policy.Decision, 1)
			go func() { decided <- s.appeal(context.Background(), request, s.policy.Decide(request)) }()
			q := waitQuestion(t, s)
			require.Equal(t, "Allow example.com:443?", q.Title)
			require.Equal(t, api.CodeUsage, api.AsError(answer(t, s, map[string]any{"id": q.ID, "value": "whatever"})).Code)
			if c.answer == "" {
				require.NoError(t, answer(t, s, map[string]any{"id": q.ID, "cancelled": true}))
			} else {
				require.NoError(t, answer(t, s, map[string]any{"id": q.ID, "value": c.answer}))
			}
			require.Equal(t, c.want, (<-decided).Reason)
			require.Equal(t, c.after, s.policy.Decide(request).Reason)
			require.Equal(t, api.ActivityIdle, s.Session().Activity)
			require.Equal(t, api.CodeConflict, api.AsError(answer(t, s, map[string]any{"id": q.ID, "value": c.answer})).Code, "an answer counts once")
			kept, err := rules.Load(s.spec.RulesFile)
			require.NoError(t, err)
			require.Len(t, kept, c.kept)
		})
	}
}

func TestAppealEndsWithWhoWaits(t *testing.T) {
	s, _ := newSession(t, silent)
	ctx, cancel := context.WithCancel(context.Background())
	decided := make(chan policy.Decision, 1)
	go func() {
		decided <- s.appeal(ctx, policy.Request{Protocol: policy.TLS, Host: "example.com", Port: 443}, policy.Refuse(policy.ReasonNoRule))
	}()
	waitQuestion(t, s)
	cancel()
	require.Equal(t, policy.ReasonAskTimeout, (<-decided).Reason)
	require.Empty(t, s.Session().Questions)
}

func TestManyRefusalsAreToldOnce(t *testing.T) {
	s, _ := newSession(t, silent)
	start := time.Now()
	refuse := func(at time.Time, count int64) {
		s.recordEgress(network.Event{Time: at, Kind: network.KindDNS, Host: "example.com", Reason: policy.ReasonNoRule, Count: count})
	}
	notices := func() (n int) {
		r, err := s.Journal(0, false)
		require.NoError(t, err)
		defer func() { _ = r.Close() }()
		for {
			line, err := r.Next(context.Background())
			if err != nil {
				return n
			}
			if gjson.GetBytes(line, "data.notice").Exists() {
				n++
			}
		}
	}
	for i := range 3 * refusalBudget {
		refuse(start.Add(time.Duration(i)*refusalWindow/10), 1)
	}
	require.Zero(t, notices(), "ten in a minute are nothing new")
	refuse(start.Add(time.Hour), refusalBudget)
	require.Equal(t, 1, notices())
	refuse(start.Add(time.Hour), 10*refusalBudget)
	require.Equal(t, 1, notices())
	require.Equal(t, 3*refusalBudget+11*refusalBudget, s.Session().Denied)
}
