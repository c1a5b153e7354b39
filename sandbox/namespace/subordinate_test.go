package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSubordinateRange(t *testing.T) {
	const suggested = "me:65636000:65536" // 100000 + 1000 * 65536
	for name, tc := range map[string]struct {
		file string
		want Range
		line string // suggested
	}{
		"by name":         {file: "other:100000:65536\nme:165536:65536\n", want: Range{165536, 65536}},
		"by id":           {file: "1000:165536:65536\n", want: Range{165536, 65536}},
		"the largest":     {file: "me:100000:1000\n1000:200000:65536\nme:300000:2000\n", want: Range{200000, 65536}},
		"just enough":     {file: "me:100000:1000\n", want: Range{100000, 1000}},
		"without LF":      {file: "me:100000:65536", want: Range{100000, 65536}},
		"too small":       {file: "me:100000:999\n", line: suggested},
		"nobody's":        {file: "", line: suggested},
		"another's":       {file: "mee:100000:65536\n10000:100000:65536\n", line: suggested},
		"negative":        {file: "me:-5:65536\nme:100000:-1\n", line: suggested},
		"beyond 32 bits":  {file: "me:4294967295:65536\n", line: suggested},
		"to the last one": {file: "me:4294901760:65536\n", want: Range{4294901760, 65536}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "subuid")
			require.NoError(t, os.WriteFile(path, []byte(tc.file), 0o600))
			r, err := subordinateRange(path, "me", 1000)
			if tc.line == "" {
				require.NoError(t, err)
				require.Equal(t, tc.want, r)
				return
			}
			var sub *SubordinateError
			require.ErrorAs(t, err, &sub)
			require.Equal(t, path, sub.File)
			require.Equal(t, tc.line, sub.Line)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, tc.line)
			// What is suggested helps.
			require.NoError(t, os.WriteFile(path, []byte(strings.TrimRight(tc.file, "\n")+"\n"+sub.Line+"\n"), 0o600))
			_, err = subordinateRange(path, "me", 1000)
			require.NoError(t, err)
		})
	}
}

func TestSubordinateRangeMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	_, err := subordinateRange(path, "me", 1000)
	var sub *SubordinateError
	require.ErrorAs(t, err, &sub)
	require.NoError(t, errors.Unwrap(sub), "a missing file is an empty one")
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = subordinateRange(path, "me", 1000)
	require.ErrorAs(t, err, &sub)
	require.Error(t, errors.Unwrap(sub))
	require.ErrorContains(t, err, "is a directory")
}

// The ids suggested to two people on one machine don't meet.
func TestSuggestionsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for uid := 1000; uid < 1100; uid++ {
		_, err := subordinateRange("/nonexistent", "u", uid)
		var sub *SubordinateError
		require.ErrorAs(t, err, &sub)
		require.False(t, seen[sub.Line])
		seen[sub.Line] = true
	}
}

func TestRootNeedsNoEntry(t *testing.T) {
	uids, gids, err := Subordinate(0)
	require.NoError(t, err)
	require.Equal(t, rootRange, uids)
	require.Equal(t, rootRange, gids)
}
