package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"patio/sessions"
)

// FuzzIndex reads any bytes as an index: they are refused, or they are what would be written of what was read.
func FuzzIndex(f *testing.F) {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	dir, err := filepath.Abs("../testdata/corpus")
	require.NoError(f, err)
	s := scanner{options: Options{Roots: []Root{{Dir: dir}}}, now: now}
	records, err := s.scan(f.Context(), nil)
	require.NoError(f, err)
	for _, some := range [][]*record{nil, records[:1], records[1:3], records[20:60]} {
		b := encodeIndex(some, now)
		f.Add(b[indexHeader : len(b)-4])
	}
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := decodeIndex(b, now) // as it is
		require.Error(t, err, "the checksum can't be met by chance")
		b = sealed(b, now)
		got, err := decodeIndex(b, now)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(got), len(b)/24, "a record has 24 fields")
		again, err := decodeIndex(encodeIndex(sorted(got), now), now)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// FuzzList lists any file, and goes on from what it knows when the file grows. What an exact summary says of a session, the
// decoder says too.
func FuzzList(f *testing.F) {
	paths, err := filepath.Glob("../testdata/corpus/*.jsonl")
	require.NoError(f, err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(f, err)
		if len(b) < 16<<10 {
			f.Add(b, uint16(len(b)/2))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		began := time.Now()
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		got, err := Read(path, true)
		require.NoError(t, err)
		for _, s := range []string{got.Title, got.FirstPrompt, got.LastText, got.Model, got.Thinking} {
			require.Equal(t, s, preview([]byte(s)), "it can be shown")
		}
		if n := bytes.LastIndexByte(b[:min(int(cut), len(b))], '\n') + 1; n > 0 {
			growsTo(t, b, n, got)
		}
		agree(t, path, b, got)
		require.Less(t, time.Since(began), 20*time.Second)
	})
}

// sealed makes an index of bytes that are meant to be records.
func sealed(records []byte, now time.Time) []byte {
	b := encodeIndex(nil, now)
	b = append(b[:len(b)-crc32.Size], records...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func sorted(records map[string]*record) []*record {
	return slices.SortedFunc(maps.Values(records), func(a, b *record) int { return cmp.Compare(a.Path, b.Path) })
}

// growsTo reads the first n bytes, then the rest with what is known of them.
func growsTo(t *testing.T, b []byte, n int, want Summary) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grows.jsonl")
	require.NoError(t, os.WriteFile(path, b[:n], 0o600))
	before, err := read(context.Background(), path, true, nil)
	require.NoError(t, err)
	appendTo(t, path, string(b[n:]))
	after, err := read(context.Background(), path, true, &before)
	require.NoError(t, err)
	got := after.Summary
	if want.LastActivity.Equal(want.ModTime) {
		want.LastActivity = got.LastActivity
	}
	want.Path, want.ModTime = got.Path, got.ModTime
	require.Equal(t, want, got)
}

// agree holds a summary against the decoder. Damage that the decoder alone looks for isn't compared, nor members that a line has
// twice.
func agree(t *testing.T, path string, b []byte, got Summary) {
	t.Helper()
	if !got.Exact || got.Broken != "" {
		return
	}
	for line := range bytes.SplitSeq(b, newline) {
		var e entry
		ours, v := e.read(line), gjson.ParseBytes(line)
		if theirs := gjson.ValidBytes(line) && v.IsObject(); ours != theirs {
			require.True(t, ours, "an entry is passed over: %q", line)
			return
		}
		if ours && twice(v) {
			return
		}
	}
	f, err := sessions.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	info, err := f.Info()
	require.NoError(t, err)
	require.Equal(t, shown(f.Header().ID), shown(got.ID))
	require.Equal(t, shown(f.Header().Cwd), shown(got.Cwd))
	if title := shown(info.Title()); title != "" {
		require.Equal(t, title, shown(got.Title))
	}
	if model := info.Model(); model != "" && len(model) < 1000 && len(f.Path()) == len(f.Entries()) {
		require.Equal(t, shown(model), shown(got.Model))
	}
}

// shown is a text as a list has it, with one replacement for whatever can't be read in a row.
func shown(s string) string {
	s = preview([]byte(s))
	for strings.Contains(s, "\ufffd\ufffd") {
		s = strings.ReplaceAll(s, "\ufffd\ufffd", "\ufffd")
	}
	return s
}

// twice says that an object in a value has two members of a name.
func twice(v gjson.Result) bool {
	found, seen := false, map[string]bool{}
	if !v.IsObject() && !v.IsArray() {
		return false
	}
	v.ForEach(func(key, value gjson.Result) bool {
		found = v.IsObject() && seen[key.Str] || twice(value)
		seen[key.Str] = true
		return !found
	})
	return found
}
