package journal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

const childEnv = "PATIO_JOURNAL_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		limitedChild(path)
		return
	}
	goleak.VerifyTestMain(m)
}

func openTest(t *testing.T) (*Journal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.ndjson")
	return reopen(t, path), path
}

func reopen(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(path, "s1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	if len(b) == 0 {
		return nil
	}
	require.True(t, bytes.HasSuffix(b, []byte{'\n'}))
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func TestAppendWritesOneLinePerRecord(t *testing.T) {
	j, path := openTest(t)
	j.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 60, time.FixedZone("", 3600)) }

	seq, err := j.Append("state", map[string]any{"phase": "ready", "html": "<&>"})
	require.NoError(t, err)
	require.EqualValues(t, 1, seq)
	raw := "{ \"b\":1,\"a\" :\"\u2028\\u00e9é\", \"n\":1.0e+2}"
	seq, err = j.AppendRaw("rpc", []byte(raw[:7]), nil, []byte(raw[7:]))
	require.NoError(t, err)
	require.EqualValues(t, 2, seq)
	_, err = j.Append("none", nil)
	require.NoError(t, err)

	const head = `,"time":"2026-01-02T02:04:05.00000006Z","session":"s1","type":`
	require.Equal(t, []string{
		`{"v":1,"seq":1` + head + `"state","data":{"html":"<&>","phase":"ready"}}`,
		`{"v":1,"seq":2` + head + `"rpc","data":` + raw + `}`,
		`{"v":1,"seq":3` + head + `"none","data":null}`,
	}, lines(t, path))

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	seq, offset := j.Last()
	require.EqualValues(t, 3, seq)
	require.Equal(t, info.Size(), offset)
}

func TestAppendRefuses(t *testing.T) {
	j, path := openTest(t)
	for name, c := range map[string]struct {
		typ   string
		parts []string
		want  string
	}{
		"line feed":           {"rpc", []string{`{"a":`, "\n1}"}, "line feed"},
		"no data":             {"rpc", []string{"", ""}, "no data"},
		"no type":             {"", []string{"{}"}, "record type"},
		"type with quote":     {`a"b`, []string{"{}"}, "record type"},
		"type with backslash": {`a\b`, []string{"{}"}, "record type"},
		"type with line feed": {"a\nb", []string{"{}"}, "record type"},
		"type not ASCII":      {"é", []string{"{}"}, "record type"},
		"long type":           {strings.Repeat("a", maxType+1), []string{"{}"}, "record type"},
	} {
		t.Run(name, func(t *testing.T) {
			var parts [][]byte
			for _, p := range c.parts {
				parts = append(parts, []byte(p))
			}
			_, err := j.AppendRaw(c.typ, parts...)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := j.AppendRaw("rpc", []byte("1\n"))
	require.ErrorIs(t, err, ErrLineFeed)
	_, err = j.AppendRaw("rpc", make([]byte, MaxRecord))
	require.ErrorContains(t, err, "more than")
	_, err = j.Append("rpc", func() {})
	require.ErrorContains(t, err, "unsupported type")
	require.Empty(t, lines(t, path))

	seq, err := j.Append("rpc", 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, seq)
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
	_, err = j.Append("rpc", 1)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, j.Sync(), ErrClosed)
	_, err = j.NewReader(0)
	require.ErrorIs(t, err, ErrClosed)
}

func TestLongestPrefixFits(t *testing.T) {
	b := appendPrefix(nil, ^uint64(0), time.Unix(0, 1), strings.Repeat("s", maxSession), strings.Repeat("t", maxType))
	require.LessOrEqual(t, len(b), maxPrefix)
	p, ok := parsePrefix(b)
	require.True(t, ok)
	require.Equal(t, ^uint64(0), p.seq)
}

func TestOpenCutsTornTailOfEachLength(t *testing.T) {
	j, path := openTest(t)
	_, err := j.Append("a", map[string]string{"x": "first"})
	require.NoError(t, err)
	_, first := j.Last()
	_, err = j.Append("b", map[string]string{"x": "second"})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	for n := range len(whole) + 1 {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
		wantEnd, wantSeq := int64(0), uint64(0)
		if int64(n) >= first {
			wantEnd, wantSeq = first, 1
		}
		if n == len(whole) {
			wantEnd, wantSeq = int64(n), 2
		}
		j := reopen(t, path)
		seq, end := j.Last()
		require.Equal(t, wantSeq, seq, "cut at %d", n)
		require.Equal(t, wantEnd, end)
		require.Equal(t, int64(n)-wantEnd, j.Cut())
		seq, err := j.Append("c", "next")
		require.NoError(t, err)
		require.Equal(t, wantSeq+1, seq)
		require.NoError(t, j.Close())

		got := lines(t, path)
		require.Len(t, got, int(wantSeq)+1)
		require.True(t, strings.HasPrefix(string(whole), strings.Join(got[:wantSeq], "\n")))
	}
}

func TestOpenCutsDamagedTail(t *testing.T) {
	record := `{"v":1,"seq":7,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":1}` + "\n"
	for name, c := range map[string]struct {
		tail string
		seq  uint64
	}{
		"zeros":                      {strings.Repeat("\x00", 5000), 7},
		"zeros then LF":              {strings.Repeat("\x00", 5000) + "\n", 7},
		"half a record then LF":      {record[:40] + "\n", 7},
		"empty lines":                {"\n\n\n", 7},
		"several bad lines":          {"x\n{\n" + record[:len(record)-3] + "\n", 7},
		"longer than a block":        {record[:70] + `"` + strings.Repeat("y", 3*backBlock), 7},
		"long line without its end":  {record[:70] + `"` + strings.Repeat("y", fullCheck+1) + "\n", 7},
		"long line, whole":           {`{"v":1,"seq":8,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":"` + strings.Repeat("y", fullCheck) + `"}` + "\n", 8},
		"long line, keys reordered":  {`{"data":"` + strings.Repeat("y", fullCheck) + `","type":"a","seq":9,"session":"s1","time":"2026-01-02T03:04:05Z","v":1}` + "\n", 9},
		"short line, keys reordered": {`{"seq":9,"v":1,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":{}}` + "\n", 9},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			require.NoError(t, os.WriteFile(path, []byte(record+c.tail), 0o600))
			j := reopen(t, path)
			seq, end := j.Last()
			require.Equal(t, c.seq, seq)
			want := len(record)
			if c.seq != 7 {
				want += len(c.tail)
			}
			require.EqualValues(t, want, end)
			require.EqualValues(t, len(record)+len(c.tail)-want, j.Cut())
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.EqualValues(t, want, info.Size())
		})
	}
}

func TestOpenRefusesWhatIsNotItsJournal(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"a text file":          {"hello\nworld\n", "not a journal"},
		"one line without LF":  {"hello", "not a journal"},
		"another JSON log":     {`{"type":"session","version":3}` + "\n", "not a journal"},
		"a later version":      {`{"v":2,"seq":1,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":1}` + "\n", "not a journal"},
		"another session's":    {`{"v":1,"seq":1,"time":"2026-01-02T03:04:05Z","session":"s2","type":"a","data":1}` + "\n", `belongs to session "s2"`},
		"no sequence number":   {`{"v":1,"seq":0,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":1}` + "\n", "not a journal"},
		"number out of bounds": {`{"v":1,"seq":99999999999999999999,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":1}` + "\n", "not a journal"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
			_, err := Open(path, "s1")
			require.ErrorContains(t, err, c.want)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, c.content, string(b))
		})
	}

	dir := t.TempDir()
	_, err := Open(dir, "s1")
	require.Error(t, err)
	_, err = Open(filepath.Join(dir, "j"), "a\"b")
	require.ErrorContains(t, err, "session id")
	require.NoError(t, os.Symlink(filepath.Join(dir, "target"), filepath.Join(dir, "link")))
	_, err = Open(filepath.Join(dir, "link"), "s1")
	require.ErrorIs(t, err, syscall.ELOOP)
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	_, err = Open(filepath.Join(dir, "fifo"), "s1")
	require.ErrorContains(t, err, "not a regular file")
	_, err = OpenReader(filepath.Join(dir, "fifo"), 0)
	require.ErrorContains(t, err, "not a regular file")
}

func TestOpenIsExclusive(t *testing.T) {
	j, path := openTest(t)
	r, err := j.NewReader(0)
	require.NoError(t, err)
	_, err = Open(path, "s1")
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, j.Close())
	// A reader that is still draining doesn't hold the lock.
	reopen(t, path)
	require.NoError(t, r.Close())
}

func TestConcurrentAppendsKeepOrder(t *testing.T) {
	j, path := openTest(t)
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				_, err := j.Append("n", [2]int{w, i})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := lines(t, path)
	require.Len(t, got, writers*each)
	next := [writers]int{}
	for i, line := range got {
		r, err := Decode([]byte(line))
		require.NoError(t, err)
		require.EqualValues(t, i+1, r.Seq)
		var pair [2]int
		require.NoError(t, json.Unmarshal(r.Data, &pair))
		require.Equal(t, next[pair[0]], pair[1])
		next[pair[0]]++
	}
}
