package demo

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestRunPassesTheCommandAndReportsTheOutput(t *testing.T) {
	const command = `uname -r; id -u; grep ^Cap /proc/self/status; pwd; touch made-inside; curl -sS -m 5 https://example.com; echo rc=\$?`
	for _, m := range Models() {
		c := ask(m.ID, "RUN: "+command)
		a := c.get(t)
		require.Equal(t, toolBash, a.tool)
		var args map[string]string
		require.NoError(t, json.Unmarshal([]byte(a.args), &args))
		require.Equal(t, map[string]string{"command": command}, args)
		require.Greater(t, a.argDeltas, 2, "arguments come in several deltas")
		require.Empty(t, a.text)

		output := "6.18\n1000\n  *a*  <b>\t\u2028 é\n\nrc=6\n\n"
		last := c.called(a.callID, a.tool, a.args, output).get(t)
		require.Equal(t, output, last.text)
		require.Empty(t, last.tool)
	}
}

func TestDirectivesInOrder(t *testing.T) {
	c := ask(modelTour, "Please.\nTHINK: first\nTEXT: 7\nRUN: a\nTHINK: second\nTOOL: nosuch\nWRITE: p\nx\nTEXT: 5\nTHINK: last")
	a := c.get(t)
	require.Equal(t, []string{"first", filler[:7], toolBash, `{"command":"a"}`}, []string{a.thought, a.text, a.tool, a.args})
	c.called(a.callID, a.tool, a.args, "out a")

	a = c.get(t)
	require.Equal(t, []string{"second", "", toolWrite, `{"path":"p","content":"x\n"}`}, []string{a.thought, a.text, a.tool, a.args})
	c.called(a.callID, a.tool, a.args, "Successfully wrote 2 bytes to p\n")

	a = c.get(t)
	require.Empty(t, a.tool)
	require.Equal(t, "last", a.thought)
	require.Equal(t, "out a\npatio demo: the tool nosuch is not offered in this request (bash, edit, read, write are), so it was not called.\n"+
		"Successfully wrote 2 bytes to p\n"+filler[:5], a.text)

	// The next prompt starts anew.
	require.Equal(t, "b", ask(modelEcho, "RUN: a").called("x", toolBash, "{}", "out").add("assistant", "out").add("user", "b").get(t).text)
}

func TestFailComesInItsTurn(t *testing.T) {
	c := ask(modelEcho, "RUN: a\nFAIL: 503")
	a := c.get(t)
	require.Equal(t, toolBash, a.tool)
	require.Equal(t, 503, c.called(a.callID, a.tool, a.args, "out").post(t).Code)
}

func TestNoTools(t *testing.T) {
	c := ask(modelEcho, "RUN: ls")
	c.tools = nil
	require.Contains(t, c.get(t).text, "no tool is offered")
	w := httptest.NewRecorder()
	body := bytes.Replace(ask(modelEcho, "RUN: ls").body(t), []byte(`"stream":true`), []byte(`"stream":false,"tool_choice":"none"`), 1)
	Handler(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", bytes.NewReader(body)))
	require.Contains(t, w.Body.String(), "no tool is offered")
}

func TestTextHasExactlyTheBytes(t *testing.T) {
	for _, n := range []string{"0", "1", "23", "24", "25", "1000 bytes", "20000", "1234567"} {
		a := ask(modelEcho, "TEXT: "+n).get(t)
		var want int
		for _, d := range strings.Fields(n)[0] {
			want = want*10 + int(d-'0')
		}
		require.Len(t, a.text, want)
		require.True(t, utf8.ValidString(a.text))
		require.Equal(t, a.text, ask(modelTour, "TEXT: "+n).get(t).text)
		require.LessOrEqual(t, a.deltas, 2*maxDeltas+2)
	}
	require.Len(t, ask(modelEcho, "THINK: 300 bytes").get(t).thought, 300)
}

func TestModelsByThemselves(t *testing.T) {
	const prompt = "Grüße <b>\u2028\n line 2  "
	require.Equal(t, prompt, ask(modelEcho, prompt).get(t).text)
	require.Contains(t, ask(modelEcho, " ").get(t).text, "empty")
	a := ask(modelThink, prompt).get(t)
	require.Equal(t, prompt, a.text)
	require.Contains(t, a.thought, "script")
	a = ask(modelEcho, "THINK: so\nhello").get(t)
	require.Equal(t, []string{"hello", "so"}, []string{a.text, a.thought})
	require.Equal(t, "No image was received.", ask(modelVision, "look").get(t).text)
}

func TestIdsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		a := ask(modelEcho, "RUN: a").get(t)
		require.False(t, seen[a.id] || seen[a.callID])
		seen[a.id], seen[a.callID] = true, true
	}
}

func TestImages(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 64, 32))))
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
	imagePart := func(url string) map[string]any {
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}}
	}
	prompt := func(text string, urls ...string) *chat {
		c := ask(modelVision, "")
		parts := []any{map[string]any{"type": "text", "text": text}}
		for _, u := range urls {
			parts = append(parts, imagePart(u))
		}
		c.messages[len(c.messages)-1]["content"] = parts
		return c
	}
	text := prompt("IMAGE:", url, "data:image/gif;base64,R0lG", "https://example.com/a.png", "data:image/png;base64,!!", strings.Replace(url, "png", "jpeg", 1)).get(t).text
	require.Contains(t, text, "Images received: 5\n")
	require.Regexp(t, "1\\. `image/png`, [0-9]+ bytes, 64×32 pixels, sha256 [0-9a-f]{64}\n", text)
	require.Contains(t, text, "2. `image/gif` (looks like text/plain; charset=utf-8), 3 bytes, sha256")
	require.Contains(t, text, "3. not sent as base64 data")
	require.Contains(t, text, "4. declared as `image/png`, but its base64 is damaged")
	require.Contains(t, text, "5. `image/jpeg` (looks like image/png)")
	require.Contains(t, prompt("what is it?", url).get(t).text, "64×32")
	require.EqualValues(t, imageTokens, prompt("", url).get(t).usage.PromptTokens-prompt("").get(t).usage.PromptTokens)

	// What Pi puts in place of an image that it leaves out is no part of a command.
	c := prompt("RUN: ls")
	last := c.messages[len(c.messages)-1]
	last["content"] = append(last["content"].([]any), map[string]any{"type": "text", "text": "(image omitted: model does not support images)"})
	require.Equal(t, `{"command":"ls"}`, c.get(t).args)

	// The images of a tool result come in a user message of their own.
	c = prompt("TOOL: read {\"path\":\"a.png\"}\nIMAGE:")
	a := c.get(t)
	c.called(a.callID, a.tool, a.args, "Read image file [image/png]")
	c.messages = append(c.messages, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": toolImages}, imagePart(url)}})
	text = c.get(t).text
	require.True(t, strings.HasPrefix(text, "Read image file [image/png]\nImages received: 1\n"), text)
}

func TestSummary(t *testing.T) {
	c := &chat{model: modelTour, stream: true}
	c.add("system", "You are a context summarization assistant.")
	c.add("user", "<conversation>\n[User]: RUN: ls\nRUN: again\n\n[Assistant]: a b\n\n[User]: next\n</conversation>\n\nThe messages above are a conversation to summarize.")
	a := c.get(t)
	require.Contains(t, a.text, "## Goal\n- RUN: ls\n- next\n")
	require.Contains(t, a.text, "no AI")
	s, err := parseScript(a.text)
	require.NoError(t, err)
	require.Empty(t, s.directives)

	long := &chat{model: modelTour, stream: true}
	long.add("user", "<conversation>\n"+strings.Repeat("[User]: "+strings.Repeat("é", 500)+"\n\n", 100)+"</conversation>")
	require.Less(t, len(long.get(t).text), 4000)
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := ask(modelEcho, "SLOW: 250\nTEXT: 100").get(t)
		require.Len(t, a.text, 100)
		// The first delta holds the role, the last the finish reason.
		require.Equal(t, time.Duration(a.deltas-2)*250*time.Millisecond, time.Since(start))
		require.GreaterOrEqual(t, a.deltas, 6)

		start = time.Now()
		a = ask(modelEcho, "SLOW: 100\nRUN: ls").get(t)
		require.Equal(t, time.Duration(a.deltas-2)*100*time.Millisecond, time.Since(start))
	})
}

func TestCancelEndsSlowAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			Handler(Options{}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions",
				bytes.NewReader(ask(modelEcho, "SLOW: 60000\nTEXT: 1000").body(t))))
		}()
		time.Sleep(90 * time.Second)
		cancel()
		<-done
		require.Equal(t, 90*time.Second, time.Since(start))
		require.NotContains(t, w.Body.String(), "[DONE]")
		require.Contains(t, w.Body.String(), filler[:10])
	})
}
