package sessions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Version is the newest version of the format that this package knows all about.
const Version = 3

// Header is the first line of a session file.
type Header struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	// Cwd is the directory that Pi works in when it goes on with the file, whatever its
	// process was started in.
	Cwd           string    `json:"cwd"`
	Timestamp     time.Time `json:"timestamp"`
	ParentSession string    `json:"parentSession,omitempty"`
}

// Entry is where one entry is in the file, and its place in the tree.
type Entry struct {
	Line     int   // from 1
	Offset   int64 // in bytes
	Length   int   // without the line end
	ID       string
	ParentID string
	Type     string
	Role     string // of a message
}

// File is a session file that has been read once. Bodies of entries stay on disk: memory
// is bounded by the number of entries, not by their size.
type File struct {
	f       *os.File
	header  Header
	hasHead bool
	entries []Entry
	byID    map[string]int
	notes   []Problem // found while reading
}

// Open reads a file's lines and keeps it open for Body. Lines that aren't entries are
// noted and passed over, as Pi does.
func Open(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{f: r, byID: map[string]int{}}
	if err := f.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), r.Close())
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// Header is the file's header, the zero value if it has none.
func (f *File) Header() Header { return f.header }

// Entries are the file's entries in the order of its lines. They are the File's own.
func (f *File) Entries() []Entry { return f.entries }

// Body reads an entry's line.
func (f *File) Body(e Entry) ([]byte, error) {
	b := make([]byte, e.Length)
	if _, err := f.f.ReadAt(b, e.Offset); err != nil {
		return nil, fmt.Errorf("read line %d: %w", e.Line, err)
	}
	return b, nil
}

func (f *File) read() error {
	lines := newLineReader(f.f)
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f.line(l)
	}
}

// byteOrderMark starts files that some editors have saved.
var byteOrderMark = []byte("\xef\xbb\xbf")

func (f *File) line(l line) {
	text := l.text
	if l.number == 1 && bytes.HasPrefix(text, byteOrderMark) {
		f.note(l.number, Fatal, "a byte order mark stands before the header: Pi takes the file for none of its own")
		text = text[len(byteOrderMark):]
	}
	trimmed := bytes.TrimSpace(text)
	switch {
	case !l.ended:
		f.note(l.number, Repairable, "the last line has no line end: what Pi appends would be glued to it")
	case bytes.HasSuffix(text, []byte("\r")):
		f.noteOnce(l.number, Note, "lines end in CR LF")
	}
	if len(trimmed) == 0 {
		return
	}
	if bytes.IndexByte(trimmed, 0) >= 0 || !gjson.ValidBytes(trimmed) || trimmed[0] != '{' {
		severity := Note
		if !l.ended {
			severity = Repairable
		}
		f.note(l.number, severity, "not a JSON object: it is passed over")
		return
	}
	typ := gjson.GetBytes(trimmed, "type").Str
	if typ == "session" {
		f.head(l.number, trimmed)
		return
	}
	e := Entry{Line: l.number, Offset: l.offset, Length: len(l.text), Type: typ, ID: gjson.GetBytes(trimmed, "id").Str, ParentID: gjson.GetBytes(trimmed, "parentId").Str}
	if typ == "message" {
		e.Role = gjson.GetBytes(trimmed, "message.role").Str
		if e.Role == "hookMessage" { // its name until version 2
			e.Role = "custom"
		}
	}
	if !f.hasHead {
		f.noteOnce(l.number, Fatal, "no header comes first: this isn't a session of Pi's")
	}
	if f.header.Version < 2 {
		// Without ids the order of lines is the tree.
		e.ID = fmt.Sprintf("line-%d", e.Line)
		if n := len(f.entries); n > 0 {
			e.ParentID = f.entries[n-1].ID
		}
	}
	if e.ID == "" {
		f.note(l.number, Note, "an entry without an id")
	} else if first, twice := f.byID[e.ID]; twice {
		f.note(l.number, Fatal, fmt.Sprintf("the id %q is also that of line %d", e.ID, f.entries[first].Line))
	} else {
		f.byID[e.ID] = len(f.entries)
	}
	f.entries = append(f.entries, e)
}

func (f *File) head(number int, text []byte) {
	if f.hasHead {
		f.note(number, Note, "a second header: it is passed over")
		return
	}
	f.hasHead = true
	h := gjson.ParseBytes(text)
	f.header = Header{Version: 1, ID: h.Get("id").Str, Cwd: h.Get("cwd").Str, ParentSession: h.Get("parentSession").Str}
	if v := h.Get("version"); v.Exists() {
		f.header.Version = int(v.Int())
	}
	if t, err := time.Parse(time.RFC3339Nano, h.Get("timestamp").Str); err == nil {
		f.header.Timestamp = t
	}
	if f.header.ID == "" {
		f.note(number, Fatal, "the header has no id: Pi takes the file for none of its own")
	}
	if f.header.Version > Version {
		f.note(number, Note, fmt.Sprintf("version %d is newer than %d: it is shown as far as it is understood", f.header.Version, Version))
	}
}

// Path is the way from the root to the leaf, which is the last entry: what Pi goes on
// with. A circle ends it.
func (f *File) Path() []Entry {
	if len(f.entries) == 0 {
		return nil
	}
	return f.pathTo(len(f.entries) - 1)
}

func (f *File) pathTo(at int) []Entry {
	var path []Entry
	seen := map[int]bool{}
	for ok := true; ok && !seen[at]; {
		seen[at] = true
		e := f.entries[at]
		path = append(path, e)
		if e.ParentID == "" {
			break
		}
		at, ok = f.byID[e.ParentID]
	}
	slices.Reverse(path)
	return path
}

// Info is what a conversation says about itself.
type Info struct {
	Name     string // the last one given
	Provider string
	ModelID  string
	Thinking string
	Messages int
	// First is the text of the first message of the user's, Last that of the last one.
	First, Last string
}

// Model is the model as `--model` takes it, "" when there is none.
func (i Info) Model() string {
	if i.Provider == "" || i.ModelID == "" {
		return ""
	}
	return i.Provider + "/" + i.ModelID
}

// Title is what Pi lists the session as: its name, or else how it began.
func (i Info) Title() string {
	if i.Name != "" {
		return i.Name
	}
	return i.First
}

// Info reads the entries that tell: names anywhere in the file, and the model, thinking
// level and messages on the way to the leaf.
func (f *File) Info() (Info, error) {
	var i Info
	for _, e := range f.entries {
		if e.Type != "session_info" {
			continue
		}
		b, err := f.Body(e)
		if err != nil {
			return i, err
		}
		i.Name = strings.TrimSpace(gjson.GetBytes(b, "name").Str)
	}
	for _, e := range f.Path() {
		switch {
		case e.Type == "model_change", e.Type == "thinking_level_change":
		case e.Type == "message" && (e.Role == "user" || e.Role == "assistant"):
			i.Messages++
		default:
			continue
		}
		b, err := f.Body(e)
		if err != nil {
			return i, err
		}
		switch {
		case e.Type == "model_change":
			i.Provider, i.ModelID = gjson.GetBytes(b, "provider").Str, gjson.GetBytes(b, "modelId").Str
		case e.Type == "thinking_level_change":
			i.Thinking = gjson.GetBytes(b, "thinkingLevel").Str
		case e.Role == "assistant":
			i.Provider, i.ModelID = gjson.GetBytes(b, "message.provider").Str, gjson.GetBytes(b, "message.model").Str
		default:
			text := userText(gjson.GetBytes(b, "message.content"))
			if i.First == "" {
				i.First = text
			}
			i.Last = text
		}
	}
	return i, nil
}

// userText joins the text of a message's blocks, or takes the text that it is.
func userText(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var parts []string
	for _, block := range content.Array() {
		if block.Get("type").Str == "text" {
			parts = append(parts, block.Get("text").Str)
		}
	}
	return strings.Join(parts, " ")
}
