package chat

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/tui/pane"
	"patio/tui/panetest"
)

func TestPrompts(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		d := newDesk(t)
		d.typed("fix")
		d.press("ctrl+j")
		d.typed("it")
		d.press("shift+enter", "alt+enter")
		d.typed("now")
		d.press("enter")
		require.Equal(t, []api.PromptRequest{{Message: "fix\nit\n\nnow"}}, d.h.prompts)
		require.True(t, d.c.ed.empty())
	})
	t.Run("nothing to send", func(t *testing.T) {
		d := newDesk(t)
		d.typed("  ")
		d.press("enter")
		require.Empty(t, d.h.prompts)
	})
	t.Run("working", func(t *testing.T) {
		d := newDesk(t)
		d.work()
		d.typed("left")
		d.press("enter")
		d.typed("then right")
		d.press("ctrl+f")
		require.Equal(t, []api.PromptRequest{{Message: "left", Behavior: "steer"}, {Message: "then right", Behavior: "followUp"}}, d.h.prompts)
	})
	t.Run("refused", func(t *testing.T) {
		d := newDesk(t)
		d.h.err = errors.New("no route")
		d.typed("a text")
		d.press("enter")
		require.Equal(t, "a text", d.c.ed.text())
		require.Equal(t, "no route", d.notice())
	})
	t.Run("refused while another is typed", func(t *testing.T) {
		d := newDesk(t)
		d.h.err = errors.New("no route")
		d.typed("one")
		cmd := d.c.Update(panetest.Key("enter"))
		d.typed("two")
		d.run(cmd)
		require.Equal(t, "two", d.c.ed.text())
		d.press("up")
		require.Equal(t, "one", d.c.ed.text())
	})
	t.Run("another window was faster", func(t *testing.T) {
		d := newDesk(t)
		d.h.err = api.Errorf(api.CodeConflict, "", "the session is working")
		d.typed("a text")
		d.press("enter")
		require.Equal(t, "a text", d.c.ed.text())
		require.Contains(t, d.view(), "Pi has begun to work meanwhile")
	})
	t.Run("not ready", func(t *testing.T) {
		d := newDesk(t, func(s *api.Session, _ *Options) { s.Phase = api.PhaseStarting })
		d.typed("early")
		d.press("enter")
		require.Empty(t, d.h.prompts)
		require.Equal(t, "early", d.c.ed.text())
		require.Contains(t, d.notice(), "isn't ready")
		d.idle()
		d.press("enter")
		require.Len(t, d.h.prompts, 1)
	})
}

func TestAbort(t *testing.T) {
	t.Run("ctrl+x", func(t *testing.T) {
		d := newDesk(t)
		d.press("ctrl+x")
		require.Empty(t, d.h.commands)
		d.work()
		d.press("ctrl+x")
		require.Equal(t, `{"type":"abort"}`, d.h.last())
	})
	t.Run("Esc twice", func(t *testing.T) {
		d := newDesk(t)
		d.work()
		d.press("esc")
		require.Empty(t, d.h.commands)
		require.Contains(t, d.view(), "Esc again aborts")
		require.False(t, d.c.Typing())
		d.press("esc")
		require.Equal(t, `{"type":"abort"}`, d.h.last())
	})
	t.Run("Esc twice, slowly", func(t *testing.T) {
		d := newDesk(t)
		d.work()
		require.True(t, d.c.Escapes())
		d.press("esc")
		require.True(t, d.c.Escapes())
		d.now = d.now.Add(3 * time.Second)
		require.False(t, d.c.Escapes()) // it leaves the screen then
		d.press("esc")
		require.Empty(t, d.h.commands)
	})
	t.Run("ended by the state", func(t *testing.T) {
		d := newDesk(t)
		d.work()
		d.c.Update(panetest.Key("ctrl+x"))
		require.Contains(t, d.view(), "aborting")
		d.idle()
		require.Contains(t, d.view(), "○ idle")
	})
}

func TestFocus(t *testing.T) {
	d := newDesk(t)
	require.True(t, d.c.Typing())
	require.NotNil(t, d.c.Cursor())
	d.press("esc")
	require.False(t, d.c.Typing())
	require.True(t, d.tr.focused)
	require.Nil(t, d.c.Cursor())
	d.press("j")
	require.Len(t, d.tr.got, 1)
	d.press("i")
	require.True(t, d.c.Typing())
	d.press("esc")
	d.send(tea.PasteMsg{Content: "pasted"})
	require.Equal(t, "pasted", d.c.ed.text())
	require.True(t, d.c.Typing())

	d.send(pane.FocusMsg{From: "Egress", ToolCall: "call_2"})
	require.True(t, d.c.Typing())
	d.send(pane.FocusMsg{From: "Egress", ToolCall: "call_1"})
	require.False(t, d.c.Typing())
	require.Equal(t, "call_1", d.tr.focusedOn)

	d.tr.typing = true // the transcript's own filter
	require.True(t, d.c.Typing())
	d.press("i")
	require.True(t, d.c.focus == focusTranscript)
}

func TestMouse(t *testing.T) {
	d := newDesk(t)
	d.typed("one two")
	d.send(tea.MouseClickMsg{X: 3, Y: 2, Button: tea.MouseLeft})
	require.False(t, d.c.Typing())
	d.send(tea.MouseClickMsg{X: 5, Y: 19, Button: tea.MouseLeft})
	require.True(t, d.c.Typing())
	d.typed("X")
	require.Equal(t, "oneX two", d.c.ed.text())
	before := len(d.tr.got)
	d.send(tea.MouseWheelMsg{X: 3, Y: 2, Button: tea.MouseWheelUp})
	require.Len(t, d.tr.got, before+1)
}

func TestCursorIsWhereOneTypes(t *testing.T) {
	d := newDesk(t)
	d.typed("ab")
	d.press("ctrl+j")
	d.typed("漢c")
	require.Equal(t, 5, d.c.Cursor().X)
	require.Equal(t, 19, d.c.Cursor().Y)
	d.press("ctrl+l")
	require.Equal(t, 4, d.c.Cursor().X)
	lines := strings.Split(d.view(), "\n")
	require.Contains(t, lines[d.c.Cursor().Y], "│ ›")
}

func TestRecall(t *testing.T) {
	d := newDesk(t, func(_ *api.Session, o *Options) { o.Inputs = NewInputFile("/nonexistent/patio") })
	d.c.Update(InputsMsg{"/work/other", []string{"not here"}})
	d.c.Update(InputsMsg{"/work/tour", []string{"oldest", "twice"}})
	d.tr.prompts = []string{"twice", "from the session\nin two lines"}
	d.typed("my draft")
	d.press("up")
	require.Equal(t, "from the session\nin two lines", d.c.ed.text())
	d.press("up", "up")
	require.Equal(t, "twice", d.c.ed.text())
	d.press("up")
	require.Equal(t, "oldest", d.c.ed.text())
	d.press("up")
	require.Equal(t, "oldest", d.c.ed.text())
	require.Contains(t, d.view(), "nothing older")
	d.press("down", "down")
	require.Equal(t, "from the session\nin two lines", d.c.ed.text())
	d.press("down")
	require.Equal(t, "my draft", d.c.ed.text())
	d.press("down")
	require.Equal(t, "my draft", d.c.ed.text())
	// What was changed on the way is still there.
	d.press("up", "up", "up")
	d.typed("!")
	d.press("up", "down")
	require.Equal(t, "twice!", d.c.ed.text())
	d.press("down", "down", "down")
	require.Equal(t, "my draft", d.c.ed.text())
}

func TestRecallOfALongText(t *testing.T) {
	d := newDesk(t)
	d.tr.prompts = []string{strings.Repeat("long ", 1<<20)}
	d.press("up")
	require.Equal(t, d.tr.prompts[0], d.c.ed.text())
	require.Contains(t, d.view(), "[pasted 1 line, 5.0 MiB]")
}

func TestPaste(t *testing.T) {
	long := strings.Repeat("line\r\n", 240)
	want := strings.Repeat("line\n", 240)
	t.Run("a chip is sent whole", func(t *testing.T) {
		d := newDesk(t)
		d.typed("look: ")
		d.send(tea.PasteMsg{Content: long})
		d.typed(" why?")
		require.Contains(t, d.view(), "look: [pasted 240 lines, 1.2 KiB] why?")
		d.press("enter")
		require.Equal(t, "look: "+want+" why?", d.h.prompts[0].Message)
	})
	t.Run("one key removes it", func(t *testing.T) {
		d := newDesk(t)
		d.typed("a")
		d.send(tea.PasteMsg{Content: long})
		d.typed("b")
		d.press("left", "backspace")
		require.Equal(t, "ab", d.c.ed.text())
		d.typed("c")
		require.Equal(t, "acb", d.c.ed.text())
	})
	t.Run("delete removes it", func(t *testing.T) {
		d := newDesk(t)
		d.typed("a")
		d.send(tea.PasteMsg{Content: long})
		d.press("home", "right", "delete")
		require.Equal(t, "a", d.c.ed.text())
	})
	t.Run("the cursor steps over it", func(t *testing.T) {
		d := newDesk(t)
		d.typed("a")
		d.send(tea.PasteMsg{Content: long})
		d.typed("b")
		d.press("left", "left")
		d.typed("x")
		require.Equal(t, "ax"+want+"b", d.c.ed.text())
		d.press("right")
		d.typed("y")
		require.Equal(t, "ax"+want+"yb", d.c.ed.text())
	})
	t.Run("opened", func(t *testing.T) {
		d := newDesk(t)
		d.typed("a")
		d.send(tea.PasteMsg{Content: long})
		d.typed("b")
		d.press("alt+o")
		require.NotContains(t, d.view(), "pasted")
		require.Equal(t, "a"+want+"b", d.c.ed.text())
	})
	t.Run("too long to open", func(t *testing.T) {
		d := newDesk(t)
		d.send(tea.PasteMsg{Content: strings.Repeat("x", 1<<20)})
		d.press("alt+o")
		require.Contains(t, d.view(), "too long to be edited here")
		require.Len(t, d.c.ed.text(), 1<<20)
	})
	t.Run("short", func(t *testing.T) {
		d := newDesk(t)
		d.send(tea.PasteMsg{Content: "a\r\nb\rc"})
		require.Equal(t, "a\nb\nc", d.c.ed.text())
	})
	t.Run("what no message can have", func(t *testing.T) {
		d := newDesk(t)
		d.send(tea.PasteMsg{Content: "a\x1b[31mb\x00c\xff"})
		require.Equal(t, "a[31mbc\uFFFD", d.c.ed.text())
		require.Contains(t, d.view(), "3 characters were removed")
		d.safe()
	})
	t.Run("sent as it was", func(t *testing.T) {
		odd := "a\tb \u202ec \u200d👩\u200d👧 ❤\ufe0f e\u0301\u0301\u0301\u0301\u0301 \U00100001 \u0301 \x07"
		d := newDesk(t)
		d.send(tea.PasteMsg{Content: odd})
		d.safe()
		d.press("enter")
		require.Equal(t, odd, d.h.prompts[0].Message)
	})
	t.Run("a chip and the draft", func(t *testing.T) {
		d := newDesk(t)
		d.tr.prompts = []string{"before"}
		d.send(tea.PasteMsg{Content: long})
		d.press("up", "down")
		require.Equal(t, want, d.c.ed.text())
	})
}

func TestExternalEditor(t *testing.T) {
	d := newDesk(t)
	d.typed("a ")
	d.send(tea.PasteMsg{Content: strings.Repeat("x\n", 20)})
	d.press("ctrl+o")
	edit := d.msgs[0].(pane.EditMsg)
	require.Equal(t, "a "+strings.Repeat("x\n", 20), edit.Text)
	d.send(edit.Done("written there\n", nil))
	require.Equal(t, "written there", d.c.ed.text())
	d.send(edit.Done("", errors.New("no editor")))
	require.Equal(t, "no editor", d.notice())
	require.Equal(t, "written there", d.c.ed.text())
}

var png = append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)

func TestImages(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shot 1.png")
	require.NoError(t, os.WriteFile(file, png, 0o600))
	fake := filepath.Join(dir, "fake.png")
	require.NoError(t, os.WriteFile(fake, []byte("root:x:0:0"), 0o600))
	want := `[{"type":"image","data":"` + base64.StdEncoding.EncodeToString(png) + `","mimeType":"image/png"}]`
	for name, content := range map[string]string{
		"plain": file, "escaped": strings.ReplaceAll(file, " ", `\ `), "quoted": "'" + file + "'", "with a line end": file + "\n",
		"as a URL": "file://" + strings.ReplaceAll(file, " ", "%20"),
	} {
		t.Run("pasted "+name, func(t *testing.T) {
			d := newDesk(t)
			d.typed("see ")
			d.send(tea.PasteMsg{Content: content})
			require.Contains(t, d.view(), "see [image shot 1.png, 108 B]")
			d.press("enter")
			require.Equal(t, "see ", d.h.prompts[0].Message)
			require.JSONEq(t, want, string(d.h.prompts[0].Images))
		})
	}
	t.Run("by command", func(t *testing.T) {
		d := newDesk(t, func(_ *api.Session, o *Options) { o.Workspace = dir })
		d.typed("/image shot 1.png")
		d.press("enter", "enter")
		require.JSONEq(t, want, string(d.h.prompts[0].Images))
		require.Empty(t, d.h.prompts[0].Message)
	})
	t.Run("removed", func(t *testing.T) {
		d := newDesk(t)
		d.send(tea.PasteMsg{Content: file})
		d.press("backspace")
		require.True(t, d.c.ed.empty())
	})
	t.Run("kept over the external editor", func(t *testing.T) {
		d := newDesk(t)
		d.typed("see ")
		d.send(tea.PasteMsg{Content: file})
		d.press("ctrl+o")
		d.send(d.msgs[0].(pane.EditMsg).Done("look", nil))
		require.Equal(t, "look", d.c.ed.text())
		require.Len(t, d.c.ed.pictures(), 1)
	})
	t.Run("no image", func(t *testing.T) {
		d := newDesk(t)
		d.send(tea.PasteMsg{Content: fake})
		require.Equal(t, fake, d.c.ed.text())
		d.c.ed.reset()
		d.typed("/image " + fake)
		d.press("enter")
		require.Contains(t, d.notice(), "no PNG, JPEG, GIF or WebP")
		d.typed("/image " + dir)
		d.press("enter")
		require.Contains(t, d.notice(), "is no file")
		d.typed("/image ")
		d.press("enter")
		require.Contains(t, d.notice(), "/image PATH")
	})
	t.Run("too large", func(t *testing.T) {
		big := filepath.Join(dir, "big.png")
		require.NoError(t, os.WriteFile(big, png, 0o600))
		require.NoError(t, os.Truncate(big, maxPicture+1))
		_, err := readPicture(big, "")
		require.ErrorContains(t, err, "larger than 20 MiB")
	})
	t.Run("the other kinds", func(t *testing.T) {
		for mime, content := range map[string]string{"image/jpeg": "\xff\xd8\xff\xe0", "image/gif": "GIF89a", "image/webp": "RIFF\x00\x00\x00\x00WEBPVP8 "} {
			path := filepath.Join(dir, "x")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			p, err := readPicture(path, "")
			require.NoError(t, err)
			require.Equal(t, mime, p.mime)
		}
	})
	t.Run("at most eight", func(t *testing.T) {
		d := newDesk(t)
		for range maxPictures + 1 {
			d.send(tea.PasteMsg{Content: file})
		}
		require.Len(t, d.c.ed.pictures(), maxPictures)
		require.Contains(t, d.notice(), "eight images")
	})
}

func TestEndedSession(t *testing.T) {
	d := newDesk(t)
	d.typed("unsent")
	d.press("ctrl+l")
	d.state(api.StateRecord{Phase: api.PhaseEnded, End: &api.End{Reason: "stopped"}})
	require.False(t, d.c.Typing())
	require.Nil(t, d.c.picker)
	d.press("u")
	require.Equal(t, pane.CopyMsg{Text: "unsent", What: "your unsent text"}, d.msgs[0])
	d.press("R")
	require.Equal(t, ResumeMsg{"k3v9x2m1pq"}, d.msgs[1])
	d.press("i", "ctrl+l", "ctrl+x", "ctrl+g")
	require.False(t, d.c.Typing())
	require.Empty(t, d.h.commands[1:])
	// It was resumed: the same session is ready again.
	s := session()
	s.Seq = 500
	d.c.SetSession(s)
	require.True(t, d.c.Typing())
	require.Equal(t, "unsent", d.c.ed.text())
}

func TestReadOnly(t *testing.T) {
	d := newDesk(t, func(_ *api.Session, o *Options) { o.ReadOnly = true })
	require.False(t, d.c.Typing())
	d.work()
	d.ask(api.Question{ID: "q", Method: "confirm", Title: "Sure?"})
	d.ready()
	d.press("i", "ctrl+l", "ctrl+x", "ctrl+g", "y", "enter", "esc", "esc")
	d.send(tea.PasteMsg{Content: "x"})
	d.send(tea.MouseClickMsg{X: 3, Y: 19, Button: tea.MouseLeft})
	require.False(t, d.c.Typing())
	require.Empty(t, d.h.commands)
	require.True(t, d.c.ed.empty())
}

func TestSessionComesBeforeTheScreen(t *testing.T) {
	d := newDesk(t)
	c := New(d.h, d.tr, Options{})
	s := session()
	s.Questions = []api.Question{{ID: "q", Method: "input", Title: "Name?"}}
	s.Activity = api.ActivityBlocked
	c.SetSession(s)
	c.Apply(nil)
	c.Tick()
	require.Nil(t, c.Cursor())
	require.Empty(t, c.View())
	require.NotEmpty(t, c.Keys())
	c.SetStyles(d.c.styles)
	c.SetSize(60, 12)
	panetest.Screen(t, c.View(), 60, 12)
}

func TestHistoryIsAskedForOnce(t *testing.T) {
	d := newDesk(t)
	d.tr.needs = true
	d.run(d.c.Wake())
	require.Equal(t, 1, d.h.asked)
	require.Len(t, d.tr.history, 1)
	d.tr.needs = true // it can't have more
	d.press("x")
	require.Equal(t, 1, d.h.asked)
}

func TestStateFromTwoSources(t *testing.T) {
	d := newDesk(t)
	d.work() // record 101
	s := session()
	s.Seq = 100 // a snapshot from before it
	d.c.SetSession(s)
	require.True(t, d.c.working())
	s.Seq = 99
	s.Turns = 1
	d.c.SetSession(s)
	require.Equal(t, 12, d.c.s.Turns)
	d.says(`{"type":"turn_start"}`)
	d.says(`{"type":"message_end","message":{"role":"assistant","usage":{"totalTokens":90000,"cost":{"total":0.1}}}}`)
	require.Equal(t, 13, d.c.s.Turns)
	require.Equal(t, 90000, d.c.s.Tokens.Context)
	s = session()
	s.Seq, s.Turns, s.Activity = 103, 13, api.ActivityWorking
	d.c.SetSession(s)
	require.Equal(t, 13, d.c.s.Turns)
	d.says(`{"type":"thinking_level_changed","level":"high"}`)
	require.Equal(t, "high", d.c.s.Model.Thinking)
	d.says(`{"type":"session_info_changed","name":"new"}`)
	require.Equal(t, "new", d.c.s.Name)
	d.state(api.StateRecord{Phase: api.PhaseReady, Activity: api.ActivityWorking, Model: &api.Model{Provider: "demo", ID: "echo"}})
	require.Contains(t, d.view(), "demo/echo")
}

func TestElapsed(t *testing.T) {
	d := newDesk(t)
	d.work()
	d.now = d.now.Add(time.Hour + 2*time.Minute)
	require.Contains(t, d.view(), "working 1 h 2 min")
	d.idle()
	d.work()
	require.NotContains(t, d.view(), "1 h")
}

func TestNotesGo(t *testing.T) {
	d := newDesk(t)
	d.c.tell("for a while")
	require.Contains(t, d.view(), "for a while")
	d.now = d.now.Add(noteTime)
	d.c.Tick()
	require.NotContains(t, d.view(), "for a while")
}

func TestExtensions(t *testing.T) {
	d := newDesk(t)
	d.says(`{"type":"extension_ui_request","id":"1","method":"set_editor_text","text":"from\tan extension"}`)
	require.Equal(t, "from\tan extension", d.c.ed.text())
	d.says(`{"type":"extension_ui_request","id":"2","method":"set_editor_text","text":"another"}`)
	require.Equal(t, "from\tan extension", d.c.ed.text())
	d.says(`{"type":"extension_ui_request","id":"3","method":"setStatus","statusKey":"k","statusText":"plan"}`)
	require.Contains(t, d.view(), "12 turns ")
	d.c.SetSize(120, 20)
	require.Contains(t, d.view(), "plan")
	d.says(`{"type":"extension_ui_request","id":"4","method":"setStatus","statusKey":"k"}`)
	require.NotContains(t, d.view(), "plan")
	d.says(`{"type":"extension_ui_request","id":"5","method":"setWidget","widgetKey":"w","widgetLines":["a widget"]}`)
	require.Contains(t, d.view(), "a widget")
	d.says(`{"id":"x/1","type":"response","command":"new_session","success":true}`)
	require.NotContains(t, d.view(), "a widget")
}

func TestMarkdown(t *testing.T) {
	messages := gjson.Parse(`[{"role":"user","content":"hi\u001b[31m"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"a\nb"},{"type":"text","text":"hello"},{"type":"toolCall","name":"bash","arguments":{"command":"ls"}},{"type":"image","mimeType":"image/png"}]},
		{"role":"toolResult","toolName":"bash","content":[{"type":"text","text":"` + "```" + `\n"}]},{"role":"custom","content":[]}]`)
	var b bytes.Buffer
	require.NoError(t, writeMarkdown(&b, messages))
	require.Equal(t, "## You\n\nhi[31m\n\n## Pi\n\n> a\n> b\n\nhello\n\n**bash**\n\n```\n{\"command\":\"ls\"}\n```\n\n*an image (image/png)*\n\n"+
		"### Result of bash\n\n````\n```\n````\n\n## custom\n\n", b.String())
	require.Error(t, writeMarkdown(failing{}, messages))
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }
