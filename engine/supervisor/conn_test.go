package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/pi"
	"patio/sandbox/network/policy"
)

func parse(t testing.TB, line string) pi.Command {
	t.Helper()
	c, err := pi.ParseCommand([]byte(line))
	require.NoError(t, err)
	return c
}

func TestPiEndsWithACommandPending(t *testing.T) {
	asked := make(chan struct{}, 1)
	s, fake := newSession(t, func(gjson.Result) []string { asked <- struct{}{}; return nil })
	got := make(chan error, 1)
	go func() {
		_, err := s.conn.command(context.Background(), "c", parse(t, `{"type":"get_state"}`))
		got <- err
	}()
	<-asked
	require.NoError(t, fake.out.Close())
	require.ErrorIs(t, <-got, errGone)
	<-s.conn.gone
	s.conn.mu.Lock()
	require.Empty(t, s.conn.pending)
	s.conn.mu.Unlock()
}

func TestTheLastReplyCounts(t *testing.T) {
	for range 50 {
		var fake *fakePi
		ready := make(chan struct{})
		s, f := newSession(t, func(c gjson.Result) []string {
			<-ready
			fake.say(echo(c)[0])
			_ = fake.out.Close()
			return nil
		})
		fake = f
		close(ready)
		reply, err := s.conn.command(t.Context(), "c", parse(t, `{"type":"get_state","id":"mine"}`))
		require.NoError(t, err)
		require.Equal(t, "mine", gjson.GetBytes(reply, "id").Str)
	}
}

func TestPiTakesNoMore(t *testing.T) {
	t.Run("its stdin is closed at its end", func(t *testing.T) {
		s, fake := newSession(t, echo)
		require.NoError(t, fake.in.Close())
		<-fake.done
		_, err := s.conn.command(t.Context(), "c", parse(t, `{"type":"get_state"}`))
		require.ErrorIs(t, err, errGone)
	})
	t.Run("its stdin is closed at ours", func(t *testing.T) {
		s, _ := newSession(t, echo)
		require.NoError(t, s.conn.closeStdin())
		require.NoError(t, s.conn.closeStdin(), "a second time is nothing")
		_, err := s.Command(t.Context(), "c", json.RawMessage(`{"type":"get_state"}`))
		require.ErrorIs(t, err, errGone)
		require.Equal(t, api.CodeConflict, api.AsError(err).Code)
		require.Empty(t, rpc(t, s), "what Pi didn't get isn't in the journal")
	})
	t.Run("it doesn't read", func(t *testing.T) {
		hold := make(chan struct{})
		s, _ := newSession(t, func(gjson.Result) []string { <-hold; return nil })
		got := make(chan error, 1)
		go func() {
			big := parse(t, `{"type":"prompt","message":"`+megabyte+`"}`)
			for {
				if err := s.conn.write("c", big, big.Line); err != nil {
					got <- err
					return
				}
			}
		}()
		require.Eventually(t, func() bool { return len(rpc(t, s)) > 1 }, 10*time.Second, time.Millisecond)
		require.NoError(t, s.conn.closeStdin(), "a stop breaks a write off that hangs")
		require.ErrorIs(t, <-got, errGone)
		close(hold)
	})
}

var (
	megabyte = strings.Repeat("x", 1<<20)
	tenth    = megabyte[:100<<10]
)

func TestCommandIsGivenUp(t *testing.T) {
	hold := make(chan struct{})
	s, _ := newSession(t, func(c gjson.Result) []string {
		if c.Get("message").Str == "slow" {
			<-hold
		}
		return echo(c)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.conn.command(ctx, "c", parse(t, `{"type":"bash","message":"slow"}`))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(hold)
	reply, err := s.conn.command(t.Context(), "c", parse(t, `{"type":"bash","message":"next"}`))
	require.NoError(t, err)
	require.Equal(t, "next", gjson.GetBytes(reply, "data.echo").Str, "the late reply is nobody's")
}

func TestABrokenJournalEndsTheSession(t *testing.T) {
	s, fake := newSession(t, echo)
	require.NoError(t, s.journal.Close())
	_, err := s.conn.command(t.Context(), "c", parse(t, `{"type":"get_state"}`))
	require.ErrorIs(t, err, journal.ErrClosed)
	require.Empty(t, fake.got(), "what can't be written down isn't sent")
	require.ErrorIs(t, <-s.broken, journal.ErrClosed)
	fake.say(`{"type":"agent_start"}`)
	require.ErrorIs(t, <-s.broken, journal.ErrClosed)
	require.Equal(t, api.ActivityIdle, s.Session().Activity, "what can't be written down isn't told")
	for range 10 { // more than a pipe holds: Pi must not block
		fake.say(tenth)
	}
}

func TestFullDiskIsSaid(t *testing.T) {
	s, _ := newSession(t, echo)
	s.fail(errors.Join(errors.New("append record"), syscall.ENOSPC))
	s.fail(errors.New("the second one"))
	require.Equal(t, api.CodeDisk, api.AsError(<-s.broken).Code)
	require.Empty(t, s.broken)
}

func TestPrompt(t *testing.T) {
	refuse := ""
	s, fake := newSession(t, func(c gjson.Result) []string {
		if refuse != "" {
			return []string{`{"type":"response","id":` + c.Get("id").Raw + `,"command":"prompt","success":false,"error":"` + refuse + `"}`}
		}
		return echo(c)
	})
	for i := range 3 {
		_, err := s.journal.Append(api.RecordStats, i)
		require.NoError(t, err)
	}
	r, err := s.Prompt(t.Context(), "cli", api.PromptRequest{Message: "hi \u2028 <&>"})
	require.NoError(t, err)
	require.EqualValues(t, 3, r.Seq, "the journal goes on from here with the prompt")
	sent := gjson.Parse(fake.got()[0])
	require.Equal(t, "hi \u2028 <&>", sent.Get("message").Str)
	require.False(t, sent.Get("streamingBehavior").Exists())
	require.False(t, sent.Get("images").Exists())

	_, err = s.Prompt(t.Context(), "cli", api.PromptRequest{Images: json.RawMessage(`[{"data":"x"}]`), Behavior: "followUp"})
	require.NoError(t, err)
	sent = gjson.Parse(fake.got()[1])
	require.Equal(t, "followUp", sent.Get("streamingBehavior").Str)
	require.Equal(t, "x", sent.Get("images.0.data").Str)

	for name, tc := range map[string]struct {
		request api.PromptRequest
		refuse  string
		code    api.Code
		want    string
	}{
		"empty":         {api.PromptRequest{Message: " \n"}, "", api.CodeUsage, "empty"},
		"behavior":      {api.PromptRequest{Message: "x", Behavior: "now"}, "", api.CodeUsage, `"now"`},
		"working":       {api.PromptRequest{Message: "x"}, "Agent is already processing a prompt", api.CodeConflict, "is working"},
		"something new": {api.PromptRequest{Message: "x"}, "no luck", api.CodeInternal, "no luck"},
	} {
		refuse = tc.refuse
		_, err := s.Prompt(t.Context(), "cli", tc.request)
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, tc.code, api.AsError(err).Code, name)
	}
}

func TestCommandsNeedAReadySession(t *testing.T) {
	s, fake := newSession(t, echo)
	for _, phase := range []api.Phase{api.PhaseNew, api.PhasePreparing, api.PhaseStarting, api.PhaseStopping, api.PhaseEnded, api.PhaseFailed} {
		s.tracker.update(func(t *api.Session) { t.Phase = phase })
		_, err := s.Command(t.Context(), "c", json.RawMessage(`{"type":"abort"}`))
		require.ErrorContains(t, err, string(phase))
		require.Equal(t, api.CodeConflict, api.AsError(err).Code)
		_, err = s.Prompt(t.Context(), "c", api.PromptRequest{Message: "x"})
		require.ErrorContains(t, err, string(phase))
		require.ErrorContains(t, s.Exec(t.Context(), api.ExecRequest{Argv: []string{"x"}}, nil), string(phase))
		_, err = s.Processes(t.Context())
		require.ErrorContains(t, err, string(phase))
	}
	s.tracker.update(func(t *api.Session) { t.Phase = api.PhaseReady })
	_, err := s.Command(t.Context(), "c", json.RawMessage(`null`))
	require.Equal(t, api.CodeUsage, api.AsError(err).Code)
	require.ErrorContains(t, s.Exec(t.Context(), api.ExecRequest{}, nil), "needs a program")
	require.Empty(t, fake.got())
}

// The endpoint of a new model is open before the client that chose it knows.
func TestModelChangeOpensItsEndpoint(t *testing.T) {
	model := `{"id":"m2","name":"M 2","api":"openai-completions","provider":"corp","baseUrl":"https://two.example.com/v1","contextWindow":9}`
	s, _ := newSession(t, func(c gjson.Result) []string {
		return []string{`{"type":"response","id":` + c.Get("id").Raw + `,"command":"set_model","success":true,"data":` + model + `}`}
	})
	flag, err := policy.ParseRule("flag.example.com")
	require.NoError(t, err)
	flag.Source = "flag"
	require.NoError(t, s.policy.Add(flag))
	require.NoError(t, s.setModel(pi.Model{ID: "m1", Provider: "corp", BaseURL: "https://one.example.com/v1"}, "low"))
	require.Equal(t, []string{"flag.example.com:443", "one.example.com:443"}, ruleTexts(s))
	_, err = s.Command(t.Context(), "c", json.RawMessage(`{"type":"set_model","provider":"corp","modelId":"m2"}`))
	require.NoError(t, err)
	require.Equal(t, []string{"flag.example.com:443", "two.example.com:443"}, ruleTexts(s), "one model, one endpoint")
	now := s.Session()
	require.Equal(t, api.Model{Provider: "corp", ID: "m2", Name: "M 2", API: "openai-completions", BaseURL: "https://two.example.com/v1", Thinking: "low", ContextWindow: 9}, now.Model)
	require.Len(t, now.Plan.Egress, 2)
	last := states(t, s)[0]
	require.Equal(t, "m2", last.Model.ID)
}

func ruleTexts(s *Supervisor) (texts []string) {
	for _, r := range s.policy.Snapshot() {
		texts = append(texts, r.String())
	}
	return texts
}
