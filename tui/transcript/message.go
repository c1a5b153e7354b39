package transcript

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"patio/sessions"
)

// message takes a whole message, be it the end of one that was streamed.
func (t *Transcript) message(m gjson.Result, seq uint64, at time.Time) {
	role := m.Get("role").Str
	t.known = append(t.known, heard{bounded(role, 20), m.Get("timestamp").Int()})
	if len(t.known) > 2*maxItems {
		t.known = slices.Clone(t.known[maxItems:])
	}
	switch role {
	case "user":
		t.userMessage(m, seq, at)
	case "assistant":
		t.assistantMessage(m, seq, at)
	case "toolResult":
		t.toolResult(m, seq, at)
	case "bashExecution":
		i := t.push(&item{kind: kindCall, seq: seq, at: at, call: &call{name: "! bash", main: bounded(m.Get("command").Str, maxArgs), user: true, state: callDone}})
		i.call.setOutput(m.Get("output").Str)
		if code := m.Get("exitCode"); code.Int() != 0 {
			i.call.state, i.call.exit = callFailed, "exit code "+bounded(code.Raw, 20)
		}
		t.answering = false
	case "compactionSummary", "branchSummary":
		title := "what was said before, as a summary"
		if role == "branchSummary" {
			title = "what was said on another branch, as a summary"
		}
		t.summary(title, m.Get("summary").Str, seq, at)
	case "custom", "hookMessage":
		if m.Get("display").Type == gjson.False {
			return
		}
		text, images := content(m.Get("content"))
		t.custom(m.Get("customType").Str, text, images, seq, at)
	}
}

func (t *Transcript) summary(title, text string, seq uint64, at time.Time) {
	i := &item{kind: kindSummary, seq: seq, at: at, sign: "≡", title: bounded(title, maxNote), body: flowOf(text, true)}
	t.bytes += i.weight()
	t.push(i)
	t.answering = false
}

// custom is a message of an extension.
func (t *Transcript) custom(name, text string, images []image, seq uint64, at time.Time) {
	if name == "" {
		name = "extension"
	}
	i := &item{kind: kindText, seq: seq, at: at, speaker: bounded(name, 100), body: flowOf(text, true)}
	t.bytes += i.weight()
	t.push(i)
	t.imageNotes(images, seq)
	t.answering = false
}

func (t *Transcript) imageNotes(images []image, seq uint64) {
	for _, img := range images {
		t.push(&item{kind: kindImage, seq: seq, sign: "▨", title: img.String()})
	}
}

// content is the text of a message and the images in it.
func content(c gjson.Result) (text string, images []image) {
	if c.Type == gjson.String {
		return c.Str, nil
	}
	var parts []string
	c.ForEach(func(_, b gjson.Result) bool {
		switch b.Get("type").Str {
		case "text":
			parts = append(parts, b.Get("text").Str)
		case "image":
			images = append(images, imageOf(b))
		}
		return true
	})
	return strings.Join(parts, "\n"), images
}

func (t *Transcript) userMessage(m gjson.Result, seq uint64, at time.Time) {
	text, images := content(m.Get("content"))
	t.user(text, images, seq, at)
}

func (t *Transcript) user(text string, images []image, seq uint64, at time.Time) {
	i := &item{kind: kindUser, seq: seq, at: at, body: flowOf(text, false), images: images, counts: true}
	t.bytes += i.weight()
	t.push(i)
	t.answering, t.spent = false, spent{began: at}
	if strings.TrimSpace(text) == "" || len(text) > maxPrompt {
		return
	}
	if n := len(t.prompts); n > 0 && t.prompts[n-1] == text {
		return
	}
	t.prompts = append(t.prompts, strings.Clone(text))
	if len(t.prompts) > maxPrompts {
		t.prompts = slices.Clone(t.prompts[len(t.prompts)-maxPrompts:])
	}
}

func (t *Transcript) assistantMessage(m gjson.Result, seq uint64, at time.Time) {
	model := bounded(strings.TrimPrefix(m.Get("provider").Str+"/"+m.Get("model").Str, "/"), 200)
	t.messages++
	index := int64(-1)
	m.Get("content").ForEach(func(_, b gjson.Result) bool {
		index++
		t.block(b, t.blocks[index], model, seq, at)
		return true
	})
	for _, i := range t.blocks {
		t.grown(i, at)
		if i.call != nil && i.call.state == callWritten {
			i.call.end(callStopped, at)
			i.changed()
		}
	}
	t.blocks = map[int64]*item{}
	t.spend(m.Get("usage"))
	t.stopped(m.Get("stopReason").Str, m.Get("errorMessage").Str, seq, at)
}

// block takes one block of a whole message. i is what was streamed of it.
func (t *Transcript) block(b gjson.Result, i *item, model string, seq uint64, at time.Time) {
	switch kind := b.Get("type").Str; kind {
	case "text", "thinking":
		want, text := kindText, b.Get("text").Str
		if kind == "thinking" {
			want, text = kindThinking, b.Get("thinking").Str
			if text == "" && b.Get("redacted").Bool() {
				text = "[redacted by the provider]"
			}
		}
		if strings.TrimSpace(text) == "" {
			return
		}
		if i != nil && i.kind == want {
			t.grown(i, at)
			if !i.body.same(text) {
				t.bytes -= i.body.kept
				i.body = flowOf(text, want == kindText)
				t.bytes += i.body.kept
				i.changed()
			}
			return
		}
		i = &item{kind: want, seq: seq, at: at, body: flowOf(text, want == kindText)}
		t.bytes += i.weight()
		t.say(i, model)
	case "toolCall":
		if i == nil || i.call == nil {
			i = t.say(&item{kind: kindCall, seq: seq, at: at, call: &call{}}, model)
		}
		t.fillCall(i, b)
	case "image":
		t.imageNotes([]image{imageOf(b)}, seq)
	}
}

// toolResult is what the model is told of a call. Live, the call's end came before.
func (t *Transcript) toolResult(m gjson.Result, seq uint64, at time.Time) {
	id := bounded(m.Get("toolCallId").Str, 200)
	i := t.calls[id]
	if i != nil && (i.call.state == callDone || i.call.state == callFailed) {
		return
	}
	if i == nil {
		i = t.push(&item{kind: kindCall, seq: seq, at: at, call: &call{id: id, name: bounded(m.Get("toolName").Str, 200)}})
		t.calls[id] = i
	}
	before := i.weight()
	i.call.setResult(m)
	i.call.state = callDone
	if m.Get("isError").Bool() {
		i.call.state = callFailed
	}
	t.bytes += i.weight() - before
	i.changed()
}

func (t *Transcript) spend(u gjson.Result) {
	t.spent.requests++
	t.spent.input += u.Get("input").Int()
	t.spent.output += u.Get("output").Int()
	t.spent.cached += u.Get("cacheRead").Int()
	t.spent.written += u.Get("cacheWrite").Int()
	t.spent.cost += u.Get("cost.total").Float()
}

// stopped is the end of a message, and mostly of the answer.
func (t *Transcript) stopped(reason, problem string, seq uint64, at time.Time) {
	switch reason {
	case "toolUse":
		return
	case "error":
		if problem == "" {
			problem = "no reason was given"
		}
		i := &item{kind: kindProblem, seq: seq, at: at, title: "✗ the model failed", body: flowOf(problem, false), sign: adviceFor(problem)}
		t.bytes += i.weight()
		t.push(i)
	case "aborted":
		t.push(&item{kind: kindNote, seq: seq, at: at, sign: "■", title: "stopped" + after(": ", bounded(problem, 1000)), grave: &asWarning})
	case "length":
		t.push(&item{kind: kindNote, seq: seq, at: at, sign: "!", title: "the answer was cut off: it reached the model's limit", grave: &asWarning})
	}
	t.cost(at)
}

// cost writes what the answer took.
func (t *Transcript) cost(at time.Time) {
	s := t.spent
	t.spent = spent{}
	if s.input+s.output+s.cached == 0 {
		return
	}
	parts := []string{tokensOf(s.input+s.cached+s.written) + " in", tokensOf(s.output) + " out"}
	if s.cached > 0 {
		parts = append(parts, tokensOf(s.cached)+" of it cached")
		parts[1], parts[2] = parts[2], parts[1]
	}
	if s.cost > 0 {
		parts = append(parts, money(s.cost))
	}
	if s.requests > 1 {
		parts = append(parts, plural(s.requests, "request", "requests"))
	}
	if d := at.Sub(s.began); !s.began.IsZero() && d >= 100*time.Millisecond && d < 24*time.Hour {
		parts = append(parts, spanOf(d))
	}
	t.push(&item{kind: kindCost, at: at, sign: "◇", title: strings.Join(parts, " · ")})
}

func money(usd float64) string {
	if usd < 0.1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// adviceFor says what one can do about a failure of the model.
func adviceFor(problem string) string {
	p := strings.ToLower(problem)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(p, w) })
	}
	switch {
	case has("401", "403", "api key", "api_key", "unauthorized", "authentication", "credential"):
		return "Is the provider's key good? `patio doctor` tells which one is used."
	case has("429", "rate limit", "quota", "overloaded", "529", "503"):
		return "Wait a while and send the message again, or choose another model."
	case has("context length", "context window", "too long", "maximum context", "prompt is too"):
		return "The conversation is too long for the model: /compact shortens it."
	case has("connection error", "fetch failed", "econn", "enotfound", "socket", "network", "timed out", "timeout"):
		return "Was the host refused? The Egress tab shows each attempt."
	}
	return "Send the message again, or choose another model."
}

// replace shows a conversation instead of all that was shown: after a fork or a change of
// session, what came before isn't in it any more.
func (t *Transcript) replace(messages gjson.Result, seq uint64) {
	if !messages.IsArray() || t.shows(messages) {
		return
	}
	streamed, running := t.blocks, t.calls
	spentNow := t.spent
	t.Clear()
	t.given = true
	messages.ForEach(func(_, m gjson.Result) bool {
		at := time.UnixMilli(m.Get("timestamp").Int())
		if m.Get("timestamp").Int() == 0 {
			at = time.Time{}
		}
		t.message(m, seq, at)
		return true
	})
	for id, i := range running {
		if mine := t.calls[id]; mine != nil && i.call.running() {
			mine.call = i.call
			mine.changed()
		}
	}
	if !t.working {
		t.settle(time.Time{})
		return
	}
	for k := int64(0); k < int64(len(streamed)+8); k++ {
		if i := streamed[k]; i != nil {
			i.speaker = ""
			i.changed()
			t.blocks[k] = i
			t.say(i, t.modelName())
		}
	}
	t.spent = spentNow
}

// shows says that the conversation is the one that is shown: other clients ask for it too,
// and what is shown knows more, such as how long calls took.
func (t *Transcript) shows(messages gjson.Result) bool {
	n, same := 0, true
	messages.ForEach(func(_, m gjson.Result) bool {
		same = n < len(t.known) && t.known[n] == heard{m.Get("role").Str, m.Get("timestamp").Int()}
		n++
		return same
	})
	return same && n == len(t.known)
}

// SetHistory shows what was said before the journal, above what is shown.
func (t *Transcript) SetHistory(turns []sessions.Turn) {
	if t.given {
		return
	}
	t.given = true
	if len(turns) == 0 {
		return
	}
	now := New(t.now)
	for _, turn := range turns {
		now.turn(turn)
	}
	now.settle(time.Time{})
	now.push(&item{kind: kindBreak, sign: "↑", title: "what Pi's session file has"})
	if len(t.items) > 0 {
		t.items[0].changed()
	}
	t.items = append(now.items, t.items...)
	t.base -= len(now.items)
	t.bytes += now.bytes
	t.dropped += now.dropped
	t.messages += now.messages
	t.prompts = append(now.prompts, t.prompts...)
	if len(t.prompts) > maxPrompts {
		t.prompts = slices.Clone(t.prompts[len(t.prompts)-maxPrompts:])
	}
	if now.older != nil {
		t.older = now.older
	}
	if len(t.items) > maxItems {
		t.trim(len(t.items) - maxItems)
	}
}

// turn appends an entry of a session file.
func (t *Transcript) turn(u sessions.Turn) {
	if u.Hidden {
		return
	}
	at := u.Entry.Time
	var text []string
	var images []image
	if u.Role == sessions.RoleUser || u.Role == sessions.RoleCustom {
		for _, b := range u.Blocks {
			switch b.Kind {
			case sessions.BlockText:
				text = append(text, b.Text)
			case sessions.BlockImage:
				images = append(images, image{bounded(b.Title, 80), len(b.Text) / 4 * 3})
			default:
			}
		}
		if u.Role == sessions.RoleUser {
			t.user(strings.Join(text, "\n"), images, 0, at)
			return
		}
		t.custom("", strings.Join(text, "\n"), images, 0, at)
		return
	}
	if u.Role == sessions.RoleAssistant {
		t.messages++
	}
	for _, b := range u.Blocks {
		t.turnBlock(u, b, at)
	}
}

func (t *Transcript) turnBlock(u sessions.Turn, b sessions.Block, at time.Time) {
	switch b.Kind {
	case sessions.BlockText, sessions.BlockThinking:
		if strings.TrimSpace(b.Text) == "" {
			return
		}
		kind := kindText
		if b.Kind == sessions.BlockThinking {
			kind = kindThinking
		}
		i := &item{kind: kind, at: at, body: flowOf(b.Text, kind == kindText)}
		t.bytes += i.weight()
		t.say(i, bounded(u.Model, 200))
	case sessions.BlockCall:
		t.turnCall(u, b, at)
	case sessions.BlockImage:
		t.imageNotes([]image{{bounded(b.Title, 80), len(b.Text) / 4 * 3}}, 0)
	case sessions.BlockSummary:
		t.summary(b.Title, b.Text, 0, at)
	case sessions.BlockChange:
		t.push(&item{kind: kindNote, at: at, sign: "·", title: bounded(b.Text, maxNote)})
	case sessions.BlockError:
		if b.Text == "stopped" {
			t.push(&item{kind: kindNote, at: at, sign: "■", title: "stopped", grave: &asWarning})
			return
		}
		t.stopped("error", b.Text, 0, at)
	case sessions.BlockOther:
		t.push(&item{kind: kindNote, at: at, sign: "·", title: bounded(after("", b.Title)+": "+b.Text, 400)})
	}
}

// turnCall appends a call of a session file with its result, which was read already.
func (t *Transcript) turnCall(u sessions.Turn, b sessions.Block, at time.Time) {
	c := &call{name: bounded(b.Title, 200), main: bounded(b.Text, 8<<10), state: callStopped, user: u.Role == sessions.RoleBash}
	if args := gjson.Parse(b.Text); strings.HasPrefix(b.Text, "{") && gjson.Valid(b.Text) {
		c.main = ""
		c.setArgs(args)
	}
	if b.Result != nil {
		blocks, err := b.Result()
		var text []string
		for _, r := range blocks {
			if r.Kind == sessions.BlockImage {
				c.images = append(c.images, image{bounded(r.Title, 80), len(r.Text) / 4 * 3})
				continue
			}
			text = append(text, r.Text)
		}
		if err != nil {
			text = append(text, "the result can't be read: "+err.Error())
		}
		c.setOutput(strings.Join(text, "\n"))
		c.state = callDone
		if b.Failed {
			c.state = callFailed
		}
	}
	i := &item{kind: kindCall, at: at, call: c}
	t.bytes += i.weight()
	if c.user {
		c.name = "! bash"
		t.push(i)
		t.answering = false
		return
	}
	t.say(i, bounded(u.Model, 200))
}
