package sessions

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// BlockKind is what a block of a conversation is.
type BlockKind string

// The kinds of blocks.
const (
	BlockText     BlockKind = "text"
	BlockThinking BlockKind = "thinking"
	BlockCall     BlockKind = "call"   // a tool call, or the result of one that isn't there
	BlockImage    BlockKind = "image"  // Text is base64, Title the MIME type
	BlockChange   BlockKind = "change" // of model, thinking level, name or label
	BlockSummary  BlockKind = "summary"
	BlockError    BlockKind = "error"
	BlockOther    BlockKind = "other"
)

// Block is one part of a turn, as it can be shown. Text and Title come from the file as
// they are: whoever shows them makes them safe.
type Block struct {
	Kind  BlockKind
	Title string
	Text  string
	// Result reads what a call gave; it is nil when there is no result. It is read late
	// because one answer can have many calls, and each a long result.
	Result func() ([]Block, error)
	// Failed says that a tool call ended in an error.
	Failed bool
}

// Turn is one entry as it can be shown, with who speaks.
type Turn struct {
	Entry     Entry
	Role      string // user, assistant and so on, or "" for what nobody said
	Timestamp string
	Model     string
	Usage     Usage
	Label     string
	// Hidden is what an extension said to the model alone.
	Hidden bool
	Blocks []Block
	// Branches are other ways on from this entry: the first entries of them.
	Branches []Entry
}

// callFor finds the entry that has the call which e is the result of.
func (f *File) callFor(e Entry) (int, bool) {
	at, ok := f.tree.call[e.Index]
	return at, ok
}

// pairing is which results are shown with their calls.
type pairing struct {
	result map[callOf]int // to each call the entry of its result
	paired map[int]bool
}

type callOf struct {
	entry int
	id    string
}

// pair gives each call one result: of several the one on the way, else, with elsewhere, the
// first. The others are shown where they are.
func (f *File) pair(way []int, elsewhere bool) pairing {
	p := pairing{result: map[callOf]int{}, paired: map[int]bool{}}
	give := func(i int) {
		at, ok := f.tree.call[i]
		call := callOf{at, f.entries[i].call}
		if _, taken := p.result[call]; ok && !taken {
			p.result[call], p.paired[i] = i, true
		}
	}
	for _, i := range way {
		give(i)
	}
	if elsewhere {
		for i := range f.entries {
			give(i)
		}
	}
	return p
}

// Conversation calls do with each turn from the root to an entry, the leaf when leaf is
// "". A tool's result is with its call. Bodies are read one at a time.
func (f *File) Conversation(leaf string, do func(Turn) error) error {
	way, err := f.wayTo(leaf)
	if err != nil {
		return err
	}
	pairs := f.pair(way, false)
	for i, at := range way {
		if pairs.paired[at] {
			continue
		}
		t, err := f.turn(f.entries[at], pairs)
		if err != nil {
			return err
		}
		for _, child := range f.tree.children[at] {
			if i+1 < len(way) && child != way[i+1] {
				t.Branches = append(t.Branches, f.entries[child])
			}
		}
		if len(t.Blocks) == 0 && len(t.Branches) == 0 {
			continue
		}
		if err := do(t); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) wayTo(leaf string) ([]int, error) {
	if leaf == "" {
		return f.tree.way(len(f.entries) - 1), nil
	}
	at, ok := f.byID[key(leaf)]
	if !ok {
		return nil, fmt.Errorf("no entry %q", leaf)
	}
	return f.tree.way(at), nil
}

// Turn is an entry as it can be shown, its calls with their results.
func (f *File) Turn(e Entry) (Turn, error) { return f.turn(e, f.pair(nil, true)) }

func (f *File) turn(e Entry, pairs pairing) (Turn, error) {
	body, err := f.text(e)
	if err != nil {
		return Turn{}, err
	}
	v := gjson.Parse(body)
	t := Turn{Entry: e, Timestamp: v.Get("timestamp").Str, Label: f.Label(e)}
	one := func(kind BlockKind, title, text string) { t.Blocks = []Block{{Kind: kind, Title: title, Text: text}} }
	switch e.Type {
	case TypeMessage:
		f.fillMessage(&t, v.Get("message"), pairs)
	case TypeCustomMessage:
		t.Role, t.Hidden = RoleCustom, !v.Get("display").Bool()
		t.Blocks = contentBlocks(v.Get("content"))
	case TypeModelChange:
		one(BlockChange, "", "model: "+v.Get("provider").Str+"/"+v.Get("modelId").Str)
	case TypeThinking:
		one(BlockChange, "", "thinking: "+v.Get("thinkingLevel").Str)
	case TypeSessionInfo:
		one(BlockChange, "", "name: "+v.Get("name").Str)
	case TypeLabel:
		// It is shown where it points to.
		if _, ok := f.byID[idOf(v.Get("targetId"))]; !ok {
			one(BlockChange, "", "label: "+v.Get("label").Str)
		}
	case TypeCompaction:
		t.Usage.add(v.Get("usage"))
		one(BlockSummary, fmt.Sprintf("compaction of %d tokens", v.Get("tokensBefore").Int()), v.Get("summary").Str)
	case TypeBranchSummary:
		t.Usage.add(v.Get("usage"))
		one(BlockSummary, "summary of another branch", v.Get("summary").Str)
	case TypeCustom:
		// State of an extension: nothing that was said.
	default:
		one(BlockOther, e.Type, body)
	}
	return t, nil
}

func (f *File) fillMessage(t *Turn, m gjson.Result, pairs pairing) {
	t.Role = t.Entry.Role
	switch t.Role {
	case RoleToolResult:
		// Its call isn't here, or has another result.
		blocks := contentBlocks(m.Get("content"))
		t.Usage.add(m.Get("usage"))
		t.Blocks = []Block{{Kind: BlockCall, Title: m.Get("toolName").Str, Failed: t.Entry.failed, Result: func() ([]Block, error) { return blocks, nil }}}
		return
	case RoleBash:
		t.Blocks = []Block{bashBlock(m)}
		return
	case RoleBranch, RoleCompaction:
		title := map[string]string{RoleBranch: "summary of another branch", RoleCompaction: "compaction"}[t.Role]
		t.Blocks = []Block{{Kind: BlockSummary, Title: title, Text: m.Get("summary").Str}}
		return
	case RoleAssistant:
		t.Model = m.Get("provider").Str + "/" + m.Get("model").Str
		t.Usage.add(m.Get("usage"))
	case RoleCustom:
		t.Hidden = m.Get("display").Type == gjson.False
	case RoleUser:
	default:
		t.Blocks = []Block{{Kind: BlockOther, Title: "message of " + t.Role, Text: m.Raw}}
		return
	}
	calls := f.callsOf[t.Entry.Index]
	for _, b := range contentBlocks(m.Get("content")) {
		if b.Kind == BlockCall && len(calls) > 0 {
			if at, ok := pairs.result[callOf{t.Entry.Index, calls[0]}]; ok {
				e := f.entries[at]
				b.Failed, b.Result = e.failed, func() ([]Block, error) { return f.resultOf(e) }
			}
			calls = calls[1:]
		}
		t.Blocks = append(t.Blocks, b)
	}
	if text := m.Get("errorMessage").Str; text != "" {
		t.Blocks = append(t.Blocks, Block{Kind: BlockError, Text: text})
	} else if m.Get("stopReason").Str == "aborted" {
		t.Blocks = append(t.Blocks, Block{Kind: BlockError, Text: "stopped"})
	}
}

func (f *File) resultOf(e Entry) ([]Block, error) {
	body, err := f.text(e)
	if err != nil {
		return nil, err
	}
	return contentBlocks(gjson.Get(body, "message.content")), nil
}

// bashBlock is a command that the user ran.
func bashBlock(m gjson.Result) Block {
	output := []Block{{Kind: BlockText, Text: m.Get("output").Str}}
	more := func(format string, args ...any) {
		output = append(output, Block{Kind: BlockText, Text: fmt.Sprintf(format, args...)})
	}
	code := m.Get("exitCode")
	failed := m.Get("cancelled").Bool() || code.Int() != 0
	switch {
	case m.Get("cancelled").Bool():
		more("[cancelled]")
	case code.Int() != 0:
		more("[exit code %d]", code.Int())
	}
	if m.Get("truncated").Bool() {
		more("[truncated; all of it: %s]", m.Get("fullOutputPath").Str)
	}
	title := "bash, by the user"
	if m.Get("excludeFromContext").Bool() {
		title += ", unseen by the model"
	}
	return Block{Kind: BlockCall, Title: title, Text: m.Get("command").Str, Failed: failed, Result: func() ([]Block, error) { return output, nil }}
}

// contentBlocks reads a message's content: a text, or a list of blocks.
func contentBlocks(content gjson.Result) []Block {
	switch {
	case content.Type == gjson.String:
		return []Block{{Kind: BlockText, Text: content.Str}}
	case content.Type == gjson.Null:
		return nil
	case !content.IsArray():
		return []Block{{Kind: BlockOther, Title: "content", Text: content.Raw}}
	}
	var blocks []Block
	content.ForEach(func(_, c gjson.Result) bool {
		switch c.Get("type").Str {
		case "text":
			blocks = append(blocks, Block{Kind: BlockText, Text: c.Get("text").Str})
		case "thinking":
			text := c.Get("thinking").Str
			if text == "" && c.Get("redacted").Bool() {
				text = "[redacted by the provider]"
			}
			blocks = append(blocks, Block{Kind: BlockThinking, Text: text})
		case "image":
			blocks = append(blocks, Block{Kind: BlockImage, Title: c.Get("mimeType").Str, Text: c.Get("data").Str})
		case "toolCall":
			blocks = append(blocks, Block{Kind: BlockCall, Title: c.Get("name").Str, Text: arguments(c.Get("arguments"))})
		default:
			blocks = append(blocks, Block{Kind: BlockOther, Title: c.Get("type").Str, Text: c.Raw})
		}
		return true
	})
	return blocks
}

// arguments shows a call's arguments: the one that says it all, or their JSON.
func arguments(v gjson.Result) string {
	only, count := "", 0
	v.ForEach(func(name, value gjson.Result) bool {
		count++
		if (name.Str == "command" || name.Str == "path") && value.Type == gjson.String {
			only = value.Str
		}
		return count < 2
	})
	if count == 1 && only != "" {
		return only
	}
	var b strings.Builder
	if err := indentJSON(&b, v.Raw); err != nil {
		return v.Raw
	}
	return b.String()
}

func indentJSON(b *strings.Builder, raw string) error {
	var out any
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		return err
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
