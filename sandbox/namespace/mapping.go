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
// it come from the subordinate range, id 0 first. A range of one id is enough for runsc
// itself (id 0); a full one also covers files of the image that others own.
func Map(owner uint32, sub Range) []Mapping {
	below := min(sub.Size, SandboxID)
	maps := []Mapping{
		{Inside: 0, Host: sub.Start, Size: below},
		{Inside: SandboxID, Host: owner, Size: 1},
	}
	if rest := min(sub.Size, idsInside-1) - below; rest > 0 {
		maps = append(maps, Mapping{Inside: SandboxID + 1, Host: sub.Start + below, Size: rest})
	}
	return maps
}

// lines is the form that /proc/PID/uid_map takes.
func lines(maps []Mapping) string {
	var b strings.Builder
	for _, m := range maps {
		fmt.Fprintf(&b, "%d %d %d\n", m.Inside, m.Host, m.Size)
	}
	return b.String()
}
