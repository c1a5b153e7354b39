package catalog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// An index file is a header, records, and a checksum of all that precedes:
//
//	magic    8 bytes, the format's version in the last one
//	written  8 bytes, Unix nanoseconds
//	records  each the same fields in the same order; integers are varints, strings have their length before them
//	crc32c   4 bytes
//
// Integers outside of records are little-endian. Another version is another magic: an index is made anew, never converted.
const (
	indexMagic  = "patioix\x01"
	indexHeader = len(indexMagic) + 8
	indexMin    = indexHeader + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Why an index is made anew.
var (
	errIndexVersion  = errors.New("it has another format")
	errIndexChecksum = errors.New("its checksum is wrong")
	errIndexRecord   = errors.New("a record is malformed")
	errIndexClock    = errors.New("it is from the future; the clock was set back")
)

func encodeIndex(records []*record, now time.Time) []byte {
	b := make([]byte, 0, indexMin+len(records)*768)
	b = append(b, indexMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(now.UnixNano()))
	for _, r := range records {
		b = r.encode(b)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeIndex accepts nothing but what encodeIndex makes, written before now.
func decodeIndex(b []byte, now time.Time) (map[string]*record, error) {
	if len(b) < indexMin || string(b[:len(indexMagic)]) != indexMagic {
		return nil, errIndexVersion
	}
	body, sum := b[:len(b)-crc32.Size], binary.LittleEndian.Uint32(b[len(b)-crc32.Size:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errIndexChecksum
	}
	if written := int64(binary.LittleEndian.Uint64(body[len(indexMagic):])); written > now.UnixNano() {
		return nil, errIndexClock
	}
	// One copy for all strings.
	d := decoder{s: string(body[indexHeader:])}
	records := make(map[string]*record, len(d.s)/512)
	slab := []record(nil)
	for d.s != "" {
		if len(slab) == 0 {
			slab = make([]record, 64)
		}
		r := &slab[0]
		slab = slab[1:]
		r.decode(&d)
		if d.bad {
			return nil, errIndexRecord
		}
		records[r.Path] = r
	}
	return records, nil
}

const (
	flagExact = 1 << iota
	flagTorn
	flagNamed
	flagCreated
)

func (r *record) encode(b []byte) []byte {
	for _, s := range r.strings() {
		b = binary.AppendUvarint(b, uint64(len(*s)))
		b = append(b, *s...)
	}
	for _, n := range []uint64{r.stamp.dev, r.stamp.ino, uint64(r.mark)} {
		b = binary.AppendUvarint(b, n)
	}
	created := int64(0)
	flags := flag(r.Exact, flagExact) | flag(r.Torn, flagTorn) | flag(r.Named, flagNamed)
	if !r.Created.IsZero() {
		flags |= flagCreated
		created = r.Created.UnixMilli()
	}
	for _, n := range []int64{
		r.stamp.size, r.stamp.mtime, r.stamp.ctime, r.read, r.active, int64(r.Version), int64(r.Messages),
		r.LastActivity.Unix(), int64(r.LastActivity.Nanosecond()), created, flags,
	} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func (r *record) decode(d *decoder) {
	for _, s := range r.strings() {
		*s = d.string()
	}
	r.stamp.dev, r.stamp.ino, r.mark = d.uint(), d.uint(), uint32(d.uint())
	r.stamp.size, r.stamp.mtime, r.stamp.ctime, r.read, r.active = d.int(), d.int(), d.int(), d.int(), d.int()
	r.Version, r.Messages = int(d.int()), int(d.int())
	seconds, nanos, created, flags := d.int(), d.int(), d.int(), d.int()
	r.LastActivity = time.Unix(seconds, nanos).UTC()
	r.Exact, r.Torn, r.Named = flags&flagExact != 0, flags&flagTorn != 0, flags&flagNamed != 0
	if flags&flagCreated != 0 {
		r.Created = time.UnixMilli(created).UTC()
	}
	r.Size, r.ModTime = r.stamp.size, time.Unix(0, r.stamp.mtime).UTC()
}

// strings are the texts of a record in the order of the format.
func (r *record) strings() [10]*string {
	return [...]*string{
		&r.Path, &r.ID, &r.Cwd, &r.ParentSession, &r.Title, &r.FirstPrompt, &r.LastText, &r.Model, &r.Thinking, &r.Broken,
	}
}

func flag(set bool, bit int64) int64 {
	if set {
		return bit
	}
	return 0
}

// decoder takes values off a string. After the first one that isn't there, bad is set and every value is zero.
type decoder struct {
	s   string
	bad bool
}

func (d *decoder) uint() uint64 {
	var n uint64
	for shift := 0; shift < 64 && shift/7 < len(d.s); shift += 7 {
		c := d.s[shift/7]
		if c < 0x80 {
			if shift == 63 && c > 1 {
				break
			}
			d.s = d.s[shift/7+1:]
			return n | uint64(c)<<shift
		}
		n |= uint64(c&0x7f) << shift
	}
	d.bad, d.s = true, ""
	return 0
}

func (d *decoder) int() int64 {
	u := d.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) string() string {
	n := d.uint()
	if n > uint64(len(d.s)) {
		d.bad, d.s = true, ""
		return ""
	}
	s := d.s[:n]
	d.s = d.s[n:]
	return s
}
