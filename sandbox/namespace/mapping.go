package namespace

import (
	"fmt"
	"strings"
)

// SandboxID is the user and group id that the caller has inside a sandbox.
const SandboxID = 1000

// idsInside is how many ids a user namespace maps: 16 bits, so that every id of a
// Debian image, nobody (65534) included, exists inside.
const idsInside = 65536

// Mapping maps Size ids from Inside the namespace to Host ids outside of it.
type Mapping struct {
	Inside, Host, Size uint32
}

// Range is a block of host ids that may be used for ids inside.
type Range struct {
	Start, Size uint32
}

// Map lays the ids of a user namespace out: owner becomes SandboxID, and the ids around
// it come from the subordinate range, id 0 first, without owner's own if that is in it.
// A range of one id is enough for runsc itself (id 0); a full one also covers files of
// the image that others own.
func Map(owner uint32, sub Range) []Mapping {
	var maps []Mapping
	inside := uint32(0)
	take := func(start, size uint64) {
		for size > 0 && inside < idsInside {
			if inside == SandboxID {
				inside++
				continue
			}
			end := uint32(idsInside)
			if inside < SandboxID {
				end = SandboxID
			}
			n := min(uint64(end-inside), size)
			maps = append(maps, Mapping{Inside: inside, Host: uint32(start), Size: uint32(n)})
			inside += uint32(n)
			start, size = start+n, size-n
		}
	}
	start, end, own := uint64(sub.Start), uint64(sub.Start)+uint64(sub.Size), uint64(owner)
	if own < start || own >= end {
		take(start, end-start)
	} else {
		take(start, own-start)
		take(own+1, end-own-1)
	}
	return append(maps, Mapping{Inside: SandboxID, Host: owner, Size: 1})
}

// lines is the form that /proc/PID/uid_map takes.
func lines(maps []Mapping) string {
	var b strings.Builder
	for _, m := range maps {
		fmt.Fprintf(&b, "%d %d %d\n", m.Inside, m.Host, m.Size)
	}
	return b.String()
}
