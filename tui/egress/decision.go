package egress

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"patio/engine/api"
	"patio/engine/journal"
)

// The kinds of events, as the gateway writes them. The wire is the contract: the terminal
// UI doesn't reach into the sandbox's packages.
const (
	kindDNS        = "dns"
	kindConnection = "connection"
	kindRequest    = "request"
	kindPacket     = "packet"
	kindEnd        = "end"
	kindDropped    = "dropped"
)

// maxText bounds what is kept of a text: a name has 253 characters at most, a message of
// the gateway's not more.
const maxText = 512

// maxCalls bounds the tool calls of one row.
const maxCalls = 8

// decision is one row: what the gateway decided, how often, and how it ended.
type decision struct {
	seq         uint64
	time, last  time.Time
	kind        string
	id          string
	allowed     bool
	host        string
	port        uint16
	protocol    string
	rule        string
	reason      string
	message     string
	address     string
	in, out     int64
	duration    time.Duration
	count       int64
	calls       []string
	open        bool   // a connection that hasn't ended
	ended       bool   // its figures are final
	endReason   string // why it was ended, when the gateway did that
	lostWithEnd bool   // the session ended before the connection's end was written
}

// bounded is a copy of at most maxText bytes, so that a record of megabytes can go.
func bounded(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.Clone(s)
}

// decode reads a record; false when its data isn't what its type says.
func decode(r journal.Record) (decision, bool) {
	var e api.EgressRecord
	if json.Unmarshal(r.Data, &e) != nil {
		return decision{}, false
	}
	at := e.Time
	if at.IsZero() {
		at = r.Time
	}
	d := decision{
		seq: r.Seq, time: at, last: at, kind: bounded(string(e.Kind)), id: bounded(e.ID), allowed: e.Verdict.String() == "allow",
		host: bounded(e.Host), port: e.Port, protocol: bounded(string(e.Protocol)), rule: bounded(e.Rule),
		reason: bounded(string(e.Reason)), message: bounded(e.Message),
		in: max(e.BytesIn, 0), out: max(e.BytesOut, 0), duration: max(e.Duration, 0), count: max(e.Count, 1),
	}
	if e.Address.IsValid() {
		d.address = e.Address.String()
	}
	for _, c := range e.ToolCalls[:min(len(e.ToolCalls), maxCalls)] {
		d.calls = append(d.calls, bounded(c))
	}
	return d, true
}

// same says that a refusal was there before: it counts, and takes no row. The connections
// may be others.
func (d *decision) same(o *decision) bool {
	return d.kind == o.kind && !d.allowed && !o.allowed && d.host == o.host && d.port == o.port && d.protocol == o.protocol &&
		d.rule == o.rule && d.reason == o.reason && (len(o.calls) == 0 || slices.Equal(d.calls, o.calls))
}

// target is host:port, as a person writes it. A DNS question is about a name alone.
func (d *decision) target() string {
	switch {
	case d.host == "" && d.address != "":
		return d.address
	case d.host == "":
		return "–"
	case d.port == 0, d.kind == kindDNS:
		return d.host
	case strings.Contains(d.host, ":"):
		return net.JoinHostPort(d.host, strconv.Itoa(int(d.port)))
	}
	return d.host + ":" + strconv.Itoa(int(d.port))
}

// what names the kind for a person.
func (d *decision) what() string {
	switch d.kind {
	case kindDNS:
		return "DNS question"
	case kindConnection, kindEnd:
		return "TCP connection"
	case kindRequest:
		return "HTTP request on an allowed connection"
	case kindPacket:
		return "packet that is no TCP connection"
	}
	return d.kind
}

// text is the reason in words.
func (d *decision) text() string {
	if d.message != "" {
		return d.message
	}
	return strings.ReplaceAll(d.reason, "_", " ")
}

// matches reports whether every term is in one of the row's texts; a term that begins with
// ! may not be.
func (d *decision) matches(terms []string) bool {
	for _, t := range terms {
		not := len(t) > 1 && t[0] == '!'
		if not {
			t = t[1:]
		}
		if d.contains(t) == not {
			return false
		}
	}
	return true
}

func (d *decision) contains(term string) bool {
	verdict := "denied"
	if d.allowed {
		verdict = "allowed"
	}
	for _, s := range [...]string{d.target(), d.protocol, d.rule, d.reason, d.message, d.kind, verdict, d.address} {
		if strings.Contains(strings.ToLower(s), term) {
			return true
		}
	}
	return slices.ContainsFunc(d.calls, func(c string) bool { return strings.Contains(strings.ToLower(c), term) })
}

// record is the row as the journal would have it, for an export: repeats are one with a
// count, a connection and its end are one.
func (d *decision) record() map[string]any {
	verdict := "deny"
	if d.allowed {
		verdict = "allow"
	}
	m := map[string]any{
		"seq": d.seq, "time": d.time.UTC().Format(time.RFC3339Nano), "kind": d.kind, "verdict": verdict,
		"bytes_in": d.in, "bytes_out": d.out, "count": d.count,
	}
	for k, v := range map[string]string{
		"id": d.id, "host": d.host, "protocol": d.protocol, "rule": d.rule, "reason": d.reason, "message": d.message,
		"address": d.address, "end_reason": d.endReason,
	} {
		if v != "" {
			m[k] = v
		}
	}
	if d.port != 0 {
		m["port"] = d.port
	}
	if !d.last.Equal(d.time) {
		m["last"] = d.last.UTC().Format(time.RFC3339Nano)
	}
	if len(d.calls) > 0 {
		m["tool_calls"] = d.calls
	}
	if d.kind == kindConnection {
		m["open"] = d.open
		if d.ended {
			m["duration_ms"] = d.duration.Milliseconds()
		}
	}
	return m
}
