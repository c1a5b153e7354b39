package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Version is the value of every record's "v" field.
const Version = 1

// MaxRecord is the longest line in bytes, LF excluded, that a journal takes or gives back. The longest lines that
// occur are near 60 MB (an image or a large tool result in one RPC line); the bound keeps a damaged file from
// costing unbounded memory.
const MaxRecord = 256 << 20

// Bounds on the two strings of a record's prefix, so that maxPrefix bytes always hold the whole prefix.
const (
	maxSession = 255
	maxType    = 64
	maxPrefix  = 512
)

// Fixed text between the values of a record's prefix. The order never varies in what this package writes.
const (
	keyVersion = `{"v":1,"seq":`
	keyTime    = `,"time":"`
	keySession = `","session":"`
	keyType    = `","type":"`
	keyData    = `","data":`
	recordEnd  = "}\n"
)

// Record is one line of the journal. Data is the caller's JSON, byte for byte.
type Record struct {
	Version int             `json:"v"`
	Seq     uint64          `json:"seq"`
	Time    time.Time       `json:"time"`
	Session string          `json:"session"`
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`
}

// prefix is what stands before a record's data, with the offset at which the data starts.
type prefix struct {
	seq     uint64
	time    time.Time
	session []byte
	typ     []byte
	data    int
}

// Header reads a record's sequence number, time and type from the start of its line (without LF) without decoding
// the data: the first few hundred bytes of a line are enough. A line whose keys come in another order is parsed in
// full. ok is false if the line is no record of this version.
func Header(line []byte) (seq uint64, t time.Time, typ string, ok bool) {
	if p, ok := parsePrefix(line); ok {
		return p.seq, p.time, string(p.typ), true
	}
	r, err := decodeSlow(line)
	if err != nil {
		return 0, time.Time{}, "", false
	}
	return r.Seq, r.Time, r.Type, true
}

// Decode decodes a whole line (without LF). Data is a slice of line, not a copy.
func Decode(line []byte) (Record, error) {
	if p, ok := parsePrefix(line); ok && line[len(line)-1] == '}' {
		if data := line[p.data : len(line)-1]; json.Valid(data) {
			return Record{
				Version: Version, Seq: p.seq, Time: p.time,
				Session: string(p.session), Type: string(p.typ), Data: data,
			}, nil
		}
	}
	return decodeSlow(line)
}

func decodeSlow(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("decode journal record: %w", err)
	}
	switch {
	case r.Version != Version:
		return Record{}, fmt.Errorf("decode journal record: version %d is not supported, only %d", r.Version, Version)
	case r.Seq == 0:
		return Record{}, errors.New("decode journal record: no sequence number")
	case r.Type == "":
		return Record{}, errors.New("decode journal record: no type")
	}
	return r, nil
}

// appendPrefix appends everything that stands before the data.
func appendPrefix(dst []byte, seq uint64, t time.Time, session, typ string) []byte {
	dst = append(dst, keyVersion...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, keyTime...)
	dst = t.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, keySession...)
	dst = append(dst, session...)
	dst = append(dst, keyType...)
	dst = append(dst, typ...)
	return append(dst, keyData...)
}

func parsePrefix(line []byte) (p prefix, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(keyVersion))
	if !ok {
		return p, false
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	// A leading zero is no JSON number; zero is no sequence number.
	if digits == 0 || rest[0] == '0' {
		return p, false
	}
	seq, err := strconv.ParseUint(string(rest[:digits]), 10, 64)
	if err != nil {
		return p, false
	}
	stamp, rest, ok := cutString(rest[digits:], keyTime, keySession)
	if !ok {
		return p, false
	}
	p.session, rest, ok = cutString(rest, "", keyType)
	if !ok {
		return p, false
	}
	p.typ, rest, ok = cutString(rest, "", keyData)
	if !ok || len(p.typ) == 0 {
		return p, false
	}
	if p.time, err = time.Parse(time.RFC3339Nano, string(stamp)); err != nil {
		return p, false
	}
	p.seq, p.data = seq, len(line)-len(rest)
	return p, true
}

// cutString takes a JSON string's bytes from b: after open, up to close (which starts with the closing quote). It
// refuses strings with escapes, which the slow path reads.
func cutString(b []byte, open, close string) (value, rest []byte, ok bool) {
	if b, ok = bytes.CutPrefix(b, []byte(open)); !ok {
		return nil, nil, false
	}
	end := bytes.IndexByte(b[:min(len(b), maxPrefix)], '"')
	if end < 0 || !plain(b[:end]) {
		return nil, nil, false
	}
	rest, ok = bytes.CutPrefix(b[end:], []byte(close))
	return b[:end], rest, ok
}

// plain reports whether b is printable ASCII that JSON writes as it is.
func plain[T string | []byte](b T) bool {
	for i := range len(b) {
		if b[i] < 0x20 || b[i] > 0x7e || b[i] == '"' || b[i] == '\\' {
			return false
		}
	}
	return true
}

func checkSession(session string) error {
	if session == "" || len(session) > maxSession || !plain(session) {
		return fmt.Errorf("session id %q: want 1 to %d printable ASCII characters without quote or backslash", session, maxSession)
	}
	return nil
}

func checkType(typ string) error {
	if typ == "" || len(typ) > maxType || !plain(typ) {
		return fmt.Errorf("record type %q: want 1 to %d printable ASCII characters without quote or backslash", typ, maxType)
	}
	return nil
}
