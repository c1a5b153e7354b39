package sessions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func write(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	return path
}

const head = `{"type":"session","version":3,"id":"h","timestamp":"2026-12-01T02:55:13.179Z","cwd":"/work"}` + "\n"

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestRecordedSession(t *testing.T) {
	f := open(t, filepath.Join("testdata", "recorded.jsonl"))
	require.Equal(t, 3, f.Header().Version)
	require.NotEmpty(t, f.Header().Cwd)
	require.Empty(t, f.Problems())
	i, err := f.Info()
	require.NoError(t, err)
	require.Equal(t, "fake/fake-1", i.Model())
	require.Equal(t, "medium", i.Thinking)
	require.Equal(t, "My fake session", i.Title())
	require.Contains(t, i.First, "TOOL:env")
	require.Equal(t, "queued steer", i.Last)
}

func TestCopyTo(t *testing.T) {
	from := write(t, head, `{"type":"label","id":"1", "cwd":"/work"}`+"\n", "junk\r\n", `{"torn`)
	to := filepath.Join(t.TempDir(), "copy.jsonl")
	require.NoError(t, CopyTo(from, to, "/new place"))
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(head, `"/work"`, `"/new place"`, 1)+`{"type":"label","id":"1", "cwd":"/work"}`+"\n"+"junk\r\n"+`{"torn`, string(got))
	require.ErrorIs(t, CopyTo(from, to, "/x"), os.ErrExist, "it never overwrites")
	require.Error(t, CopyTo(write(t, "junk\n"), filepath.Join(t.TempDir(), "x"), "/x"))
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestVersions(t *testing.T) {
	v1 := open(t, write(t, `{"type":"session","id":"a","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w","provider":"x","modelId":"y"}`+"\n",
		`{"type":"message","message":{"role":"user","content":"hello"}}`+"\n",
		`{"type":"model_change","provider":"p","modelId":"m"}`+"\n",
		`{"type":"message","message":{"role":"hookMessage","content":"x"}}`+"\n"))
	require.Equal(t, 1, v1.Header().Version)
	require.Len(t, v1.Path(), 3, "without ids the order of lines is the tree")
	require.Equal(t, "custom", v1.Entries()[2].Role)
	i, err := v1.Info()
	require.NoError(t, err)
	require.Equal(t, "p/m", i.Model())
	require.Equal(t, "hello", i.Title())

	v9 := open(t, write(t, strings.Replace(head, `"version":3`, `"version":9`, 1), `{"type":"new_kind","id":"1","parentId":null}`+"\n"))
	_, fatal := v9.Fatal()
	require.False(t, fatal, "a newer version is no reason to refuse")
	require.Len(t, v9.Entries(), 1)
}

func TestBranches(t *testing.T) {
	f := open(t, write(t, head,
		`{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"one"}]}}`+"\n",
		`{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","provider":"a","model":"old"}}`+"\n",
		`{"type":"thinking_level_change","id":"3","parentId":"1","thinkingLevel":"high"}`+"\n",
		`{"type":"message","id":"4","parentId":"3","message":{"role":"assistant","provider":"a","model":"new"}}`+"\n"))
	var ids []string
	for _, e := range f.Path() {
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"1", "3", "4"}, ids, "the last entry is the leaf")
	i, err := f.Info()
	require.NoError(t, err)
	require.Equal(t, "a/new", i.Model())
	require.Equal(t, "high", i.Thinking)
}

func TestProblems(t *testing.T) {
	e := func(id, parent string) string {
		return fmt.Sprintf(`{"type":"message","id":"%s","parentId":"%s","message":{"role":"user","content":"x"}}`+"\n", id, parent)
	}
	for name, tc := range map[string]struct {
		lines []string
		want  []string
		fatal bool
	}{
		"good":            {[]string{head, e("1", ""), e("2", "1")}, nil, false},
		"empty":           {nil, nil, false},
		"duplicate id":    {[]string{head, e("1", ""), e("1", "")}, []string{`line 3: the id "1" is also that of line 2`}, true},
		"cycle":           {[]string{head, e("1", "3"), e("2", "1"), e("3", "2")}, []string{"line 2: its parents go in a circle"}, true},
		"own parent":      {[]string{head, e("1", "1")}, []string{"line 2: it is its own parent"}, true},
		"lost parent":     {[]string{head, e("1", ""), e("2", "gone")}, []string{`line 3: its parent "gone" isn't there: what came before it is lost to Pi`}, false},
		"no header":       {[]string{e("1", "")}, []string{"line 1: no header comes first: this isn't a session of Pi's"}, true},
		"two headers":     {[]string{head, head, e("1", "")}, []string{"line 2: a second header: it is passed over"}, false},
		"junk":            {[]string{"hello\n"}, []string{"the file holds no session: Pi refuses it", "line 1: not a JSON object: it is passed over"}, true},
		"junk between":    {[]string{head, "null\n", "[1]\n", "\n", e("1", "")}, []string{"line 2: not a JSON object: it is passed over", "line 3: not a JSON object: it is passed over"}, false},
		"torn tail":       {[]string{head, e("1", ""), `{"type":"mess`}, []string{"line 3: the last line has no line end: what Pi appends would be glued to it", "line 3: not a JSON object: it is passed over"}, false},
		"byte order mark": {[]string{"\xef\xbb\xbf" + head, e("1", "")}, []string{"line 1: a byte order mark stands before the header: Pi takes the file for none of its own"}, true},
		"NUL bytes":       {[]string{head, "\x00\x00\x00\n", e("1", "")}, []string{"line 2: not a JSON object: it is passed over"}, false},
		"CR LF":           {[]string{strings.Replace(head, "\n", "\r\n", 1), strings.Replace(e("1", ""), "\n", "\r\n", 1)}, []string{"line 1: lines end in CR LF"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, write(t, tc.lines...))
			var got []string
			for _, p := range f.Problems() {
				got = append(got, p.String())
			}
			require.Equal(t, tc.want, got)
			_, fatal := f.Fatal()
			require.Equal(t, tc.fatal, fatal)
		})
	}
}

func TestRepairTail(t *testing.T) {
	whole := `{"type":"label","id":"1"}`
	for name, tc := range map[string]struct {
		in, want string
		cut      string
	}{
		"good":            {head + whole + "\n", head + whole + "\n", ""},
		"empty":           {"", "", ""},
		"no line end":     {head + whole, head + whole + "\n", ""},
		"torn":            {head + whole + "\n" + `{"type":"mes`, head + whole + "\n", `{"type":"mes`},
		"torn, one line":  {`{"type":"ses`, "", `{"type":"ses`},
		"torn, very long": {head + strings.Repeat("x", 200<<10), head, strings.Repeat("x", 200<<10)},
		"zeros":           {head + "\x00\x00\x00", head, "\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, tc.in)
			r, err := RepairTail(path)
			require.NoError(t, err)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
			if tc.cut != "" {
				kept, err := os.ReadFile(r.Kept)
				require.NoError(t, err)
				require.Equal(t, tc.cut, string(kept), "nothing is lost")
			}
			again, err := RepairTail(path)
			require.NoError(t, err)
			require.Zero(t, again, "a second repair has nothing to do")
		})
	}
	_, err := RepairTail(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Any tree that Pi could write is read back, whatever the size of its entries.
func TestAnyTree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(r, "entries")
		var b strings.Builder
		b.WriteString(head)
		parents := make([]int, n)
		for i := range n {
			parents[i] = rapid.IntRange(-1, i-1).Draw(r, "parent")
			parent := "null"
			if parents[i] >= 0 {
				parent = fmt.Sprintf(`"e%d"`, parents[i])
			}
			fmt.Fprintf(&b, `{"type":"custom","id":"e%d","parentId":%s,"x":"%s"}`+"\n", i, parent, strings.Repeat("\u2028", rapid.IntRange(0, 200).Draw(r, "size")))
		}
		f := open(t, write(t, b.String()))
		require.Empty(r, f.Problems())
		require.Len(r, f.Entries(), n)
		want := 0
		for at := n - 1; at >= 0; at = parents[at] {
			want++
		}
		require.Len(r, f.Path(), want)
		for i, e := range f.Entries() {
			body, err := f.Body(e)
			require.NoError(r, err)
			require.Contains(r, string(body), fmt.Sprintf(`"id":"e%d"`, i))
		}
	})
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(head + `{"type":"message","id":"1","parentId":"1"}`))
	f.Add([]byte("\xef\xbb\xbf{\"type\":\"session\"}\r\n\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f.jsonl")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		file, err := Open(path)
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		file.Problems()
		file.Path()
		_, err = file.Info()
		require.NoError(t, err)
	})
}
