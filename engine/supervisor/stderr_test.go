package supervisor

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
)

func newStderr(t *testing.T) (*stderrLog, func() []string) {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"), "test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	s := &Supervisor{journal: j}
	return &stderrLog{journal: j}, func() (texts []string) {
		for _, r := range records(t, s) {
			require.Equal(t, api.RecordStderr, r.Type)
			var rec api.StderrRecord
			require.NoError(t, json.Unmarshal(r.Data, &rec))
			texts = append(texts, rec.Text)
		}
		return texts
	}
}

func TestStderr(t *testing.T) {
	l, texts := newStderr(t)
	l.read(strings.NewReader("one\ntwo\xff\n"))
	require.Equal(t, []string{"one\ntwo\uFFFD\n"}, texts())
	require.Equal(t, "one\ntwo\uFFFD", l.tail())
}

// A character can come in two reads.
func TestStderrSplitCharacters(t *testing.T) {
	l, texts := newStderr(t)
	for _, b := range []byte("é€😀.") {
		l.add([]byte{b})
	}
	l.end()
	require.Equal(t, "é€😀.", strings.Join(texts(), ""))
	require.Equal(t, "é€😀.", l.tail())

	l, texts = newStderr(t)
	l.read(strings.NewReader("torn \xe2\x82"))
	require.Equal(t, "torn \uFFFD", strings.Join(texts(), ""))
	require.Equal(t, "torn \uFFFD", l.tail())

	l, texts = newStderr(t)
	l.read(strings.NewReader("\xbf\xbf\xbf\xbf\xbf bad"))
	require.Equal(t, "\uFFFD bad", strings.Join(texts(), ""))
}

func TestStderrIsBounded(t *testing.T) {
	for name, chunk := range map[string]int{"one at a time": 1000, "just to the limit": stderrLimit, "all at once": 3 << 20, "halves": stderrLimit / 2} {
		t.Run(name, func(t *testing.T) {
			l, texts := newStderr(t)
			for sent := 0; sent < 3<<20; sent += chunk {
				l.add([]byte(strings.Repeat("x", chunk)))
			}
			l.add([]byte("the end"))
			all := texts()
			kept := 0
			for _, s := range all[:len(all)-1] {
				require.Empty(t, strings.Trim(s, "x"))
				kept += len(s)
			}
			require.LessOrEqual(t, kept, stderrLimit)
			require.Contains(t, all[len(all)-1], "the rest is not kept")
			require.Len(t, l.tail(), stderrTail)
			require.True(t, strings.HasSuffix(l.tail(), "the end"), "the end is what explains a failure")
			require.LessOrEqual(t, cap(l.last), 8<<20)
		})
	}
}
