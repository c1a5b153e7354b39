package sessions

import (
	"bufio"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ExportOptions choose what an export has.
type ExportOptions struct {
	// Leaf is the entry that the conversation leads to, on one way alone; "" is the whole
	// file: the way to Pi's own leaf, with all branches.
	Leaf string
	// Limit bounds each text, in bytes; 0 is no limit. What is cut says so. With it,
	// pictures of more than maxPicture are left out.
	Limit int
	// Clean makes text safe for where it goes. Without it Markdown has texts as they are;
	// HTML is escaped, and text has no control characters, in any case.
	Clean func(string) string
}

// maxPicture is the base64 that an export with a limit shows as one picture.
const maxPicture = 8 << 20

// maxNest is how deep an export puts branches into branches; deeper ones come at its end.
// Browsers flatten what nests some hundred levels deep.
const maxNest = 16

func (o ExportOptions) text(s string) string {
	if o.Limit > 0 && len(s) > o.Limit {
		start := cut(s, o.Limit)
		s = fmt.Sprintf("%s\n[cut: %d bytes more]", start, len(s)-len(start))
	}
	if o.Clean != nil {
		s = o.Clean(s)
	}
	return s
}

// maxLabel bounds what stands on one line.
const maxLabel = 2 << 10

// line is a text that has to stay on one line.
func (o ExportOptions) line(s string) string {
	return o.text(strings.Join(strings.Fields(cut(s, maxLabel)), " "))
}

// withoutControls leaves no character that a terminal obeys, or that turns the direction
// of text that follows.
func withoutControls(s string) string {
	if strings.IndexFunc(s, isControl) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

func isControl(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return unicode.IsControl(r)
}

// speakers are the headings of turns.
var speakers = map[string]string{
	RoleUser: "User", RoleAssistant: "Pi", RoleToolResult: "Tool", RoleBash: "User", RoleCustom: "Extension",
}

// fact is a line of an export's head.
type fact struct{ name, value string }

// headOf is what every export begins with.
func (f *File) headOf(o ExportOptions) (title string, facts []fact, err error) {
	info, err := f.Info()
	if err != nil {
		return "", nil, err
	}
	if title = o.line(info.Title()); title == "" {
		title = "Conversation"
	}
	add := func(name, value string) {
		if value = o.line(value); value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	add("Directory", f.header.Cwd)
	add("Started", stamp(f.header.Timestamp))
	add("Last activity", stamp(info.LastActivity))
	add("Model", info.Model())
	add("Thinking", info.Thinking)
	for _, m := range info.Models {
		if len(info.Models) > 1 {
			add("Used", fmt.Sprintf("%s/%s: %d answers, %s", m.Provider, m.ModelID, m.Answers, m.Usage))
		}
	}
	if info.Usage.Total() > 0 {
		add("Usage", info.Usage.String())
	}
	if n := info.Counts.Branches; n > 1 {
		add("Branches", fmt.Sprint(n))
	}
	add("Forked from", f.header.ParentSession)
	return title, facts, nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 MST")
}

// String is the usage as people read it.
func (u Usage) String() string {
	return fmt.Sprintf("%d tokens in, %d out, %d from cache, %d to cache, $%.4f", u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Cost)
}

// describe says what a branch is.
func (b branch) describe() string {
	what := "another beginning"
	switch {
	case b.from.Line > 0 && b.from.ID != "":
		what = "another way on from entry " + cut(b.from.ID, 40)
	case b.from.Line == 0 && b.first.ParentID != "":
		what = "entries whose beginning is lost"
	}
	if at := stamp(b.first.Time); at != "" {
		what += ", " + at
	}
	return what
}

// document is a writer of an export. Its errors stick, and Flush tells them.
type document struct {
	*bufio.Writer
	o ExportOptions
}

func (d document) put(texts ...string) {
	for _, s := range texts {
		_, _ = d.WriteString(s) // the error sticks
	}
}
