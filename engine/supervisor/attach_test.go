package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/pi"
)

func TestIDsAreEachClientsOwn(t *testing.T) {
	s, fake := newSession(t, echo)
	a, b := attach(t, s, "cli"), attach(t, s, "cli")
	for _, id := range []string{`"1"`, `1`, `null`, `{"a": [1]}`, `true`, `"cli-2/1"`, `""`} {
		a.send(t, `{"type":"bash","message":"from a","id":`+id+`}`)
		b.send(t, `{"type":"bash","message":"from b","id":`+id+`}`)
		require.Equal(t, `{"type":"response","id":`+id+`,"command":"bash","success":true,"data":{"echo":"from a"}}`, a.next(t))
		require.Equal(t, `{"type":"response","id":`+id+`,"command":"bash","success":true,"data":{"echo":"from b"}}`, b.next(t))
	}
	a.send(t, `{"type":"abort"}`)
	require.JSONEq(t, `{"type":"response","command":"abort","success":true,"data":{"echo":""}}`, a.next(t), "no id in, no id out")

	seen := map[string]bool{}
	for _, line := range fake.got() {
		id := gjson.Get(line, "id").Str
		require.Regexp(t, `^cli-[12]/\d+$`, id)
		require.False(t, seen[id], "an id is used once")
		seen[id] = true
	}
	require.Len(t, seen, 15)
	for _, r := range rpc(t, s) {
		if r.Direction == api.ToPi {
			require.Regexp(t, `^cli-[12]$`, r.Client)
			require.True(t, strings.HasPrefix(gjson.GetBytes(r.Line, "id").Str, r.Client+"/"))
		}
	}
}

func TestEventsAreEverybodys(t *testing.T) {
	s, fake := newSession(t, echo)
	a, b := attach(t, s, "a"), attach(t, s, "b")
	lines := []string{
		`{"type":"agent_start"}`,
		"{\"type\":\"message_update\",\"text\":\"raw \u2028 separator <&> \\u00e9\"}",
		`{"type":"response","command":"parse","success":false,"error":"Failed to parse command"}`,
		`{"type":"response","id":"not ours","command":"x","success":true}`,
		"Warning: not JSON at all",
		`[1,2]`,
		`{"no":"type"}`,
		`{"type":"agent_settled"}`,
	}
	for _, line := range lines {
		fake.say(line)
	}
	for _, c := range []*client{a, b} {
		for _, line := range lines {
			require.Equal(t, line, c.next(t))
		}
	}
}

func TestRefusedLinesDontReachPi(t *testing.T) {
	s, fake := newSession(t, echo)
	c := attach(t, s, "c")
	for _, line := range []string{"null", "42", `[]`, `"abort"`, `{"type":1}`, "{", `{"type":"abort","id":1,"id":2}`, "\xff"} {
		c.send(t, line)
		reply := gjson.Parse(c.next(t))
		require.Equal(t, "response", reply.Get("type").Str, line)
		require.Equal(t, "parse", reply.Get("command").Str)
		require.False(t, reply.Get("success").Bool())
		require.Contains(t, reply.Get("error").Str, "not an RPC command")
	}
	c.send(t, "")
	c.send(t, " \t\r")
	c.send(t, `{"type":"abort","id":"ok"}`)
	require.Equal(t, "ok", gjson.Get(c.next(t), "id").Str, "the connection goes on")
	require.Len(t, fake.got(), 1)
}

func TestNotJSONIsKeptAsText(t *testing.T) {
	s, fake := newSession(t, echo)
	c := attach(t, s, "c")
	fake.say("plain words")
	fake.say("{\"type\":\"x\",\"bad\":\"\xff\"}")
	fake.say(`{"type":"x"`)
	require.Equal(t, "plain words", c.next(t))
	require.Equal(t, "{\"type\":\"x\",\"bad\":\"\uFFFD\"}", c.next(t))
	require.Equal(t, `{"type":"x"`, c.next(t))
	for i, want := range []string{"plain words", "{\"type\":\"x\",\"bad\":\"\uFFFD\"}", `{"type":"x"`} {
		r := rpc(t, s)[i]
		require.Equal(t, api.FromPi, r.Direction)
		require.Equal(t, want, r.Text)
		require.Nil(t, r.Line)
	}
}

func TestLinesAreJournaledAsTheyWere(t *testing.T) {
	s, fake := newSession(t, echo)
	c := attach(t, s, "c")
	in := "{ \"type\" : \"prompt\", \"message\":\"\\u00e9 \u2028 <&>\" }"
	out := "{ \"type\" : \"x\", \"n\": 1.50, \"s\":\"\\u00e9 \u2028 <&>\" }"
	c.send(t, in)
	c.next(t)
	fake.say(out)
	require.Equal(t, out, c.next(t))
	lines := rpc(t, s)
	require.Equal(t, fake.got()[0], string(lines[0].Line))
	require.Equal(t, strings.Replace(in, "\" }", "\" ,\"id\":\"c-1/1\"}", 1), string(lines[0].Line))
	require.Equal(t, out, string(lines[2].Line))
}

// Whatever a client has, the journal had before.
func TestJournalComesFirst(t *testing.T) {
	s, fake := newSession(t, echo)
	c := attach(t, s, "c")
	for i := range 100 {
		line := fmt.Sprintf(`{"type":"message_update","n":%d}`, i)
		fake.say(line)
		require.Equal(t, line, c.next(t))
		got := rpc(t, s)
		require.Equal(t, line, string(got[len(got)-1].Line))
	}
	cmd, err := pi.ParseCommand([]byte(`{"type":"get_state"}`))
	require.NoError(t, err)
	reply, err := s.conn.command(t.Context(), "me", cmd)
	require.NoError(t, err)
	got := rpc(t, s)
	require.Equal(t, api.FromPi, got[len(got)-1].Direction)
	require.JSONEq(t, string(reply), strings.Replace(string(got[len(got)-1].Line), `"id":"me/1",`, "", 1))
}

// A client that is quicker than the session would act on what the session doesn't know
// yet: answer a question that isn't open, prompt a model whose endpoint is closed.
func TestNobodyIsAheadOfTheSession(t *testing.T) {
	s, fake := newSession(t, echo)
	c := attach(t, s, "c")
	observing, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	observe := s.conn.observe
	s.conn.observing.Lock()
	s.conn.observe = func(m pi.Message) {
		if m.Type == "agent_start" {
			close(observing)
			<-goOn
		}
		observe(m)
	}
	s.conn.observing.Unlock()
	fake.say(`{"type":"agent_start"}`)
	<-observing
	require.Len(t, rpc(t, s), 1, "it is in the journal")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.lines.Next()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	sent := make(chan error, 1)
	answer := parse(t, `{"type":"extension_ui_response","id":"q"}`)
	s.conn.sent = func(pi.Command) { sent <- nil }
	go func() {
		if err := s.conn.write("me", answer, answer.Line); err != nil {
			sent <- err
		}
	}()
	select {
	case <-sent:
		t.Fatal("an answer overtook the line before it")
	case <-time.After(50 * time.Millisecond):
	}
	release()
	require.NoError(t, <-sent)
	require.Equal(t, `{"type":"agent_start"}`, c.next(t))
	require.Equal(t, api.ActivityWorking, s.Session().Activity)
}

func TestHugeLines(t *testing.T) {
	s, _ := newSession(t, echo)
	c := attach(t, s, "c")
	huge := strings.Repeat("x", 6<<20)
	go func() { _, _ = io.WriteString(c.UnixConn, `{"type":"prompt","message":"`+huge+`","id":5}`+"\n") }()
	reply := c.next(t)
	require.Equal(t, huge, gjson.Get(reply, "data.echo").Str)
	require.Equal(t, "5", gjson.Get(reply, "id").Raw)
}

// A client that never reads holds nobody up, and gets all when it does read.
func TestASlowClientCostsNobody(t *testing.T) {
	s, fake := newSession(t, echo)
	slow, quick := attach(t, s, "slow"), attach(t, s, "quick")
	fill := strings.Repeat("x", 10<<10)
	const n = 500 // 5 MB, far beyond any socket buffer
	for i := range n {
		line := fmt.Sprintf(`{"type":"message_update","n":%d,"fill":%q}`, i, fill)
		fake.say(line)
		require.Equal(t, line, quick.next(t))
	}
	quick.send(t, `{"type":"abort","id":1}`)
	require.Equal(t, "1", gjson.Get(quick.next(t), "id").Raw)
	for i := range n {
		require.EqualValues(t, i, gjson.Get(slow.next(t), "n").Int())
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	s, fake := newSession(t, echo)
	const clients, each = 20, 50
	var wg sync.WaitGroup
	for i := range clients {
		if i%2 == 0 { // over the API
			wg.Go(func() {
				for n := range each {
					message := fmt.Sprintf("%d/%d", i, n)
					reply, err := s.Command(context.Background(), "api", json.RawMessage(fmt.Sprintf(`{"type":"bash","id":%d,"message":%q}`, n, message)))
					if err != nil {
						t.Errorf("command %s: %v", message, err)
						return
					}
					if r := gjson.ParseBytes(reply); r.Get("data.echo").Str != message || r.Get("id").Raw != fmt.Sprint(n) {
						t.Errorf("command %s got %s", message, reply)
					}
				}
			})
			continue
		}
		c := attach(t, s, "rpc")
		wg.Go(func() { // on a connection, all at once
			for n := range each {
				if _, err := fmt.Fprintf(c.UnixConn, "{\"type\":\"bash\",\"id\":%d,\"message\":\"%d/%d\"}\n", n, i, n); err != nil {
					t.Errorf("send: %v", err)
					return
				}
			}
		})
		wg.Go(func() {
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Errorf("set deadline: %v", err)
			}
			for n := range each {
				line, err := c.lines.Next()
				if err != nil {
					t.Errorf("read: %v", err)
					return
				}
				if r := gjson.ParseBytes(line); r.Get("data.echo").Str != fmt.Sprintf("%d/%d", i, n) || r.Get("id").Raw != fmt.Sprint(n) {
					t.Errorf("reply %d of client %d is %s", n, i, line)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, fake.got(), clients*each)
	require.Len(t, rpc(t, s), 2*clients*each)
	s.conn.mu.Lock()
	require.Empty(t, s.conn.pending)
	s.conn.mu.Unlock()
	s.attachMu.Lock()
	defer s.attachMu.Unlock()
	for a := range s.attachments {
		a.mu.Lock()
		require.Empty(t, a.ids, "what is answered is forgotten")
		a.mu.Unlock()
	}
}

// A client that sends no more still gets the replies.
func TestHalfClosedClient(t *testing.T) {
	release := make(chan struct{})
	s, _ := newSession(t, func(c gjson.Result) []string { <-release; return echo(c) })
	c := attach(t, s, "c")
	c.send(t, `{"type":"abort","id":1}`)
	_, err := io.WriteString(c.UnixConn, `{"type":"abort","id":2}`) // without LF
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	close(release)
	require.Equal(t, "1", gjson.Get(c.next(t), "id").Raw)
	require.Equal(t, "2", gjson.Get(c.next(t), "id").Raw)
}

func TestTheSessionsEndEndsClients(t *testing.T) {
	s, fake := newSession(t, echo)
	c, slow := attach(t, s, "c"), attach(t, s, "slow")
	fill := strings.Repeat("x", 1<<20)
	for range 4 {
		fake.say(`{"type":"message_update","fill":"` + fill + `"}`)
		c.next(t)
	}
	fake.say(`{"type":"agent_end"}`)
	require.NoError(t, s.conn.closeStdin())
	<-s.conn.gone
	require.NoError(t, s.journal.Close())
	require.Equal(t, `{"type":"agent_end"}`, c.next(t), "the last line comes too")
	_, err := c.lines.Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, <-c.ended, "its own side needn't be closed first")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.dismiss(ctx) // returns: a client that doesn't read can't keep a session
	<-slow.ended
	require.ErrorIs(t, s.Attach(t.Context(), "late", slow.UnixConn), errGone)
}

func TestAClientThatIsGone(t *testing.T) {
	s, fake := newSession(t, echo)
	c := attach(t, s, "c")
	require.NoError(t, c.Close())
	// It shows with the next thing that there is to say.
	fake.say(`{"type":"agent_start"}`)
	require.Eventually(t, func() bool {
		fake.say(`{"type":"message_update"}`)
		select {
		case <-c.ended:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond)
}

func TestQuestionsAndAnswers(t *testing.T) {
	s, fake := newSession(t, echo)
	a, b := attach(t, s, "a"), attach(t, s, "b")
	ask := func(id string) {
		line := `{"type":"extension_ui_request","id":"` + id + `","method":"confirm","title":"Sure?"}`
		fake.say(line)
		require.Equal(t, line, a.next(t))
		require.Equal(t, line, b.next(t))
		require.Equal(t, api.ActivityBlocked, s.Session().Activity)
	}
	answered := func() bool { return s.Session().Activity == api.ActivityIdle }
	ask("q1")
	a.send(t, `{"type":"extension_ui_response","id":"q1","confirmed":true}`)
	require.Eventually(t, answered, 10*time.Second, time.Millisecond)
	ask("q2")
	reply, err := s.Command(t.Context(), "cli", json.RawMessage(`{"type":"extension_ui_response","id":"q2","cancelled":true}`))
	require.NoError(t, err)
	require.True(t, gjson.GetBytes(reply, "success").Bool())
	require.True(t, answered())
	require.Eventually(t, func() bool { return len(fake.got()) == 2 }, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{
		`{"type":"extension_ui_response","id":"q1","confirmed":true}`,
		`{"type":"extension_ui_response","id":"q2","cancelled":true}`,
	}, fake.got(), "an answer keeps the question's id")
	var log []string
	for _, r := range states(t, s) {
		if r.Question != nil {
			log = append(log, "asked "+r.Question.ID)
		}
		if r.Answered != "" {
			log = append(log, "answered "+r.Answered)
		}
	}
	require.Equal(t, []string{"asked q1", "answered q1", "asked q2", "answered q2"}, log)
	saved, err := ReadSession(s.spec.Dir)
	require.NoError(t, err)
	require.Empty(t, saved.Questions)
}

// A program answers faster than a person: the answer must not overtake the question.
func TestQuickAnswers(t *testing.T) {
	s, fake := newSession(t, echo)
	c := attach(t, s, "c")
	const n = 300
	go func() {
		for i := range n {
			fake.say(fmt.Sprintf(`{"type":"extension_ui_request","id":"q%d","method":"confirm"}`, i))
		}
	}()
	for i := range n {
		id := gjson.Get(c.next(t), "id").Str
		require.Equal(t, fmt.Sprintf("q%d", i), id)
		c.send(t, `{"type":"extension_ui_response","id":"`+id+`","confirmed":true}`)
	}
	require.Eventually(t, func() bool { return len(fake.got()) == n && s.Session().Activity == api.ActivityIdle }, 30*time.Second, time.Millisecond)
	require.Empty(t, s.Session().Questions)
}
