package egress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

// desk is a pane with a journal to write to.
type desk struct {
	*Pane
	seq uint64
}

func newDesk() *desk {
	d := &desk{Pane: New(nil, panetest.Clock)}
	d.SetSession(api.Session{ID: "k3v9xq", Phase: api.PhaseReady})
	return d
}

// event applies a decision; fields is its JSON without braces.
func (d *desk) event(after time.Duration, fields string) {
	d.Apply([]journal.Record{d.record(after, fields)})
}

func (d *desk) record(after time.Duration, fields string) journal.Record {
	d.seq++
	at := panetest.Noon.Add(after)
	data := fmt.Sprintf(`{"time":%q,%s}`, at.Format(time.RFC3339Nano), fields)
	return journal.Record{Seq: d.seq, Time: at, Type: api.RecordEgress, Data: json.RawMessage(data)}
}

const (
	dnsModel = `"kind":"dns","verdict":"allow","host":"model.patio.internal","port":53,"protocol":"dns","rule":"service:model.patio.internal","reason":"service_allowed","message":"served by patio itself","count":1`
	model    = `"kind":"connection","id":"c1","verdict":"allow","host":"model.patio.internal","port":80,"protocol":"http","rule":"service:model.patio.internal","reason":"service_allowed","message":"served by patio itself"`
	modelEnd = `"kind":"end","id":"c1","verdict":"allow","host":"model.patio.internal","port":80,"protocol":"http","rule":"service:model.patio.internal","bytes_in":30848,"bytes_out":63865,"count":8,"duration_ms":736`
	npm      = `"kind":"connection","id":"c2","verdict":"allow","host":"registry.npmjs.org","port":443,"protocol":"tls","rule":"registry.npmjs.org:443","reason":"rule_allowed","message":"a rule allows this","address":"104.16.1.34:443","tool_calls":["call_bash_7"]`
	noRule   = `"kind":"dns","verdict":"deny","host":"example.com","port":53,"protocol":"dns","reason":"no_rule","message":"no rule allows this host","count":1,"tool_calls":["call_bash_8"]`
	noRule2  = `"kind":"dns","verdict":"deny","host":"example.com","port":53,"protocol":"dns","reason":"no_rule","message":"no rule allows this host","count":3`
	port     = `"kind":"connection","id":"c3","verdict":"deny","host":"registry.npmjs.org","port":8443,"protocol":"tcp","reason":"port_not_allowed","message":"the host is allowed, but not on this port","count":1,"tool_calls":["call_bash_8"]`
	metadata = `"kind":"connection","verdict":"deny","host":"169.254.169.254","port":80,"protocol":"tcp","reason":"ip_literal","message":"connections to bare addresses are refused: use the host's name","count":2,"tool_calls":["call_bash_9"]`
	udp      = `"kind":"packet","verdict":"deny","host":"8.8.8.8","port":53,"protocol":"udp","reason":"other_dns_server","message":"only the gateway's own DNS may be asked","count":1`
	sni      = `"kind":"connection","id":"c4","verdict":"deny","host":"registry.npmjs.org","port":443,"protocol":"tls","rule":"registry.npmjs.org:443","reason":"tls_sni_mismatch","message":"the TLS ClientHello names another server","count":1`
	private  = `"kind":"connection","id":"c5","verdict":"deny","host":"git.corp.example","port":22,"protocol":"tcp","rule":"git.corp.example:22","reason":"private_address","message":"the name resolves to a private address: a private: rule allows that on purpose","count":1`
	dropped  = `"kind":"dropped","verdict":"deny","count":120`
)

func busy() *desk {
	d := newDesk()
	for i, e := range []string{dnsModel, model, noRule, noRule2, npm, modelEnd, port, metadata, udp, sni, private} {
		d.event(time.Duration(i)*1500*time.Millisecond, e)
	}
	return d
}

func TestGolden(t *testing.T) {
	for name, make := range map[string]func() *desk{
		"empty": newDesk,
		"ended-empty": func() *desk {
			d := newDesk()
			d.SetSession(api.Session{ID: "k3v9xq", Phase: api.PhaseEnded})
			return d
		},
		"busy":         busy,
		"denied":       func() *desk { d := busy(); panetest.Press(d, "d"); return d },
		"hosts":        func() *desk { d := busy(); panetest.Press(d, "o"); return d },
		"filter":       func() *desk { d := busy(); panetest.Press(d, "/", "n", "p", "m"); return d },
		"filter-empty": func() *desk { d := busy(); panetest.Press(d, "/", "z", "z", "enter"); return d },
	} {
		panetest.Golden(t, name, "", func(w, h int, s *style.Styles) string { return panetest.Draw(make().Pane, w, h, s) })
	}
	for name, up := range map[string]int{"details-private": 0, "details-literal": 3, "details-open": 5, "details-dns": 6, "details-ended": 7} {
		panetest.Golden(t, name, "", func(w, h int, s *style.Styles) string {
			d := busy()
			d.SetSize(80, 20)
			for range up {
				panetest.Press(d, "k")
			}
			panetest.Press(d, "enter")
			return panetest.Draw(d.Pane, w, h, s)
		})
	}
	d := newDesk()
	many(d, maxRows+100)
	d.event(0, dropped)
	panetest.Golden(t, "dropped", "", func(w, h int, s *style.Styles) string {
		panetest.Press(d, "g")
		return panetest.Draw(d.Pane, w, h, s)
	})
}

// many applies n refusals of different hosts.
func many(d *desk, n int) {
	records := make([]journal.Record, 0, n)
	for i := range n {
		records = append(records, d.record(time.Duration(i)*time.Millisecond, fmt.Sprintf(`"kind":"dns","verdict":"deny","host":"h%d.example","port":53,"protocol":"dns","reason":"no_rule","message":"no rule allows this host","count":1`, i)))
	}
	d.Apply(records)
}

func TestSums(t *testing.T) {
	d := busy()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(80, 20)
	require.EqualValues(t, 3, d.ledger.allowed, "a name and two connections")
	require.EqualValues(t, 4+1+2+1+1+1, d.ledger.denied)
	require.Equal(t, 13, d.Count())
	require.EqualValues(t, 30848, d.ledger.in)
	require.Len(t, d.ledger.open, 1)
	require.Len(t, d.ledger.rows, 9, "the repeats and the end have none of their own")
	row := d.ledger.rows[1]
	require.False(t, row.open)
	require.Equal(t, 736*time.Millisecond, row.duration)
	require.EqualValues(t, 63865, row.out)
	require.EqualValues(t, 4, d.ledger.rows[2].count, "the refusal without a tool call is the same")
	require.Equal(t, []string{"call_bash_8"}, d.ledger.rows[2].calls)

	d.Apply([]journal.Record{{Type: api.RecordState, Data: json.RawMessage(`{"phase":"ended"}`)}})
	require.Empty(t, d.ledger.open)
	require.True(t, d.ledger.rows[3].lostWithEnd)
	d.event(time.Minute, `"kind":"end","id":"c2","verdict":"allow","host":"registry.npmjs.org","port":443,"bytes_in":5`)
	require.Len(t, d.ledger.rows, 10, "an end whose beginning isn't open is a row")
	require.EqualValues(t, 30853, d.ledger.in)
	require.Equal(t, 13, d.Count(), "and no decision of its own")

	d.Apply([]journal.Record{{Type: api.RecordEgress, Data: json.RawMessage(`7`)}, {Type: "other"}})
	require.Equal(t, 1, d.ledger.unreadable)
	require.Contains(t, panetest.Plain(d.View()), "1 unreadable")
}

func TestConnectionThatTheGatewayEnds(t *testing.T) {
	d := newDesk()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(160, 20)
	d.event(0, npm)
	require.Contains(t, panetest.Plain(d.View()), "● open")
	d.event(time.Second, `"kind":"end","id":"c2","verdict":"deny","host":"registry.npmjs.org","port":443,"reason":"rule_withdrawn","bytes_in":1,"bytes_out":2`)
	require.Contains(t, panetest.Plain(d.View()), "ended: rule withdrawn")
	require.Contains(t, panetest.Plain(d.View()), "1.0s", "the duration, when the end doesn't tell it")
}

func TestDropsTheOldest(t *testing.T) {
	d := newDesk()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(80, 20)
	d.event(0, npm)
	many(d, maxRows-1)
	panetest.Press(d, "g")
	for range 2500 {
		panetest.Press(d, "j")
	}
	selected := d.selected().host
	many(d, 10)
	require.Equal(t, dropRows, d.ledger.dropped)
	require.Equal(t, selected, d.selected().host, "the cursor stays on its row")
	require.Empty(t, d.ledger.open, "what was dropped isn't awaited")
	require.EqualValues(t, 0, d.ledger.host("registry.npmjs.org").open)
	require.Len(t, d.hosts, 0)
	panetest.Press(d, "o")
	require.Len(t, d.hosts, maxHosts+1, "and the others")
	require.EqualValues(t, maxRows+10, d.Count())
	panetest.Press(d, "o", "g")
	require.Nil(t, d.selected(), "the row of the dropped is none")
	require.Contains(t, panetest.Plain(d.View()), "2,000 older ones")
	require.Nil(t, panetest.Press(d, "enter"))
	many(d, dropRows)
	require.Equal(t, 2*dropRows, d.ledger.dropped)
}

func TestFilter(t *testing.T) {
	for text, want := range map[string]int{
		"": 9, "npm": 3, "NPM": 3, "!npm": 6, "npm denied": 2, "call_bash_8": 2, "udp": 1, "rule_allowed": 1, "sni": 1, "104.16": 1, "!": 0, "nothing": 0,
	} {
		t.Run(text, func(t *testing.T) {
			d := busy()
			panetest.Press(d, "/")
			require.True(t, d.Typing())
			d.Update(tea.PasteMsg{Content: text})
			panetest.Press(d, "enter")
			require.False(t, d.Typing())
			require.Len(t, d.shown, want)
			d.event(time.Minute, npm)
			panetest.Press(d, "esc")
			require.False(t, d.Escapes())
			require.Len(t, d.shown, 10)
		})
	}
	d := busy()
	d.SetSize(80, 20)
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	panetest.Press(d, "/", "d", "é")
	require.Equal(t, 5, d.Cursor().X)
	require.Equal(t, 1, d.Cursor().Y)
	panetest.Press(d, "backspace", "esc")
	require.Empty(t, d.filter.Text())
	require.Nil(t, d.Cursor())
}

func TestKeepsItsRow(t *testing.T) {
	d := busy()
	d.SetSize(80, 20)
	panetest.Press(d, "k", "k")
	require.Equal(t, "other_dns_server", d.selected().reason)
	panetest.Press(d, "d")
	require.Equal(t, "other_dns_server", d.selected().reason)
	d.event(2*time.Minute, noRule)
	require.Equal(t, "other_dns_server", d.selected().reason, "it doesn't follow any more")
	panetest.Press(d, "d", "G")
	d.event(3*time.Minute, npm)
	require.Equal(t, "rule_allowed", d.selected().reason, "at the end, it follows again")
}

func TestHosts(t *testing.T) {
	d := busy()
	d.SetSize(160, 20)
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	panetest.Press(d, "o")
	require.Equal(t, "example.com", d.selectedHost().name)
	require.Contains(t, panetest.Plain(d.View()), "✗ 4")
	panetest.Press(d, "j")
	name := d.selectedHost().name
	for range 9 {
		d.event(time.Minute, udp)
	}
	require.Equal(t, name, d.selectedHost().name, "the cursor stays on its host")
	require.Equal(t, pane.CopyMsg{Text: name, What: "the host"}, panetest.Press(d, "y")())
	panetest.Press(d, "enter")
	require.False(t, d.grouped)
	require.Equal(t, name, d.filter.Text())
	require.NotEmpty(t, d.shown)
	panetest.Press(d, "esc", "o", "/", "!", "n", "p", "m", "enter")
	require.Contains(t, panetest.Plain(d.View()), "5 of 6 hosts")
}

func TestCopyExportAndFocus(t *testing.T) {
	d := busy()
	d.SetSize(80, 20)
	require.Equal(t, pane.CopyMsg{Text: "git.corp.example:22", What: "host:port"}, panetest.Press(d, "y")())
	require.Nil(t, panetest.Press(d, "c"), "no tool call ran")
	export, ok := panetest.Press(d, "e")().(pane.ExportMsg)
	require.True(t, ok)
	require.Equal(t, "egress-k3v9xq.jsonl", export.Name)
	var b bytes.Buffer
	require.NoError(t, export.Write(&b))
	require.Equal(t, 9, strings.Count(b.String(), "\n"))
	var first map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes()[:bytes.IndexByte(b.Bytes(), '\n')], &first))
	require.Equal(t, "allow", first["verdict"])

	panetest.Press(d, "k", "k", "k")
	require.Equal(t, pane.FocusMsg{From: "Egress", Seq: 8, Host: "169.254.169.254", ToolCall: "call_bash_9"}, panetest.Press(d, "enter")())
	require.True(t, d.Escapes())
	require.Equal(t, pane.FocusMsg{From: "Egress", Tab: "Chat", Seq: 8, Host: "169.254.169.254", ToolCall: "call_bash_9"}, panetest.Press(d, "c")())
	panetest.Press(d, "esc")
	require.False(t, d.Escapes())

	for name, c := range map[string]struct {
		m    pane.FocusMsg
		want string
	}{
		"a tool call": {pane.FocusMsg{From: "Chat", ToolCall: "call_bash_7"}, "rule_allowed"},
		"a record":    {pane.FocusMsg{From: "Timeline", Seq: 9}, "other_dns_server"},
		"a host":      {pane.FocusMsg{From: "Timeline", Host: "example.com"}, "no_rule"},
		"nothing":     {pane.FocusMsg{From: "Timeline", ToolCall: "gone", Host: "example.com"}, "ip_literal"},
		"its own":     {pane.FocusMsg{From: "Egress", Seq: 1}, "ip_literal"},
	} {
		t.Run(name, func(t *testing.T) {
			d.Update(pane.FocusMsg{Seq: 8})
			d.Update(c.m)
			require.Equal(t, c.want, d.selected().reason)
		})
	}
}

func TestDetailsScroll(t *testing.T) {
	d := busy()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(60, 12)
	panetest.Press(d, "enter")
	before := panetest.Plain(d.View())
	require.Contains(t, before, "↓ more")
	panetest.Press(d, "j", "j", "J", "pgdown")
	require.NotEqual(t, before, panetest.Plain(d.View()), "with the whole room, the keys move the details")
	panetest.Press(d, "G")
	require.NotContains(t, panetest.Plain(d.View()), "↓ more")
	panetest.Press(d, "g")
	require.Equal(t, before, panetest.Plain(d.View()))
	d.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	require.Equal(t, 3, d.details.Top())
	d.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	panetest.Press(d, "K")
	require.Equal(t, before, panetest.Plain(d.View()))

	d.SetSize(160, 30)
	row := d.selectedRow()
	panetest.Press(d, "k")
	require.Less(t, d.selectedRow(), row, "beside the list, they move the list")
	d.Update(tea.MouseClickMsg{X: 3, Y: 2, Button: tea.MouseLeft})
	require.Equal(t, 0, d.selectedRow())
	d.Update(tea.MouseClickMsg{X: 150, Y: 4, Button: tea.MouseLeft})
	require.Equal(t, 0, d.selectedRow())
	d.Update(tea.MouseWheelMsg{X: 3, Y: 4, Button: tea.MouseWheelDown})
	require.Equal(t, 3, d.selectedRow())
}

func TestAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		d    decision
		rule string
	}{
		"a name":                {decision{kind: kindDNS, host: "example.com", port: 53, reason: "no_rule"}, "example.com"},
		"a connection":          {decision{kind: kindConnection, host: "example.com", port: 8443, reason: "port_not_allowed"}, "example.com:8443"},
		"a private name":        {decision{kind: kindConnection, host: "git.corp", port: 22, reason: "private_address"}, "private:git.corp:22"},
		"an address":            {decision{kind: kindConnection, host: "192.0.2.7", port: 80, reason: "ip_literal"}, "192.0.2.7:80"},
		"an IPv6 address":       {decision{kind: kindConnection, host: "::1", port: 80, reason: "ip_literal"}, ""},
		"needs the exact name":  {decision{kind: kindConnection, host: "git.example.com", port: 22, reason: "protocol_needs_exact_rule"}, "git.example.com:22"},
		"metadata":              {decision{kind: kindConnection, host: "metadata.example", port: 80, reason: "metadata_address"}, ""},
		"a name for the shell":  {decision{kind: kindDNS, host: "a.$(reboot)", reason: "no_rule"}, ""},
		"a name like an option": {decision{kind: kindDNS, host: "--name.x", reason: "empty_policy"}, ""},
		"UDP":                   {decision{kind: kindPacket, host: "8.8.8.8", port: 53, reason: "udp_refused"}, ""},
		"unknown":               {decision{reason: "new_reason"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := suggest(&c.d)
			require.Equal(t, c.rule, a.rule)
			require.NotEmpty(t, a.why)
		})
	}
	for _, reason := range strings.Fields("rule_denied unassigned_address dns_rate dial_timeout tls_ech malformed") {
		a := suggest(&decision{reason: reason})
		require.Empty(t, a.rule, reason)
		require.NotContains(t, a.why, "is known", reason)
	}
}

func TestKeys(t *testing.T) {
	d := busy()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	d.SetSize(60, 12)
	for _, k := range []string{"k", "enter", "esc", "d", "o", "/", "n", "enter"} {
		panetest.Press(d, k)
		panetest.OwnKeys(t, d)
	}
	empty := newDesk()
	panetest.OwnKeys(t, empty)
	require.Len(t, empty.Keys(), 3, "nothing to open, copy or export")
	require.Nil(t, panetest.Press(empty, "enter", "y", "c", "o", "enter", "y", "e"))
	require.False(t, empty.details.Opened())
}

func TestHostile(t *testing.T) {
	texts := slices.Sorted(maps.Values(panetest.Hostile(panetest.Endless)))
	for _, field := range strings.Fields("id host protocol rule reason message kind") {
		d := newDesk()
		d.SetStyles(panetest.Styles(t, "patio-dark"))
		for i, text := range texts {
			b, err := json.Marshal(text)
			require.NoError(t, err)
			d.event(time.Duration(i)*time.Hour, fmt.Sprintf(`"verdict":"deny","port":1,"tool_calls":[%s],%q:%s`, b, field, b))
		}
		for _, keys := range [][]string{{}, {"enter"}, {"esc", "o"}, {"o", "g", "enter"}} {
			panetest.Press(d, keys...)
			for range texts {
				panetest.Press(d, "j")
				for _, size := range [][2]int{{60, 12}, {160, 24}} {
					d.SetSize(size[0], size[1])
					panetest.Screen(t, d.View(), size[0], size[1])
				}
			}
		}
		for _, r := range d.ledger.rows {
			require.Less(t, len(r.host)+len(r.message)+len(r.rule)+len(r.id)+len(strings.Join(r.calls, "")), 5*(maxText+8), "what is kept is bounded")
		}
	}
	d := busy()
	d.SetStyles(panetest.Styles(t, "patio-dark"))
	for _, text := range texts {
		panetest.Press(d, "esc", "/")
		d.Update(tea.PasteMsg{Content: text})
		d.SetSize(60, 12)
		panetest.Screen(t, d.View(), 60, 12)
		require.Less(t, d.Cursor().X, 60)
	}
}

func TestSizes(t *testing.T) {
	for _, keys := range [][]string{{}, {"enter"}, {"o"}, {"/", "n", "p"}} {
		d := busy()
		d.SetStyles(panetest.Styles(t, "patio-light"))
		panetest.Press(d, keys...)
		panetest.EverySize(t, d)
	}
}

func BenchmarkView(b *testing.B) {
	d := newDesk()
	d.SetStyles(panetest.Styles(b, "patio-dark"))
	d.SetSize(160, 46)
	many(d, 10_000)
	panetest.Press(d, "enter")
	for b.Loop() {
		panetest.Press(d, "k")
		d.View()
	}
}

func BenchmarkApply(b *testing.B) {
	for _, grouped := range []bool{false, true} {
		b.Run(fmt.Sprintf("grouped=%t", grouped), func(b *testing.B) {
			d := newDesk()
			d.SetStyles(panetest.Styles(b, "patio-dark"))
			d.SetSize(160, 46)
			many(d, 10_000)
			d.grouped = grouped
			batch := make([]journal.Record, 0, 160)
			for i := range 160 {
				batch = append(batch, d.record(0, fmt.Sprintf(`"kind":"dns","verdict":"deny","host":"h%d.example","port":53,"protocol":"dns","reason":"no_rule","count":1`, i)))
			}
			for b.Loop() {
				d.Apply(batch)
				d.View()
			}
		})
	}
}

func BenchmarkFilter(b *testing.B) {
	d := newDesk()
	d.SetStyles(panetest.Styles(b, "patio-dark"))
	d.SetSize(160, 46)
	many(d, 10_000)
	panetest.Press(d, "/")
	for b.Loop() {
		panetest.Press(d, "7", "backspace")
		d.View()
	}
}
