package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"
	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/figure"
	"patio/tui/jsontree"
	"patio/tui/pane"
)

// detail is the line that is open.
type detail struct {
	number  int
	seq     uint64
	run     int
	loading bool
	err     error
	tree    *jsontree.Tree
}

// lineMsg is a line that was read to be opened.
type lineMsg struct {
	t   *Traffic
	run int
	doc *jsontree.Document
	err error
}

var errGone = errors.New("the journal doesn't have this record any more")

// content is what a record is opened and copied as: the line itself when it is one.
func content(r journal.Record) []byte {
	switch r.Type {
	case api.RecordRPC:
		if raw, ok := line(r.Data); ok {
			return raw
		}
		return []byte(gjson.GetBytes(r.Data, "text").String())
	case api.RecordStderr:
		return []byte(gjson.GetBytes(r.Data, "text").String())
	}
	return r.Data
}

// open reads the line under the cursor and shows it, and tells the other tabs.
func (t *Traffic) open() tea.Cmd {
	read := t.read()
	if read == nil {
		return nil
	}
	return tea.Batch(read, pane.Focus(pane.FocusMsg{From: name, Seq: t.detail.seq}))
}

func (t *Traffic) read() tea.Cmd {
	i := t.table.Cursor()
	if i < 0 || i >= len(t.list.entries) {
		return nil
	}
	number := int(t.list.entries[i].first)
	r := t.index.row(number)
	run := 1
	if t.detail == nil {
		t.detail = &detail{tree: jsontree.New()}
		t.detail.tree.SetStyles(t.styles)
		t.detail.tree.SetName("the line")
	} else {
		run = t.detail.run + 1
		t.detail.tree.Set(nil)
	}
	t.detail.number, t.detail.seq, t.detail.run, t.detail.loading, t.detail.err = number, r.seq, run, true, nil
	t.layout()
	seq := r.seq
	return t.host.Records(seq-1, 1, nil, func(records []journal.Record, err error) tea.Msg {
		msg := lineMsg{t: t, run: run, err: err}
		switch {
		case err != nil:
		case len(records) == 0 || records[0].Seq != seq:
			msg.err = errGone
		default:
			msg.doc = jsontree.Load(content(records[0]))
		}
		return msg
	})
}

func (t *Traffic) lineRead(msg lineMsg) tea.Cmd {
	if msg.t != t || t.detail == nil || msg.run != t.detail.run {
		return nil
	}
	t.detail.loading, t.detail.err = false, msg.err
	if msg.err == nil {
		t.detail.tree.Show(msg.doc)
	}
	return nil
}

// close puts the open line away, with the memory that it took.
func (t *Traffic) close() {
	t.detail = nil
	t.layout()
}

func (d *detail) mouse(m tea.MouseClickMsg, wide bool, listWidth int) tea.Cmd {
	m.Y -= 2 // the chips, and the title
	if wide {
		m.X -= listWidth + 1
	}
	return d.tree.Update(m)
}

// maxCopy bounds what goes into the clipboard from a run of lines.
const maxCopy = 4 << 20

// copy puts the line under the cursor into the clipboard, or all lines of a run.
func (t *Traffic) copy() tea.Cmd {
	i := t.table.Cursor()
	if i < 0 || i >= len(t.list.entries) {
		return nil
	}
	e := t.list.entries[i]
	if e.kind == folded || e.kind == opened {
		if e.size > maxCopy {
			return pane.Notice(pane.Warning, fmt.Sprintf("%s are too much for the clipboard: e exports what is shown", figure.Bytes(int64(e.size))))
		}
		write := t.lines(t.filter, max(int(e.first), t.index.first), int(e.last)+1, func(w io.Writer, r journal.Record) error {
			_, err := w.Write(append(bytes.TrimSpace(content(r)), '\n'))
			return err
		}, "message_update")
		what := fmt.Sprintf("%d lines", e.n)
		return func() tea.Msg {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				return pane.ErrorMsg{Err: err}
			}
			return pane.CopyMsg{Text: b.String(), What: what}
		}
	}
	seq := t.index.row(int(e.first)).seq
	return t.host.Records(seq-1, 1, nil, func(records []journal.Record, err error) tea.Msg {
		if err == nil && (len(records) == 0 || records[0].Seq != seq) {
			err = errGone
		}
		if err != nil {
			return pane.ErrorMsg{Err: fmt.Errorf("copy the line: %w", err)}
		}
		return pane.CopyMsg{Text: string(content(records[0])), What: "the line"}
	})
}

// writer writes the records that a filter lets through, one a line.
func (t *Traffic) writer(f filter, from, to int) func(io.Writer) error {
	return t.lines(f, from, to, func(w io.Writer, r journal.Record) error {
		b, err := encode(r)
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	}, "")
}

// encode keeps the record's data as it is: the encoder would escape what HTML uses.
func encode(r journal.Record) ([]byte, error) {
	data := r.Data
	r.Data = json.RawMessage("0")
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record %d: %w", r.Seq, err)
	}
	return append(append(bytes.TrimSuffix(b, []byte("0}")), data...), '}'), nil
}

// page is records as they were read outside of Update.
type pageMsg struct {
	records []journal.Record
	err     error
}

// lines returns what gives each record of a range of lines that a filter lets through to
// put. It blocks, and touches nothing of the pane: what it needs is copied now.
func (t *Traffic) lines(f filter, from, to int, put func(io.Writer, journal.Record) error, only string) func(io.Writer) error {
	plan := t.index.plan(from, to)
	host := t.host
	return func(w io.Writer) error {
		match := newMatch(f)
		for _, c := range plan {
			read := host.Records(c.since, c.limit, nil, func(records []journal.Record, err error) tea.Msg { return pageMsg{records, err} })
			msg, ok := read().(pageMsg)
			if !ok {
				return errors.New("the journal can't be read any more")
			}
			if msg.err != nil {
				return fmt.Errorf("read the journal: %w", msg.err)
			}
			for _, r := range msg.records {
				if d := describe(r); (only == "" || d.typ == only) && match(r, d) {
					if err := put(w, r); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
}

// newMatch is what a filter says of a record by itself, without an index.
func newMatch(f filter) func(journal.Record, described) bool {
	text, deep := jsontree.NewMatcher(f.text), newNeedle(f.text)
	return func(r journal.Record, d described) bool {
		if !f.admits(&row{bits: pack(d.class, d.way, d.failed)}) {
			return false
		}
		if f.text == "" {
			return true
		}
		found := text.Index([]byte(d.summary)) >= 0 || text.Index([]byte(cut(d.typ, maxType))) >= 0 || f.deep && deep.in(r.Data)
		return found != f.invert
	}
}
