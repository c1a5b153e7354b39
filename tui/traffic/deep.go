package traffic

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"patio/engine/journal"
	"patio/tui/pane"
)

// deep is a search through the lines themselves, which are read again from the journal.
// Lines that come while it runs are looked at as they come.
type deep struct {
	text    string
	needle  needle
	run     int // which search a message must be of
	running bool
	begin   int      // number of the line it began with
	target  uint64   // seq of the last line to read
	done    uint64   // seq up to which lines were read
	hits    []uint64 // seqs up to target, ascending
	later   []uint64 // seqs after it
}

// deepMsg is what was found in one chunk.
type deepMsg struct {
	t    *Traffic
	run  int
	hits []uint64
	last uint64
	err  error
}

func (d *deep) has(seq uint64) bool {
	hits := d.hits
	if seq > d.target {
		hits = d.later
	}
	_, ok := slices.BinarySearch(hits, seq)
	return ok
}

// see looks at a line that came.
func (d *deep) see(r journal.Record) {
	if d.text != "" && r.Seq > d.target && d.needle.in(r.Data) {
		d.later = append(d.later, r.Seq)
	}
}

// stop ends the search and forgets what it found.
func (d *deep) stop() { *d = deep{run: d.run + 1} }

// search begins to look for the filter's text in the lines.
func (t *Traffic) search() tea.Cmd {
	d := &t.deep
	if t.filter.text == "" {
		return nil
	}
	f := t.filter
	f.deep = true
	if d.text != f.text {
		d.stop()
		d.text, d.needle = f.text, newNeedle(f.text)
		if t.index.end > t.index.first {
			d.begin = t.index.first
			d.done = t.index.row(t.index.first).seq - 1
			d.target = t.index.row(t.index.end - 1).seq
			d.running = true
		}
	}
	more := t.nextChunk()
	return tea.Batch(t.setFilter(f), more)
}

// nextChunk reads the next lines and looks into them, outside of Update.
func (t *Traffic) nextChunk() tea.Cmd {
	d := &t.deep
	if !d.running {
		return nil
	}
	from := t.index.find(d.done + 1)
	if from >= t.index.end || d.done >= d.target {
		d.running = false
		return nil
	}
	c := t.index.chunk(from, t.index.find(d.target+1))
	run, needle := d.run, d.needle
	return t.host.Records(c.since, c.limit, nil, func(records []journal.Record, err error) tea.Msg {
		msg := deepMsg{t: t, run: run, last: c.last, err: err}
		for _, r := range records {
			if needle.in(r.Data) {
				msg.hits = append(msg.hits, r.Seq)
			}
		}
		return msg
	})
}

func (t *Traffic) searched(msg deepMsg) tea.Cmd {
	d := &t.deep
	if msg.t != t || msg.run != d.run || !d.running {
		return nil
	}
	if msg.err != nil {
		cmd := t.leaveSearch()
		return tea.Batch(cmd, pane.Failed(fmt.Errorf("search the journal: %w", msg.err)))
	}
	d.hits = append(d.hits, msg.hits...)
	d.done = msg.last
	more := t.nextChunk()
	return tea.Batch(t.advance(), more)
}

// leaveSearch goes back to what the summaries say.
func (t *Traffic) leaveSearch() tea.Cmd {
	t.deep.stop()
	f := t.filter
	f.deep = false
	return t.setFilter(f)
}

// progress is how much of the lines was read, of a hundred.
func (t *Traffic) progress() int {
	d := &t.deep
	from, to := t.index.find(d.done+1), t.index.find(d.target+1)
	if to <= t.index.first {
		return 100
	}
	begin := max(d.begin, t.index.first)
	return 100 * (from - begin) / max(to-begin, 1)
}
