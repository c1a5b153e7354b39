package sessions

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the conversation as Markdown. Branches follow the way to the leaf,
// each under a heading of its own.
func (f *File) WriteMarkdown(w io.Writer, o ExportOptions) error {
	m := markdown{document{bufio.NewWriter(w), o}}
	title, facts, err := f.headOf(o)
	if err != nil {
		return err
	}
	m.put("# ", title, "\n\n")
	for _, fact := range facts {
		m.put("- ", fact.name, ": ", fact.value, "\n")
	}
	if err := f.render(m, o.Leaf, 0); err != nil {
		return err
	}
	return m.Flush()
}

type markdown struct{ document }

func (m markdown) turn(t Turn) error {
	if who := speakers[t.Role]; who != "" {
		m.put("\n## ", who, "\n")
	}
	if t.Label != "" {
		m.put("\n*Label: ", m.o.line(t.Label), "*\n")
	}
	if t.Hidden {
		m.put("\n*For the model alone*\n")
	}
	for _, b := range t.Blocks {
		if err := m.block(b); err != nil {
			return err
		}
	}
	if n := len(t.Branches); n > 0 {
		m.put(fmt.Sprintf("\n*%d more way(s) on from here: entry %s*\n", n, m.o.line(t.Branches[0].ID)))
	}
	return m.Flush()
}

func (m markdown) block(b Block) error {
	switch b.Kind {
	case BlockText:
		m.put("\n", m.o.text(b.Text), "\n")
	case BlockThinking:
		m.put("\n> *Thinking*\n>\n> ", strings.ReplaceAll(m.o.text(b.Text), "\n", "\n> "), "\n")
	case BlockCall:
		return m.call(b)
	case BlockImage:
		m.put("\n*", imageLine(b, m.o), "*\n")
	case BlockSummary:
		m.put("\n*", m.o.line(b.Title), "*\n\n", m.o.text(b.Text), "\n")
	case BlockError:
		m.put("\n**Error:** ", m.o.line(b.Text), "\n")
	case BlockChange:
		m.put("\n*", m.o.line(b.Text), "*\n")
	case BlockOther:
		m.put("\n*", m.o.line(b.Title), "*\n\n", fenced(m.o.text(b.Text)))
	}
	return nil
}

func (m markdown) call(b Block) error {
	m.put("\n**", m.o.line(b.Title), "**")
	if b.Failed {
		m.put(", which failed")
	}
	m.put("\n")
	if b.Text != "" {
		m.put("\n", fenced(m.o.text(b.Text)))
	}
	if b.Result == nil {
		return nil
	}
	blocks, err := b.Result()
	if err != nil {
		return err
	}
	for _, r := range blocks {
		switch {
		case r.Kind == BlockImage:
			m.put("\n*", imageLine(r, m.o), "*\n")
		case r.Text != "":
			m.put("\n", fenced(m.o.text(r.Text)))
		}
	}
	return nil
}

func (m markdown) open(b branch) error { return m.later(b) }
func (m markdown) end() error          { return m.Flush() }

func (m markdown) mention(b branch) error {
	m.put("\n*", m.o.line(b.describe()), fmt.Sprintf(": branch %d, below*\n", b.number))
	return nil
}

func (m markdown) later(b branch) error {
	m.put(fmt.Sprintf("\n---\n\n# Branch %d: ", b.number), m.o.line(b.describe()), "\n")
	return nil
}

// imageLine stands for a picture where none can be shown.
func imageLine(b Block, o ExportOptions) string {
	return fmt.Sprintf("Image, %s, %d bytes", o.line(b.Title), len(b.Text)*3/4)
}

// fenced puts text in a fence that the text itself can't close.
func fenced(text string) string {
	longest, run := 0, 0
	for i := 0; i < len(text); i++ {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(3, longest+1))
	return fence + "text\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}
