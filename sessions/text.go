package sessions

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the conversation for a terminal: plain lines, with branches set off by
// a rule before them.
func (f *File) WriteText(w io.Writer, o ExportOptions) error {
	if o.Clean == nil {
		o.Clean = withoutControls
	}
	t := &plain{document: document{bufio.NewWriter(w), o}}
	title, facts, err := f.headOf(o)
	if err != nil {
		return err
	}
	t.put(title, "\n")
	for _, fact := range facts {
		t.put(fmt.Sprintf("  %-14s ", strings.ToLower(fact.name)), fact.value, "\n")
	}
	if err := f.render(t, o.Leaf, maxNest); err != nil {
		return err
	}
	return t.Flush()
}

type plain struct {
	document
	depth int
}

// The marks at the start of lines.
const (
	rule   = "│ "
	spaced = "  "
)

// lines writes a text with what stands before each of its lines.
func (p *plain) lines(before, text string) {
	before = strings.Repeat(rule, p.depth) + before
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		p.put(strings.TrimRight(before+line, " "), "\n")
	}
}

func (p *plain) turn(t Turn) error {
	if who := speakers[t.Role]; who != "" {
		p.lines("", "")
		about := []string{who}
		for _, s := range []string{t.Model, stamp(t.Entry.Time)} {
			if s != "" {
				about = append(about, p.o.line(s))
			}
		}
		p.lines("", "── "+strings.Join(about, " · "))
	}
	if t.Label != "" {
		p.lines("", "[label: "+p.o.line(t.Label)+"]")
	}
	if t.Hidden {
		p.lines("", "[for the model alone]")
	}
	for _, b := range t.Blocks {
		if err := p.block(b); err != nil {
			return err
		}
	}
	if n := len(t.Branches); n > 0 {
		p.lines("", fmt.Sprintf("[%d more way(s) on from here: entry %s]", n, p.o.line(t.Branches[0].ID)))
	}
	return p.Flush()
}

func (p *plain) block(b Block) error {
	switch b.Kind {
	case BlockText:
		p.lines("", p.o.text(b.Text))
	case BlockThinking:
		p.lines("", "[thinking]")
		p.lines(spaced, p.o.text(b.Text))
	case BlockCall:
		return p.call(b)
	case BlockImage:
		p.lines("", "["+imageLine(b, p.o)+"]")
	case BlockSummary:
		p.lines("", "["+p.o.line(b.Title)+"]")
		p.lines(spaced, p.o.text(b.Text))
	case BlockError:
		p.lines("", "error: "+p.o.text(b.Text))
	case BlockChange:
		p.lines("", "["+p.o.line(b.Text)+"]")
	case BlockOther:
		p.lines("", "["+p.o.line(b.Title)+"]")
		p.lines(spaced, p.o.text(b.Text))
	}
	return nil
}

func (p *plain) call(b Block) error {
	mark := "▸ "
	if b.Failed {
		mark = "✗ "
	}
	p.lines(spaced, mark+p.o.line(b.Title))
	if b.Text != "" {
		p.lines(spaced+spaced, p.o.text(b.Text))
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
			p.lines(spaced+rule, imageLine(r, p.o))
		case r.Text != "":
			p.lines(spaced+rule, p.o.text(r.Text))
		}
	}
	return nil
}

func (p *plain) open(b branch) error { return p.later(b) }

func (p *plain) end() error {
	p.depth--
	p.lines("", "└─")
	return p.Flush()
}

func (p *plain) mention(b branch) error {
	p.lines("", fmt.Sprintf("[%s: branch %d, below]", p.o.line(b.describe()), b.number))
	return nil
}

func (p *plain) later(b branch) error {
	p.lines("", "")
	p.lines("", fmt.Sprintf("┌─ branch %d: %s", b.number, p.o.line(b.describe())))
	p.depth++
	return nil
}
