package sessions

import (
	"crypto/sha256"
	"encoding/hex"
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

// The types of entries that Pi writes. Others are kept, and shown as what they are.
const (
	TypeMessage       = "message"
	TypeModelChange   = "model_change"
	TypeThinking      = "thinking_level_change"
	TypeCompaction    = "compaction"
	TypeBranchSummary = "branch_summary"
	TypeCustom        = "custom"
	TypeCustomMessage = "custom_message"
	TypeLabel         = "label"
	TypeSessionInfo   = "session_info"
)

// The roles of messages.
const (
	RoleUser       = "user"
	RoleAssistant  = "assistant"
	RoleToolResult = "toolResult"
	RoleBash       = "bashExecution"
	RoleCustom     = "custom"
	RoleBranch     = "branchSummary"
	RoleCompaction = "compactionSummary"
)

// Entry is where one entry is in the file, and its place in the tree. An id longer than
// Pi would ever write is kept as a digest.
type Entry struct {
	Index    int   // in Entries
	Line     int   // from 1
	Offset   int64 // in bytes
	Length   int   // without the line end
	ID       string
	ParentID string
	Type     string
	Role     string    // of a message
	Time     time.Time // zero when the entry has none that can be read

	call   string // that a tool's result is for
	failed bool   // a tool's result that is an error
	images bool   // its content has some
}

// record is one line's object: its members as JSON.parse takes them, so that of two with
// one name the last counts. Its strings share memory with the line.
type record struct {
	typ, id, parent, timestamp, version, cwd, parentSession gjson.Result
	message, content, usage, name, label, target            gjson.Result
}

func parseRecord(text string) record {
	var r record
	gjson.Parse(text).ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			r.typ = v
		case "id":
			r.id = v
		case "parentId":
			r.parent = v
		case "timestamp":
			r.timestamp = v
		case "version":
			r.version = v
		case "cwd":
			r.cwd = v
		case "parentSession":
			r.parentSession = v
		case "message":
			r.message = v
		case "content":
			r.content = v
		case "usage":
			r.usage = v
		case "name":
			r.name = v
		case "label":
			r.label = v
		case "targetId":
			r.target = v
		}
		return true
	})
	return r
}

func (r record) header() Header {
	h := Header{Version: 1, ID: strings.Clone(r.id.Str), Cwd: strings.Clone(r.cwd.Str), ParentSession: strings.Clone(r.parentSession.Str), Timestamp: parseTime(r.timestamp)}
	switch r.version.Type {
	case gjson.Number:
		h.Version = int(r.version.Int())
	case gjson.String:
		// JavaScript compares a text with a number by its value.
		h.Version = int(gjson.Parse(r.version.Str).Int())
	default:
	}
	return h
}

// isHeader says whether Pi takes the line, as the first of its file, for a header.
func (r record) isHeader() bool { return r.typ.Str == "session" && r.id.Type == gjson.String }

// idOf is an id as a key. Pi's ids are texts; a number is one too for JavaScript's maps,
// and nothing else finds its way back.
func idOf(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return key(v.Str)
	case gjson.Number:
		if v.Num == 0 {
			return "" // as a parent it is none
		}
		return key(v.Raw)
	default:
		return ""
	}
}

// maxKey is far longer than any id, role or type of Pi's; the ids of tool calls have 450
// characters at some providers.
const maxKey = 1 << 10

// key copies a text that is to be kept, or a digest of one that would only fill memory.
func key(s string) string {
	if len(s) <= maxKey {
		return strings.Clone(s)
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func parseTime(v gjson.Result) time.Time {
	if v.Type != gjson.String {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v.Str)
	if err != nil {
		return time.Time{}
	}
	return t
}
