package traffic

import "sort"

// class is what a line is by its purpose; each has a chip.
type class uint8

const (
	classCommand class = iota
	classResponse
	classEvent
	classUI
	classStderr
	classEgress
	classState // of the session, and programs that a client ran in it
	classStats
	classes
)

// way is the direction of an RPC line.
type way uint8

const (
	noWay way = iota
	toPi
	fromPi
)

const (
	// perPage lines are kept and dropped together.
	pageBits = 12
	perPage  = 1 << pageBits
	// maxPages bounds the index: 800,000 lines are more than a long session has, and near
	// 100 MB.
	maxPages = 200
	// maxSummary is the longest summary in bytes.
	maxSummary = 120
	// maxTypes bounds the types that are told apart: who writes the lines names them.
	maxTypes, maxType = 4096, 64
)

// row is what is kept of one line; the line itself is read again from the journal.
type row struct {
	seq    uint64
	at     int64  // nanoseconds
	size   uint32 // of the line
	text   uint32 // where its summary is in the page
	typ    uint16
	length uint8 // of the summary
	bits   uint8 // class, way, failed
}

func pack(c class, w way, failed bool) uint8 {
	b := uint8(c) | uint8(w)<<4
	if failed {
		b |= 1 << 6
	}
	return b
}

func (r *row) class() class { return class(r.bits & 0xf) }
func (r *row) way() way     { return way(r.bits >> 4 & 3) }
func (r *row) failed() bool { return r.bits>>6&1 == 1 }

// page is a run of rows with their summaries.
type page struct {
	rows []row
	text []byte
}

// index is all lines, oldest first. A line keeps its number when older ones are dropped.
type index struct {
	pages  []*page
	first  int // number of the oldest line
	end    int // number after the newest
	types  []string
	ids    map[string]uint16
	counts [classes]int
	bytes  int64 // of the lines, those dropped included
}

// Types that folding and focusing look at, interned first.
const (
	typeUpdate uint16 = iota
	typeStart
	typeOther // when there are too many
)

func newIndex() *index {
	x := &index{ids: map[string]uint16{}}
	for _, t := range []string{"message_update", "message_start", "other types"} {
		x.intern(t)
	}
	return x
}

func (x *index) intern(t string) uint16 {
	t = cut(t, maxType)
	if id, ok := x.ids[t]; ok {
		return id
	}
	if len(x.types) >= maxTypes {
		return typeOther
	}
	id := uint16(len(x.types))
	t = string([]byte(t)) // of the line, which isn't kept
	x.types = append(x.types, t)
	x.ids[t] = id
	return id
}

// add appends a line, and reports whether older ones were dropped for it.
func (x *index) add(r row, summary []byte) (dropped bool) {
	if x.end&(perPage-1) == 0 {
		if n := len(x.pages); n > 0 {
			// A full page holds exactly what it needs.
			last := x.pages[n-1]
			last.text = append(make([]byte, 0, len(last.text)), last.text...)
		}
		if len(x.pages) >= maxPages {
			for i := range x.pages[0].rows {
				x.counts[x.pages[0].rows[i].class()]--
			}
			x.pages = append(x.pages[:0], x.pages[1:]...)
			x.first += perPage
			dropped = true
		}
		x.pages = append(x.pages, &page{})
	}
	p := x.pages[len(x.pages)-1]
	r.text, r.length = uint32(len(p.text)), uint8(len(summary))
	p.text = append(p.text, summary...)
	p.rows = append(p.rows, r)
	x.counts[r.class()]++
	x.bytes += int64(r.size)
	x.end++
	return dropped
}

// row is the line of a number, which must be in the index.
func (x *index) row(i int) *row {
	return &x.pages[i>>pageBits-x.first>>pageBits].rows[i&(perPage-1)]
}

// summary is a line's summary. It must not be changed, nor drawn as it is.
func (x *index) summary(i int) []byte {
	p := x.pages[i>>pageBits-x.first>>pageBits]
	r := &p.rows[i&(perPage-1)]
	return p.text[r.text : int(r.text)+int(r.length)]
}

// find is the number of the first line whose record isn't before seq.
func (x *index) find(seq uint64) int {
	return x.first + sort.Search(x.end-x.first, func(i int) bool { return x.row(x.first+i).seq >= seq })
}

// chunk is records to read at once: at most limit of those after since.
type chunk struct {
	since uint64
	limit int
	last  uint64 // the seq of the last
}

// What is read at once: so many lines, or bytes.
const (
	chunkRows  = 2000
	chunkBytes = 4 << 20
)

// chunk is the next lines to read, from a line up to before another.
func (x *index) chunk(from, to int) chunk {
	c := chunk{since: x.row(from).seq - 1}
	for bytes := 0; from < to && c.limit < chunkRows && (c.limit == 0 || bytes < chunkBytes); from++ {
		r := x.row(from)
		bytes += int(r.size)
		c.limit++
		c.last = r.seq
	}
	return c
}

// plan is all chunks of a range of lines.
func (x *index) plan(from, to int) []chunk {
	var all []chunk
	for from < to {
		c := x.chunk(from, to)
		all = append(all, c)
		from += c.limit
	}
	return all
}
