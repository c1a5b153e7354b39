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
	BlockCall     BlockKind = "call"   // a tool call; Result is its result
	BlockImage    BlockKind = "image"  // Text is base64, Title the MIME type
	BlockChange   BlockKind = "change" // of model, thinking level, name or label
	BlockSummary  BlockKind = "summary"
	BlockError    BlockKind = "error"
	BlockOther    BlockKind = "other"
)

// Block is one part of a turn, as it can be shown. Text and Title come from the file as
// they are: whoever shows them makes them safe.
type Block struct {
	Kind   BlockKind
	Title  string
	Text   string
	Result *Block
	// Failed says that a tool call ended in an error.
	Failed bool
}

// Turn is one entry as it can be shown, with who speaks.
type Turn struct {
	Entry     Entry
	Role      string // user, assistant, or "" for what nobody said
	Timestamp string
	Model     string
	Blocks    []Block
	// Branches are other ways on from this entry: the first entries of them.
	Branches []Entry
}

// Conversation calls f with each turn from the root to an entry, the leaf when leaf is
// "". A tool's result is with its call. Bodies are read one at a time.
func (f *File) Conversation(leaf string, do func(Turn) error) error {
	path := f.Path()
	if leaf != "" {
		at, ok := f.byID[leaf]
		if !ok {
			return fmt.Errorf("no entry %q", leaf)
		}
		path = f.pathTo(at)
	}
	next := map[string]string{}
	for i := 1; i < len(path); i++ {
		next[path[i-1].ID] = path[i].ID
	}
	children := f.children()
	results := map[string]Entry{}
	for _, e := range path {
		if e.Type == "message" && e.Role == "toolResult" {
			b, err := f.Body(e)
			if err != nil {
				return err
			}
			results[gjson.GetBytes(b, "message.toolCallId").Str] = e
		}
	}
	shown := map[string]bool{}
	for _, e := range path {
		b, err := f.Body(e)
		if err != nil {
			return err
		}
		t := Turn{Entry: e, Timestamp: gjson.GetBytes(b, "timestamp").Str}
		for _, child := range children[e.ID] {
			if f.entries[child].ID != next[e.ID] && next[e.ID] != "" {
				t.Branches = append(t.Branches, f.entries[child])
			}
		}
		if e.Type == "message" && e.Role == "toolResult" && shown[gjson.GetBytes(b, "message.toolCallId").Str] {
			continue
		}
		if err := f.fill(&t, b, results, shown); err != nil {
			return err
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

func (f *File) children() map[string][]int {
	children := map[string][]int{}
	for i, e := range f.entries {
		children[e.ParentID] = append(children[e.ParentID], i)
	}
	return children
}

// Leaves are the ends of all branches, in the order of their lines.
func (f *File) Leaves() []Entry {
	children := f.children()
	var leaves []Entry
	for _, e := range f.entries {
		if len(children[e.ID]) == 0 {
			leaves = append(leaves, e)
		}
	}
	return leaves
}

func (f *File) fill(t *Turn, body []byte, results map[string]Entry, shown map[string]bool) error {
	v := gjson.ParseBytes(body)
	change := func(format string, args ...any) {
		t.Blocks = append(t.Blocks, Block{Kind: BlockChange, Text: fmt.Sprintf(format, args...)})
	}
	switch t.Entry.Type {
	case "message":
		return f.fillMessage(t, v.Get("message"), results, shown)
	case "custom_message":
		t.Blocks = append(t.Blocks, contentBlocks(v.Get("content"))...)
	case "model_change":
		change("model: %s/%s", v.Get("provider").Str, v.Get("modelId").Str)
	case "thinking_level_change":
		change("thinking: %s", v.Get("thinkingLevel").Str)
	case "session_info":
		change("name: %s", v.Get("name").Str)
	case "label":
		change("label: %s", v.Get("label").Str)
	case "compaction":
		t.Blocks = append(t.Blocks, Block{Kind: BlockSummary, Title: fmt.Sprintf("compaction of %d tokens", v.Get("tokensBefore").Int()), Text: v.Get("summary").Str})
	case "branch_summary":
		t.Blocks = append(t.Blocks, Block{Kind: BlockSummary, Title: "summary of another branch", Text: v.Get("summary").Str})
	case "custom":
		// State of an extension: nothing that was said.
	default:
		t.Blocks = append(t.Blocks, Block{Kind: BlockOther, Title: t.Entry.Type, Text: string(body)})
	}
	return nil
}

func (f *File) fillMessage(t *Turn, m gjson.Result, results map[string]Entry, shown map[string]bool) error {
	t.Role = t.Entry.Role
	switch t.Role {
	case "toolResult":
		// Its call isn't on this path.
		t.Blocks = append(t.Blocks, Block{Kind: BlockCall, Title: m.Get("toolName").Str, Result: &Block{Kind: BlockText, Text: textOf(m.Get("content"))}, Failed: m.Get("isError").Bool()})
		return nil
	case "bashExecution":
		t.Blocks = append(t.Blocks, Block{Kind: BlockCall, Title: "bash, by the user", Text: m.Get("command").Str, Result: &Block{Kind: BlockText, Text: m.Get("output").Str}})
		return nil
	case "assistant":
		t.Model = m.Get("provider").Str + "/" + m.Get("model").Str
	}
	for _, b := range contentBlocks(m.Get("content")) {
		if b.Kind == BlockCall {
			id := b.Result.Text
			b.Result = nil
			if e, ok := results[id]; ok {
				body, err := f.Body(e)
				if err != nil {
					return err
				}
				r := gjson.GetBytes(body, "message")
				b.Result, b.Failed = &Block{Kind: BlockText, Text: textOf(r.Get("content"))}, r.Get("isError").Bool()
				shown[id] = true
			}
		}
		t.Blocks = append(t.Blocks, b)
	}
	if text := m.Get("errorMessage").Str; text != "" {
		t.Blocks = append(t.Blocks, Block{Kind: BlockError, Text: text})
	}
	return nil
}

// contentBlocks reads a message's content: a text, or a list of blocks. A call has its id
// in Result.Text until its result is found.
func contentBlocks(content gjson.Result) []Block {
	if content.Type == gjson.String {
		return []Block{{Kind: BlockText, Text: content.Str}}
	}
	var blocks []Block
	for _, c := range content.Array() {
		switch c.Get("type").Str {
		case "text":
			blocks = append(blocks, Block{Kind: BlockText, Text: c.Get("text").Str})
		case "thinking":
			blocks = append(blocks, Block{Kind: BlockThinking, Text: c.Get("thinking").Str})
		case "image":
			blocks = append(blocks, Block{Kind: BlockImage, Title: c.Get("mimeType").Str, Text: c.Get("data").Str})
		case "toolCall":
			blocks = append(blocks, Block{Kind: BlockCall, Title: c.Get("name").Str, Text: arguments(c.Get("arguments")), Result: &Block{Text: c.Get("id").Str}})
		default:
			blocks = append(blocks, Block{Kind: BlockOther, Title: c.Get("type").Str, Text: c.Raw})
		}
	}
	return blocks
}

// arguments shows a call's arguments: the one that says it all, or their JSON.
func arguments(v gjson.Result) string {
	fields := v.Map()
	for _, name := range []string{"command", "path"} {
		if f, ok := fields[name]; ok && len(fields) == 1 {
			return f.String()
		}
	}
	var out any
	if json.Unmarshal([]byte(v.Raw), &out) != nil {
		return v.Raw
	}
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return v.Raw
	}
	return string(b)
}

// textOf joins the text of a result's blocks and counts its images.
func textOf(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var parts []string
	for _, b := range contentBlocks(content) {
		switch b.Kind {
		case BlockText:
			parts = append(parts, b.Text)
		case BlockImage:
			parts = append(parts, fmt.Sprintf("[image, %s, %d bytes]", b.Title, len(b.Text)*3/4))
		default:
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}
