package journal

import (
	"bytes"
	"io"
	"sort"
)

// A mark is set at least every markRecords records or markBytes bytes, so that a reader that starts anywhere in what
// this process wrote skips no more than that.
const (
	markRecords = 256
	markBytes   = 1 << 20
)

// mark says that the record seq starts at off.
type mark struct {
	seq uint64
	off int64
}

// marks is a sparse index of the records written since the journal was opened. What lies before its first mark is
// found by seek.
type marks []mark

func (m marks) add(seq uint64, off int64) marks {
	if n := len(m); n > 0 && seq-m[n-1].seq < markRecords && off-m[n-1].off < markBytes {
		return m
	}
	return append(m, mark{seq, off})
}

// before gives the last mark at or before seq.
func (m marks) before(seq uint64) (mark, bool) {
	i := sort.Search(len(m), func(i int) bool { return m[i].seq > seq })
	if i == 0 {
		return mark{}, false
	}
	return m[i-1], true
}

// seekStop is the distance at which halving stops: one more read costs less than two more probes.
const seekStop = blockSize

// seek gives the offset of a line start at or before the first record after since, at most seekStop bytes and one line
// before it. It halves the byte range [0, limit), reading only the starts of lines, so it needs no index.
func seek(f io.ReaderAt, limit int64, since uint64) (int64, error) {
	block := getBlock()
	defer putBlock(block)

	// lo is always a line start whose record is not after since, or 0. No line that starts in [hi, limit) is needed.
	lo, hi := int64(0), limit
	for hi-lo > seekStop {
		mid := lo + (hi-lo)/2
		start, seq, found, err := lineAfter(f, *block, mid, hi)
		switch {
		case err != nil:
			return 0, err
		case found && seq <= since:
			lo = start
		default:
			// No line starts between mid and hi, or one past since: either way the wanted one starts before mid,
			// or is the next after what lo leads to. The scan never passes hi again, so even a 60 MB line is read
			// about twice, however many probes land in it.
			hi = mid
		}
	}
	return lo, nil
}

// lineAfter finds the first line that starts in (at, limit) and has a readable header.
func lineAfter(f io.ReaderAt, block []byte, at, limit int64) (start int64, seq uint64, found bool, err error) {
	for {
		lf, err := nextLF(f, block, at, limit)
		if err != nil || lf < 0 || lf+1 >= limit {
			return 0, 0, false, err
		}
		start := lf + 1
		// The header may lie past limit, which bounds line starts only.
		n, err := f.ReadAt(block[:maxPrefix], start)
		if n == 0 && err != nil {
			return 0, 0, false, err
		}
		if p, ok := parsePrefix(block[:n]); ok {
			return start, p.seq, true, nil
		}
		at = start
	}
}

// nextLF gives the offset of the first LF in [at, limit), or -1.
func nextLF(f io.ReaderAt, block []byte, at, limit int64) (int64, error) {
	for at < limit {
		b := block[:min(int64(len(block)), limit-at)]
		if err := readFull(f, b, at); err != nil {
			return 0, err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return at + int64(i), nil
		}
		at += int64(len(b))
	}
	return -1, nil
}
