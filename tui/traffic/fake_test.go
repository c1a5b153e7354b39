package traffic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
)

// fakeHost reads records from memory. What a test doesn't use isn't implemented.
type fakeHost struct {
	pane.Host
	records []journal.Record
	err     error
	reads   int
	largest int // records in one read
}

func (h *fakeHost) Records(since uint64, limit int, types []string, done func([]journal.Record, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		h.reads++
		if h.err != nil {
			return done(nil, h.err)
		}
		var found []journal.Record
		for _, r := range h.records {
			if r.Seq > since && len(found) < limit {
				found = append(found, r)
			}
		}
		h.largest = max(h.largest, len(found))
		return done(found, nil)
	}
}

func now() time.Time { return time.Date(2026, 12, 7, 12, 0, 0, 0, time.UTC) }

func newTraffic(t testing.TB, records []journal.Record, width, height int) (*Traffic, *fakeHost) {
	t.Helper()
	h := &fakeHost{records: records}
	tr := New(h, now)
	tr.SetStyles(panetest.Styles(t, themes.DefaultDark))
	tr.SetSize(width, height)
	tr.SetSession(api.Session{ID: "tour"})
	tr.Apply(records)
	return tr, h
}

// rpc is a record of a line of Pi's.
func rpc(seq int, line string) journal.Record { return rpcBy(seq, api.FromPi, line) }

func rpcBy(seq int, d api.Direction, line string) journal.Record {
	return journal.Record{
		Version: 1, Seq: uint64(seq), Session: "tour", Type: api.RecordRPC, Time: now().Add(time.Duration(seq) * time.Millisecond),
		Data: json.RawMessage(fmt.Sprintf(`{"direction":%q,"line":%s}`, d, line)),
	}
}

func record(seq int, typ, data string) journal.Record {
	return journal.Record{Version: 1, Seq: uint64(seq), Session: "tour", Type: typ, Time: now().Add(time.Duration(seq) * time.Millisecond), Data: json.RawMessage(data)}
}

// run gives the pane what its commands say, as the root does, and returns what was for
// the root itself.
func run(t *Traffic, cmd tea.Cmd) []tea.Msg {
	var out []tea.Msg
	queue := []tea.Cmd{cmd}
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		if c == nil {
			continue
		}
		switch msg := c().(type) {
		case nil:
		case tea.BatchMsg:
			queue = append(queue, msg...)
		case pane.CopyMsg, pane.ExportMsg, pane.NoticeMsg, pane.ErrorMsg:
			out = append(out, msg)
		case pane.FocusMsg:
			out = append(out, msg)
			queue = append(queue, t.Update(msg))
		default:
			queue = append(queue, t.Update(msg))
		}
	}
	return out
}

func press(t *Traffic, keys ...string) []tea.Msg {
	var out []tea.Msg
	for _, k := range keys {
		out = append(out, run(t, t.Update(panetest.Key(k)))...)
	}
	return out
}

func write(t *Traffic, text string) {
	for _, r := range text {
		press(t, string(r))
	}
}

// shown is the rows of the list, by type.
func shown(t *Traffic) []string {
	var all []string
	for i := range t.Len() {
		all = append(all, strings.TrimSpace(t.Row(i)[2].Text))
	}
	return all
}
