package sessions

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// ExportOptions choose what an export has.
type ExportOptions struct {
	// Leaf is the entry that the conversation leads to; "" is Pi's own leaf.
	Leaf string
	// Limit bounds a tool's result, thinking and summaries, in bytes; 0 is no limit. What
	// is cut says so.
	Limit int
	// Clean makes text safe for where it goes; nil leaves it as it is.
	Clean func(string) string
}

func (o ExportOptions) text(s string) string {
	if o.Limit > 0 && len(s) > o.Limit {
		cut := o.Limit
		for cut > 0 && s[cut]&0xc0 == 0x80 { // not within a character
			cut--
		}
		s = fmt.Sprintf("%s\n[cut: %d bytes more]", s[:cut], len(s)-cut)
	}
	if o.Clean != nil {
		s = o.Clean(s)
	}
	return s
}

// line is a text that has to stay on one line.
func (o ExportOptions) line(s string) string {
	return o.text(strings.Join(strings.Fields(s), " "))
}

// WriteMarkdown writes the conversation as Markdown.
func (f *File) WriteMarkdown(w io.Writer, o ExportOptions) error {
	out := bufio.NewWriter(w)
	info, err := f.Info()
	if err != nil {
		return err
	}
	title := o.line(info.Title())
	if title == "" {
		title = "Conversation"
	}
	fmt.Fprintf(out, "# %s\n\n", title)
	fmt.Fprintf(out, "- Directory: %s\n- Started: %s\n- Model: %s\n", o.line(f.header.Cwd), f.header.Timestamp.Format("2006-01-02 15:04:05 MST"), o.line(info.Model()))
	if n := len(f.Leaves()); n > 1 {
		fmt.Fprintf(out, "- Branches: %d; this is one of them\n", n)
	}
	err = f.Conversation(o.Leaf, func(t Turn) error {
		writeMarkdownTurn(out, t, o)
		return out.Flush()
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// speakers are the headings of turns.
var speakers = map[string]string{"user": "User", "assistant": "Pi", "toolResult": "Tool", "bashExecution": "User"}

func writeMarkdownTurn(w io.Writer, t Turn, o ExportOptions) {
	if who := speakers[t.Role]; who != "" {
		fmt.Fprintf(w, "\n## %s\n", who)
	}
	for _, b := range t.Blocks {
		switch b.Kind {
		case BlockText:
			fmt.Fprintf(w, "\n%s\n", o.text(b.Text))
		case BlockThinking:
			fmt.Fprintf(w, "\n> *Thinking*\n>\n> %s\n", strings.ReplaceAll(o.text(b.Text), "\n", "\n> "))
		case BlockCall:
			state := ""
			if b.Failed {
				state = ", which failed"
			}
			fmt.Fprintf(w, "\n**%s**%s\n\n%s", o.line(b.Title), state, fenced(o.text(b.Text)))
			if b.Result != nil && b.Result.Text != "" {
				fmt.Fprintf(w, "\n%s", fenced(o.text(b.Result.Text)))
			}
		case BlockImage:
			fmt.Fprintf(w, "\n*Image, %s, %d bytes*\n", o.line(b.Title), len(b.Text)*3/4)
		case BlockSummary:
			fmt.Fprintf(w, "\n*%s*\n\n%s\n", o.line(b.Title), o.text(b.Text))
		case BlockError:
			fmt.Fprintf(w, "\n**Error:** %s\n", o.line(b.Text))
		case BlockChange:
			fmt.Fprintf(w, "\n*%s*\n", o.line(b.Text))
		case BlockOther:
			fmt.Fprintf(w, "\n*%s*\n\n%s", o.line(b.Title), fenced(o.text(b.Text)))
		}
	}
	if n := len(t.Branches); n > 0 {
		fmt.Fprintf(w, "\n*%d more way(s) on from here: entry %s*\n", n, o.line(t.Branches[0].ID))
	}
}

// fenced puts text in a fence that the text itself can't close.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}
