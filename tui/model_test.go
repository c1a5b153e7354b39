package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/sessions/catalog"
	"patio/tui/doctor"
	"patio/tui/importer"
	"patio/tui/launcher"
	"patio/tui/pane"
	"patio/tui/panetest"
)

// Bubble Tea's ticks can't be cancelled: those of the last second outlive a program.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("charm.land/bubbletea/v2.Tick.func1"))
}

// start is when everything in these tests happens.
var start = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

// fake is a backend whose sessions and journals are given.
type fake struct {
	sessions []api.Session
	records  map[string][]journal.Record
	listErr  error
	did      []string
}

func (f *fake) List(context.Context) ([]api.Session, error) { return f.sessions, f.listErr }
func (f *fake) Stop(_ context.Context, id string) error {
	f.did = append(f.did, "stop "+id)
	return nil
}
func (f *fake) Remove(_ context.Context, id string) error {
	f.did = append(f.did, "remove "+id)
	return nil
}
func (f *fake) Resume(_ context.Context, id string) error {
	f.did = append(f.did, "resume "+id)
	return nil
}
func (f *fake) Kill(_ context.Context, id string, pid int, sig string) error {
	f.did = append(f.did, fmt.Sprint("kill ", id, pid, sig))
	return nil
}

func (f *fake) Records(ctx context.Context, id string, since uint64, follow bool, do func(journal.Record) error) error {
	for _, r := range f.records[id] {
		if r.Seq > since {
			if err := do(r); err != nil {
				return err
			}
		}
	}
	if follow {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (f *fake) History(context.Context, string, time.Time) ([]sessions.Turn, error) { return nil, nil }
func (f *fake) Plan(context.Context, launcher.Request) (api.Session, error) {
	return api.Session{}, api.Errorf(api.CodeConfig, "name one with --model", "no model")
}
func (f *fake) Start(context.Context, launcher.Request) (api.Session, error) {
	return api.Session{}, errors.New("no")
}
func (f *fake) Models(context.Context) ([]string, error) { return []string{"demo/tour"}, nil }

type fakeClient struct{}

func (fakeClient) Prompt(context.Context, api.PromptRequest) (api.PromptResponse, error) {
	return api.PromptResponse{}, nil
}
func (fakeClient) Command(context.Context, any) (json.RawMessage, error) {
	return json.RawMessage(`{"type":"response","success":true}`), nil
}
func (fakeClient) Processes(context.Context) ([]api.Process, error) { return nil, nil }
func (fakeClient) Close()                                           {}

func rpc(seq uint64, line string) journal.Record {
	data, err := json.Marshal(api.RPCRecord{Direction: api.FromPi, Line: json.RawMessage(line)})
	if err != nil {
		panic(err)
	}
	return journal.Record{Version: 1, Seq: seq, Time: start.Add(time.Duration(seq) * time.Second), Session: "k3f8zq0xab", Type: api.RecordRPC, Data: data}
}

func state(seq uint64, s api.StateRecord) journal.Record {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return journal.Record{Version: 1, Seq: seq, Time: start.Add(time.Duration(seq) * time.Second), Session: "k3f8zq0xab", Type: api.RecordState, Data: data}
}

func exampleSessions() []api.Session {
	ready := start
	return []api.Session{
		{V: 1, ID: "k3f8zq0xab", Name: "fix the tests", Phase: api.PhaseReady, Activity: api.ActivityWorking, Created: start, Ready: &ready,
			Workspace: "/work/shop", Model: api.Model{Provider: "demo", ID: "tour", ContextWindow: 200_000, Thinking: "medium"}, Turns: 3,
			Tokens: api.Tokens{Input: 12_345, Output: 2_345, Context: 43_210}, CostUSD: 0.42, Denied: 2,
			Usage: &api.Usage{Time: start, CPUPercent: 37, Memory: 512 << 20, MemoryLimit: 4 << 30, Pids: 21, PidsLimit: 512}},
		{V: 1, ID: "m9c1v7w2yy", Phase: api.PhaseReady, Activity: api.ActivityBlocked, Created: start.Add(-time.Hour), Workspace: "/work/api",
			Model: api.Model{Provider: "demo", ID: "tour"}, Questions: []api.Question{{ID: "q", Method: "confirm", Title: "Overwrite main.go?", Asked: start}}},
		{V: 1, ID: "a1b2c3d4e5", Name: "old", Phase: api.PhaseCrashed, Created: start.Add(-48 * time.Hour), Workspace: "/work/old",
			End: &api.End{Reason: "its supervisor is gone", ExitCode: 1}},
	}
}

func exampleRecords() []journal.Record {
	return []journal.Record{
		state(1, api.StateRecord{Phase: api.PhaseNew}),
		state(2, api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityIdle}),
		rpc(3, `{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"Why does the test fail?"}]}}`),
		rpc(4, `{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"Why does the test fail?"}]}}`),
		rpc(5, `{"type":"agent_start"}`),
		rpc(6, `{"type":"message_start","message":{"role":"assistant","content":[]}}`),
		rpc(7, `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"It compares **times** in two zones:\n\n- the file's\n- the machine's"},{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"go test ./..."}}]}}`),
		rpc(8, `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"go test ./..."}}`),
		rpc(9, `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","isError":false,"result":{"content":[{"type":"text","text":"ok  \tshop\t0.3s"}]}}`),
	}
}

// ui is the root under test. Commands aren't run unless a test does.
type ui struct {
	t *testing.T
	*model
	fake *fake
}

func newUI(t *testing.T, width, height int, theme string) *ui {
	t.Helper()
	dir := t.TempDir()
	f := &fake{sessions: exampleSessions(), records: map[string][]journal.Record{"k3f8zq0xab": exampleRecords()}}
	ctx, cancel := context.WithCancel(t.Context())
	m, err := build(ctx, Options{
		Backend: Backend{
			Sessions: f, Journals: f, Launches: f, Client: func(string) Client { return fakeClient{} },
			Files:  catalog.Options{},
			Import: func(context.Context, string, bool) (importer.Result, error) { return importer.Result{}, nil },
			Check:  func(context.Context) ([]doctor.Finding, error) { return nil, nil },
		},
		Workspace: "/work/shop", Theme: theme, StateDir: dir, Mouse: true, Now: func() time.Time { return start.Add(time.Minute) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { cancel(); m.close() })
	u := &ui{t: t, model: m, fake: f}
	u.send(tea.WindowSizeMsg{Width: width, Height: height})
	u.send(listedMsg{sessions: f.sessions})
	return u
}

func (u *ui) send(msg tea.Msg) tea.Cmd {
	_, cmd := u.Update(msg)
	return cmd
}

// press sends keys by their names.
func (u *ui) press(keys ...string) (last tea.Cmd) {
	for _, k := range keys {
		last = u.send(panetest.Key(k))
	}
	return last
}

// opened opens the first session with its journal applied, and leaves the editor.
func (u *ui) opened() {
	u.open("k3f8zq0xab")
	u.shown.feed.close()
	u.send(fed{feed: u.shown.feed, records: exampleRecords()})
	u.stale = true
}

func (u *ui) frameText() string { return u.View().Content }

// plainFrame takes our own styling away, and holds that nothing else is left.
func (u *ui) plainFrame() string {
	u.t.Helper()
	u.stale = true
	view := u.frameText()
	panetest.Screen(u.t, view, u.width, u.height)
	return panetest.Plain(view)
}

func (u *ui) golden(name string) {
	u.t.Helper()
	u.plainFrame()
	panetest.Compare(u.t, fmt.Sprintf("%s-%dx%d-%s", name, u.width, u.height, u.styles.Palette.Name), u.frameText()+"\n")
}

// screens are all that can be looked at, by the way there.
var screens = map[string]func(u *ui){
	"sessions":   func(*ui) {},
	"chat":       func(u *ui) { u.opened() },
	"traffic":    func(u *ui) { u.opened(); u.shown.toTab("Traffic") },
	"timeline":   func(u *ui) { u.opened(); u.shown.toTab("Timeline") },
	"egress":     func(u *ui) { u.opened(); u.shown.toTab("Egress") },
	"mounts":     func(u *ui) { u.opened(); u.shown.toTab("Mounts") },
	"resources":  func(u *ui) { u.opened(); u.shown.toTab("Resources") },
	"processes":  func(u *ui) { u.opened(); u.shown.toTab("Processes") },
	"changes":    func(u *ui) { u.opened(); u.shown.toTab("Changes") },
	"contract":   func(u *ui) { u.opened(); u.shown.toTab("Contract") },
	"import":     func(u *ui) { u.press("I") },
	"new":        func(u *ui) { u.press("n") },
	"doctor":     func(u *ui) { u.press("D") },
	"help":       func(u *ui) { u.press("?") },
	"palette":    func(u *ui) { u.press(":") },
	"themes":     func(u *ui) { u.press("t") },
	"confirm":    func(u *ui) { u.send(u.press("x")()) },
	"no-session": func(u *ui) { u.send(listedMsg{}) },
	"unlisted":   func(u *ui) { u.send(listedMsg{err: errors.New("permission denied")}) },
}

func TestScreens(t *testing.T) {
	for name, show := range screens {
		for _, size := range [][2]int{{60, 16}, {80, 24}, {160, 50}} {
			for _, theme := range []string{"patio-dark", "patio-light"} {
				t.Run(fmt.Sprintf("%s/%dx%d/%s", name, size[0], size[1], theme), func(t *testing.T) {
					u := newUI(t, size[0], size[1], theme)
					show(u)
					u.golden(name)
				})
			}
		}
	}
}

// Every size keeps its shape, also while it changes.
func TestEverySize(t *testing.T) {
	for name, show := range screens {
		t.Run(name, func(t *testing.T) {
			u := newUI(t, 100, 30, "patio-dark")
			show(u)
			for w := minWidth; w < 200; w += 17 {
				for h := minHeight; h < 70; h += 9 {
					u.send(tea.WindowSizeMsg{Width: w, Height: h})
					u.plainFrame()
				}
			}
		})
	}
}

func TestTooSmall(t *testing.T) {
	u := newUI(t, 40, 8, "patio-dark")
	require.Contains(t, u.frameText(), "patio needs 60×16")
	require.NotNil(t, u.press("q"), "it can be left")
}

// No two bindings of what has the focus share a key, and each has a help text.
func TestKeysAreHeldApart(t *testing.T) {
	for name, show := range screens {
		t.Run(name, func(t *testing.T) {
			u := newUI(t, 160, 50, "patio-dark")
			show(u)
			if u.overlay != nil {
				return
			}
			taken := map[string]string{}
			typing := u.typing()
			for _, group := range []struct {
				of   string
				keys []keyed
			}{{"the view", keysOf(u.pane().Keys())}, {"the root", keysOf(u.rootKeys())}} {
				for _, k := range group.keys {
					require.NotEmpty(t, k.help, "%s: %s has no help", group.of, k.name)
					if other, ok := taken[k.name]; ok && !typing {
						t.Errorf("%q is both %s and %s (%s)", k.name, other, k.help, group.of)
					}
					taken[k.name] = k.help
				}
			}
		})
	}
}

func TestKeyMap(t *testing.T) {
	k, err := newKeyMap(map[string][]string{"quit": {"Q"}, "new": {"ctrl+n", "N"}})
	require.NoError(t, err)
	require.Equal(t, []string{"Q"}, k.Quit.Keys())
	for name, c := range map[string]struct {
		keys map[string][]string
		want string
	}{
		"taken":         {map[string][]string{"quit": {"n"}}, `the key "n" is both new and quit`},
		"no interrupt":  {map[string][]string{"interrupt": {}}, `the action "interrupt" needs a key: nothing else leaves a view that takes text`},
		"no such thing": {map[string][]string{"fly": {"f"}}, `no action "fly" for a key: help, palette`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newKeyMap(c.keys)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestNavigation(t *testing.T) {
	u := newUI(t, 100, 30, "patio-dark")
	u.press("D")
	require.Equal(t, screenDoctor, u.screen())
	u.press("esc")
	require.Equal(t, screenHome, u.screen())
	u.opened()
	require.Equal(t, screenSession, u.screen())
	u.shown.toTab("Mounts")
	u.press("]")
	require.Equal(t, "Resources", u.shown.tabs[u.shown.current].name)
	u.press("[", "[")
	require.Equal(t, "Egress", u.shown.tabs[u.shown.current].name)
	u.press("2")
	require.Equal(t, "Traffic", u.shown.tabs[u.shown.current].name)
	u.press("esc")
	require.Equal(t, screenHome, u.screen())
	u.press("t", "down", "esc")
	require.Equal(t, "patio-dark", u.styles.Palette.Name, "a preview that is left changes nothing")
}

func TestStopAsks(t *testing.T) {
	u := newUI(t, 100, 30, "patio-dark")
	u.send(u.press("x")())
	require.Contains(t, u.plainFrame(), "Stop fix the tests?")
	require.Nil(t, u.press("enter"), "return is no yes")
	require.Empty(t, u.fake.did)
	require.Nil(t, u.overlay)
}

// A supervisor that dies while its session is shown, and one that comes back.
func TestSessionEndsAndGoesOn(t *testing.T) {
	u := newUI(t, 100, 30, "patio-dark")
	u.opened()
	u.send(fed{feed: u.shown.feed, ended: true, err: errors.New("connection reset")})
	gone := exampleSessions()
	gone[0].Phase, gone[0].Activity = api.PhaseCrashed, ""
	u.send(listedMsg{sessions: gone})
	require.Contains(t, u.plainFrame(), "! crashed")
	old := u.shown.feed
	u.send(listedMsg{sessions: exampleSessions()})
	require.NotSame(t, old, u.shown.feed, "its journal is read on")
	require.NoError(t, u.shown.err)
	u.send(fed{feed: old, records: exampleRecords()})
	require.Equal(t, uint64(9), u.shown.seq)
}

// Names, workspaces, models and errors that attack the terminal.
func TestHostileSessions(t *testing.T) {
	evil := "\x1b]0;owned\a\x1b]52;c;Zm9v\x07\u009b31m\u202eabc\u200b" + strings.Repeat("\u0301", 300) + "\xff\n\r\b"
	for name, show := range screens {
		t.Run(name, func(t *testing.T) {
			u := newUI(t, 120, 40, "patio-dark")
			bad := exampleSessions()
			for i := range bad {
				bad[i].Name, bad[i].Workspace = evil, "/"+evil
				bad[i].Model = api.Model{Provider: evil, ID: evil}
				bad[i].End = &api.End{Reason: evil}
				bad[i].Questions = []api.Question{{ID: evil, Method: "select", Title: evil, Message: evil, Options: []string{evil}}}
			}
			u.fake.sessions = bad
			u.send(listedMsg{sessions: bad})
			show(u)
			u.plainFrame()
			u.notice.fail(u.o.Now(), errors.New(evil))
			u.plainFrame()
			require.NotContains(t, u.View().WindowTitle, "\x1b")
		})
	}
}

// A text goes to the user's editor in a file that is nobody else's, and none stays when
// there is no editor.
func TestEdit(t *testing.T) {
	u := newUI(t, 100, 30, "patio-dark")
	t.Setenv("TMPDIR", t.TempDir())
	u.o.Backend.Editor = func(_ context.Context, file string) (*exec.Cmd, error) { return exec.Command("true", file), nil }
	ready, ok := u.send(pane.EditMsg{Text: "half a thought"})().(editMsg)
	require.True(t, ok)
	b, err := os.ReadFile(ready.file)
	require.NoError(t, err)
	require.Equal(t, "half a thought", string(b))
	info, err := os.Stat(filepath.Dir(ready.file))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, os.RemoveAll(filepath.Dir(ready.file)))

	u.o.Backend.Editor = func(context.Context, string) (*exec.Cmd, error) {
		return nil, api.Errorf(api.CodeMissing, "set EDITOR", "there is no editor")
	}
	u.send(u.send(pane.EditMsg{Text: "x"})())
	require.Contains(t, u.plainFrame(), "there is no editor · set EDITOR")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

// A command of the palette does what its key does.
func TestPaletteRuns(t *testing.T) {
	u := newUI(t, 100, 30, "patio-dark")
	u.press(":")
	for _, r := range "doctor" {
		u.press(string(r))
	}
	u.press("enter")
	require.Equal(t, screenDoctor, u.screen())
	u.press("esc", ":")
	for _, r := range "help" {
		u.press(string(r))
	}
	u.press("enter")
	require.Contains(t, u.plainFrame(), "Everywhere", "one overlay opens another")
}
