package egress

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"patio/engine/journal"
)

// The bounds of what is kept. A session that tries a thousand hosts a second fills the
// journal, not the memory of those who look on.
const (
	maxRows  = 20_000
	dropRows = 2_000 // at once, so that dropping costs little
	maxHosts = 4_096
)

// near is how many rows back a refusal may be counted into: name servers are asked for A
// and AAAA in turns, and programs try again.
const near = 8

// nearTime is how long after the first a refusal is still the same attempt.
const nearTime = time.Minute

// ledger is what the gateway decided so far. Row i of all there ever were is
// rows[i-dropped].
type ledger struct {
	rows    []decision
	dropped int
	open    map[string]int // connections by id, as rows of all

	hosts      map[string]*host
	order      []*host // all of hosts, as they were sorted last
	otherHosts host    // of all that came when hosts was full

	allowed, denied, lost int64
	in, out               int64
	unreadable            int
}

// host sums up what was decided about one host.
type host struct {
	name            string
	allowed, denied int64
	open            int
	in, out         int64
	last            time.Time
	ports           []uint16 // of connections; at most maxPorts
	morePorts       bool
	why             string // of the last refusal
}

const maxPorts = 6

func newLedger() *ledger {
	return &ledger{open: map[string]int{}, hosts: map[string]*host{}, otherHosts: host{name: "other hosts"}}
}

// change says what an add did to the rows.
type change struct {
	added   bool // a new last row
	dropped int  // so many of the first went
}

// at is row i of all there ever were, nil when it was dropped.
func (l *ledger) at(i int) *decision {
	if i -= l.dropped; i < 0 || i >= len(l.rows) {
		return nil
	}
	return &l.rows[i]
}

// end is the number of all rows there ever were.
func (l *ledger) end() int { return l.dropped + len(l.rows) }

// add takes a record of type egress.
func (l *ledger) add(r journal.Record) change {
	d, ok := decode(r)
	if !ok {
		l.unreadable++
		return change{}
	}
	switch d.kind {
	case kindDropped:
		l.lost += d.count
		return l.append(d)
	case kindEnd:
		if i, ok := l.open[d.id]; ok && d.id != "" {
			delete(l.open, d.id)
			l.finish(l.at(i), d)
			return change{}
		}
		// Its beginning isn't here: it is a row of its own, and was counted as allowed then.
		d.ended = true
		l.in, l.out = l.in+d.in, l.out+d.out
		h := l.host(d.host)
		h.in, h.out, h.last = h.in+d.in, h.out+d.out, later(h.last, d.time)
		return l.append(d)
	}
	if l.repeats(d) {
		return change{}
	}
	if d.kind == kindConnection && d.allowed && d.id != "" {
		d.open = true
		l.open[d.id] = l.end()
	}
	l.count(d)
	return l.append(d)
}

func (l *ledger) finish(row *decision, end decision) {
	if row == nil {
		return
	}
	row.open, row.ended = false, true
	row.in, row.out, row.duration, row.last = end.in, end.out, end.duration, end.time
	row.endReason = end.reason
	if end.address != "" {
		row.address = end.address
	}
	if end.protocol != "" {
		row.protocol = end.protocol
	}
	if row.duration == 0 && end.time.After(row.time) {
		row.duration = end.time.Sub(row.time)
	}
	row.count = max(end.count, 1)
	l.in, l.out = l.in+end.in, l.out+end.out
	h := l.host(row.host)
	h.open--
	h.in, h.out, h.last = h.in+end.in, h.out+end.out, later(h.last, end.time)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// repeats counts a refusal into one of the last rows, if it is the same.
func (l *ledger) repeats(d decision) bool {
	if d.allowed {
		return false
	}
	for i := len(l.rows) - 1; i >= max(len(l.rows)-near, 0); i-- {
		if row := &l.rows[i]; row.same(&d) && d.time.Sub(row.time).Abs() < nearTime {
			row.count += d.count
			row.last = later(row.last, d.time)
			l.count(d)
			return true
		}
	}
	return false
}

// count adds a decision to the sums.
func (l *ledger) count(d decision) {
	h := l.host(d.host)
	h.last = later(h.last, d.time)
	if d.allowed {
		l.allowed += d.count
		h.allowed += d.count
	} else {
		l.denied += d.count
		h.denied += d.count
		h.why = d.text()
	}
	if d.open {
		h.open++
	}
	if d.kind != kindDNS && d.port != 0 && !slices.Contains(h.ports, d.port) {
		if len(h.ports) < maxPorts {
			h.ports = append(h.ports, d.port)
		} else {
			h.morePorts = true
		}
	}
}

func (l *ledger) host(name string) *host {
	if h := l.hosts[name]; h != nil {
		return h
	}
	if len(l.hosts) >= maxHosts {
		return &l.otherHosts
	}
	h := &host{name: name}
	if name == "" {
		h.name = "(no host)"
	}
	l.hosts[name] = h
	l.order = append(l.order, h)
	return h
}

func (l *ledger) append(d decision) change {
	l.rows = append(l.rows, d)
	if len(l.rows) <= maxRows {
		return change{added: true}
	}
	for i := range l.rows[:dropRows] {
		if id := l.rows[i].id; l.rows[i].open && l.open[id] == l.dropped+i {
			// Its end will be a row of its own.
			delete(l.open, id)
			l.host(l.rows[i].host).open--
		}
	}
	l.rows = slices.Delete(l.rows, 0, dropRows)
	l.dropped += dropRows
	return change{added: true, dropped: dropRows}
}

// close ends what is open: the gateway is gone, and nobody will tell how much it carried.
func (l *ledger) close() {
	for _, i := range l.open {
		if row := l.at(i); row != nil {
			row.open, row.lostWithEnd = false, true
			l.host(row.host).open--
		}
	}
	clear(l.open)
}

// byHost are the hosts that match, the busiest first. Sorting begins from the order of the
// last time, in which most are in their place.
func (l *ledger) byHost(terms []string, deniedOnly bool) []*host {
	slices.SortFunc(l.order, func(a, b *host) int {
		return cmp.Or(cmp.Compare(b.hits(), a.hits()), strings.Compare(a.name, b.name))
	})
	hosts := make([]*host, 0, len(l.order)+1)
	take := func(h *host) {
		if (!deniedOnly || h.denied > 0) && h.matches(terms) {
			hosts = append(hosts, h)
		}
	}
	for _, h := range l.order {
		take(h)
	}
	if l.otherHosts.hits() > 0 {
		take(&l.otherHosts)
	}
	return hosts
}

func (h *host) hits() int64 { return h.allowed + h.denied }

func (h *host) matches(terms []string) bool {
	if len(terms) == 0 {
		return true
	}
	name, why := strings.ToLower(h.name), strings.ToLower(h.why)
	for _, t := range terms {
		not := len(t) > 1 && t[0] == '!'
		if not {
			t = t[1:]
		}
		if (strings.Contains(name, t) || strings.Contains(why, t)) == not {
			return false
		}
	}
	return true
}
