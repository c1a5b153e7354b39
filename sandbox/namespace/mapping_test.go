package namespace

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMap(t *testing.T) {
	for name, tc := range map[string]struct {
		owner uint32
		sub   Range
		want  string
	}{
		"full":               {1000, Range{100000, 65536}, "0 100000 1000\n1001 101000 64535\n1000 1000 1\n"},
		"root":               {0, rootRange, "0 1879048192 1000\n1001 1879049192 64535\n1000 0 1\n"},
		"larger":             {1000, Range{100000, 1 << 20}, "0 100000 1000\n1001 101000 64535\n1000 1000 1\n"},
		"just enough":        {1000, Range{100000, 1000}, "0 100000 1000\n1000 1000 1\n"},
		"one more":           {1000, Range{100000, 1001}, "0 100000 1000\n1001 101000 1\n1000 1000 1\n"},
		"small":              {1000, Range{100000, 1}, "0 100000 1\n1000 1000 1\n"},
		"owner in it":        {100010, Range{100000, 65536}, "0 100000 10\n10 100011 990\n1001 101001 64535\n1000 100010 1\n"},
		"owner at its start": {100000, Range{100000, 2000}, "0 100001 1000\n1001 101001 999\n1000 100000 1\n"},
		"owner at its end":   {101999, Range{100000, 2000}, "0 100000 1000\n1001 101000 999\n1000 101999 1\n"},
		"owner behind it":    {102000, Range{100000, 2000}, "0 100000 1000\n1001 101000 1000\n1000 102000 1\n"},
		"the last ids":       {1000, Range{math.MaxUint32 - 65535, 65536}, "0 4294901760 1000\n1001 4294902760 64535\n1000 1000 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, lines(Map(tc.owner, tc.sub)))
		})
	}
}

func TestMapNeverOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint32Range(1, 200000).Draw(t, "size")
		start := rapid.Uint32Range(0, math.MaxUint32-size).Draw(t, "start")
		owner := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(start, start+size)).Draw(t, "owner")
		maps := Map(owner, Range{start, size})
		require.LessOrEqual(t, len(maps), 5, "an old kernel takes five lines")
		own := 0
		var mapped uint64
		for i, a := range maps {
			require.NotZero(t, a.Size)
			mapped += uint64(a.Size)
			if a.Inside <= SandboxID && SandboxID < a.Inside+a.Size {
				require.Equal(t, Mapping{SandboxID, owner, 1}, a)
				own++
			} else {
				require.GreaterOrEqual(t, a.Host, start)
				require.LessOrEqual(t, uint64(a.Host)+uint64(a.Size), uint64(start)+uint64(size))
			}
			require.LessOrEqual(t, uint64(a.Inside)+uint64(a.Size), uint64(idsInside))
			for _, b := range maps[i+1:] {
				require.False(t, overlap(a.Inside, b.Inside, a.Size, b.Size), "inside: %v", maps)
				require.False(t, overlap(a.Host, b.Host, a.Size, b.Size), "outside: %v", maps)
			}
		}
		require.Equal(t, 1, own)
		usable := uint64(size)
		if owner >= start && uint64(owner) < uint64(start)+uint64(size) {
			usable--
		}
		if usable > 0 {
			require.Zero(t, maps[0].Inside, "runsc is id 0")
		}
		require.Equal(t, 1+min(usable, idsInside-1), mapped, "nothing is wasted")
	})
}

func overlap(a, b, sizeA, sizeB uint32) bool {
	return uint64(a) < uint64(b)+uint64(sizeB) && uint64(b) < uint64(a)+uint64(sizeA)
}
