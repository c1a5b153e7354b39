package jsontree

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

func newTree(t testing.TB, raw string, width, height int) *Tree {
	t.Helper()
	tree := New()
	tree.SetStyles(panetest.Styles(t, themes.DefaultDark))
	tree.SetSize(width, height)
	tree.Set([]byte(raw))
	return tree
}

func press(t *Tree, keys ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, k := range keys {
		cmd = t.Update(panetest.Key(k))
		for cmd != nil {
			msg, ok := cmd().(scannedMsg)
			if !ok {
				break
			}
			cmd = t.Update(msg)
		}
	}
	return cmd
}

// seek types a search and runs it.
func seek(t *Tree, text string) {
	press(t, "/")
	for _, r := range text {
		press(t, string(r))
	}
	for cmd := press(t, "enter"); cmd != nil; {
		cmd = t.Update(cmd())
	}
}

// at is the line under the cursor, without its styles.
func at(t *Tree) string {
	return strings.TrimRight(panetest.Plain(t.line(t.cursor)), " ")
}

func TestGolden(t *testing.T) {
	conversation, err := os.ReadFile("testdata/agent_end.json")
	require.NoError(t, err)
	cases := map[string]func(*Tree){
		"message": func(tr *Tree) { tr.Set(conversation); press(tr, "j", "j", "j", "j") },
		"string": func(tr *Tree) {
			tr.Set([]byte(`{"type":"tool","isError":false,"cost":0.25,"none":null,"text":"# patio tour\n\nA line that is so long that it has to be cut where the room ends, as it would be in a file of somebody's.\n- last"}`))
			press(tr, "G", "enter")
		},
		"search": func(tr *Tree) { tr.Set(conversation); seek(tr, "patio-tour.md") },
		"array": func(tr *Tree) {
			tr.Set([]byte(`{"items":[` + strings.TrimSuffix(strings.Repeat(`{"a":1},`, 2500), ",") + `],"big":"` + strings.Repeat("0123456789", 20_000) + `"}`))
			press(tr, "j", "j", "enter", "j", "G")
		},
		"text": func(tr *Tree) { tr.Set([]byte("npm warn deprecated\n    at something\n\ttabbed")) },
	}
	for name, prepare := range cases {
		panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string {
			tree := New()
			tree.SetStyles(s)
			tree.SetSize(w, h)
			prepare(tree)
			return tree.View()
		})
	}
}

func TestFolds(t *testing.T) {
	tr := newTree(t, `{"a":{"b":[1,2,{"c":true}]},"d":"x"}`, 60, 20)
	require.Len(t, tr.rows, 8) // everything of a small document is unfolded
	press(tr, "j", "h")
	require.Len(t, tr.rows, 3)
	require.Contains(t, at(tr), `a: {"b":[1,2,{"c":true}]}`)
	press(tr, "l")
	require.Len(t, tr.rows, 8)
	press(tr, "l", "l", "j", "j") // in a, in b, to its third
	require.Contains(t, at(tr), "2: {")
	require.Contains(t, panetest.Plain(tr.View()), ".a.b[2]")
	press(tr, "space")
	require.Contains(t, at(tr), `2: {"c":true}`)
	press(tr, "h") // to what holds it
	require.Contains(t, at(tr), "b: [")
	press(tr, "z")
	require.Len(t, tr.rows, 3)
	require.Contains(t, at(tr), "a:")
	press(tr, "z")
	require.Len(t, tr.rows, 8)
	press(tr, "g", "h")
	require.Len(t, tr.rows, 1)
	press(tr, "enter")
	require.Len(t, tr.rows, 8)
}

func TestCopies(t *testing.T) {
	raw := `{"text":"two\nlines \"q\" \u00e9","list":[1, 2],"n":1e3}`
	tr := newTree(t, raw, 60, 20)
	copied := func(keys ...string) string {
		return press(tr, keys...)().(pane.CopyMsg).Text
	}
	require.Equal(t, raw, copied("y"))
	require.Equal(t, "two\nlines \"q\" é", copied("j", "y"))
	require.Equal(t, "[1, 2]", copied("j", "y"))
	require.Equal(t, "1e3", copied("G", "y"))
	require.Equal(t, raw, copied("Y"))
}

func TestStrings(t *testing.T) {
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	raw, err := json.Marshal(map[string]string{"text": b.String()})
	require.NoError(t, err)
	tr := newTree(t, string(raw), 80, 20)
	press(tr, "j")
	require.Contains(t, at(tr), "line 0⏎line 1")
	require.Contains(t, at(tr), "KiB")
	press(tr, "enter")
	require.Contains(t, panetest.Plain(tr.View()), "│ line 5 ")
	require.Less(t, len(tr.rows), 10_000)
	press(tr, "G")
	require.Contains(t, at(tr), "after this")
	press(tr, "enter")
	require.Regexp(t, `│ line [5-9]\d\d\d`, at(tr))
	press(tr, "g", "j", "j")
	require.Contains(t, at(tr), "before this")
	seek(tr, "LINE 39999")
	require.Contains(t, at(tr), "│ line 39999")
	require.Contains(t, panetest.Plain(tr.View()), "match 1 of 1")
	tr.SetSize(30, 20)
	panetest.Screen(t, tr.View(), 30, 20)
	press(tr, "h")
	require.Contains(t, at(tr), "text:")
}

func TestLargeArrays(t *testing.T) {
	const n = 1_234_567
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d", i)
	}
	b.WriteByte(']')
	tr := newTree(t, b.String(), 80, 20)
	require.Len(t, tr.rows, 3)
	press(tr, "j", "j", "enter")
	require.Contains(t, at(tr), "1000000 … 1234566")
	press(tr, "G", "enter")
	require.Contains(t, at(tr), "1234000 … 1234566")
	press(tr, "G")
	require.Contains(t, at(tr), "1234566: 1234566")
	require.Contains(t, panetest.Plain(tr.View()), ".[1234566]")
	seek(tr, "777777")
	require.Contains(t, at(tr), "777777: 777777")
	press(tr, "z", "z")
	require.LessOrEqual(t, len(tr.rows), maxUnfold+perGroup)
	require.Contains(t, panetest.Plain(tr.View()), "stays folded")
	require.LessOrEqual(t, tr.doc.made, maxNodes+perGroup+1)
}

func TestSearch(t *testing.T) {
	tr := newTree(t, `{"first":"needle","b":{"Needle":1},"c":["x","a \"quoted\" needle"],"d":"né ÉCOLE"}`, 60, 20)
	press(tr, "z") // folded again: a search unfolds
	seek(tr, "needle")
	require.Contains(t, at(tr), "first:")
	press(tr, ".")
	require.Contains(t, at(tr), "Needle: 1")
	press(tr, ".")
	require.Contains(t, at(tr), `1: "a "quoted" needle"`)
	press(tr, ".")
	require.Contains(t, at(tr), "first:")
	press(tr, ",")
	require.Contains(t, at(tr), "1:")
	require.True(t, tr.Back())
	require.False(t, tr.Back())
	seek(tr, `"quoted"`)
	require.Contains(t, at(tr), "1:")
	seek2 := func(s string) { tr.Back(); seek(tr, s) }
	seek2("école")
	require.Contains(t, at(tr), "d:")
	seek2("absent")
	require.Contains(t, panetest.Plain(tr.View()), "no match for absent")
	press(tr, "/")
	require.True(t, tr.Typing())
	require.NotNil(t, tr.Cursor())
	require.NotEmpty(t, tr.Keys())
	tr.Update(tea.PasteMsg{Content: "\x1b]52;c;eA==\x07\u202e"})
	panetest.Screen(t, tr.View(), 60, 20)
	press(tr, "esc")
	require.False(t, tr.Typing())
	require.Nil(t, tr.Cursor())
}

func TestStaleSearchIsIgnored(t *testing.T) {
	tr := newTree(t, `{"a":"needle"}`, 60, 20)
	press(tr, "/", "n")
	cmd := press(tr, "enter")
	tr.Set([]byte(`{"other":1}`))
	tr.Update(cmd())
	require.Empty(t, tr.hits)
}

func TestHostile(t *testing.T) {
	for name, h := range panetest.Hostile(20_000) { // each letter of it is typed
		t.Run(name, func(t *testing.T) {
			q, err := json.Marshal(h)
			require.NoError(t, err)
			docs := []string{
				h, `{"` + h + `":"` + h + `",` + string(q) + `:` + string(q) + `,"n":[` + string(q) + `]}`, h + `{`, `[` + h + `]`,
				`{"text":` + string(q[:len(q)-1]) + strings.Repeat(strings.Trim(string(q), `"`)+`\n`, 500) + `"}`,
			}
			for _, doc := range docs {
				tr := newTree(t, doc, 60, 12)
				for range 12 {
					panetest.Screen(t, tr.View(), 60, 12)
					press(tr, "enter", "j")
				}
				seek(tr, h)
				panetest.Screen(t, tr.View(), 60, 12)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	conversation, err := os.ReadFile("testdata/agent_end.json")
	require.NoError(t, err)
	tr := newTree(t, string(conversation), 80, 20)
	seek(tr, "tour")
	panetest.EverySize(t, tr)
	tr.SetSize(0, 0)
	require.Empty(t, tr.View())
	tr.Set(nil)
	tr.SetSize(40, 5)
	require.Contains(t, panetest.Plain(tr.View()), "nothing to show")
}

func TestDeepDocument(t *testing.T) {
	tr := newTree(t, strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000), 60, 12)
	panetest.Screen(t, tr.View(), 60, 12)
	press(tr, "z", "z", "G")
	panetest.Screen(t, tr.View(), 60, 12)
}

func TestMouse(t *testing.T) {
	tr := newTree(t, `{"a":{"b":1},"c":2}`, 60, 12)
	tr.Update(tea.MouseClickMsg{Y: 1, Button: tea.MouseLeft})
	require.Contains(t, at(tr), "a:")
	tr.Update(tea.MouseClickMsg{Y: 1, Button: tea.MouseLeft}) // again folds it
	require.Len(t, tr.rows, 3)
	tr.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	require.Contains(t, at(tr), "c:")
	tr.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	require.Equal(t, 0, tr.cursor)
	tr.Update(tea.MouseClickMsg{Y: 11, Button: tea.MouseLeft}) // the last line is no row
	require.Equal(t, 0, tr.cursor)
}

func FuzzTree(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"c\n\u00e9\\"}],"d":"x"}`), "c")
	f.Add([]byte(`{"a" "b":}]]`), "\\")
	f.Add([]byte("\"\\ud83d\\ude00"), "u")
	s := panetest.Styles(f, themes.DefaultDark)
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		tr := New()
		tr.SetStyles(s)
		tr.SetSize(50, 10)
		// What isn't JSON as a whole is walked like JSON all the same.
		for _, doc := range []*Document{Load(raw), loose(raw)} {
			tr.Show(doc)
			for range 8 {
				panetest.Screen(t, tr.View(), 50, 10)
				press(tr, "enter", "j")
			}
			seek(tr, text)
			press(tr, ".", "z", "z", "G")
			panetest.Screen(t, tr.View(), 50, 10)
		}
	})
}

// loose is a document that is taken for JSON without being checked, as a large one is.
func loose(raw []byte) *Document {
	d := &Document{raw: raw, json: true, root: newNode(raw, nil, item{from: 0, to: len(raw)}, 0)}
	d.root.open = true
	d.made = 1 + d.root.scan(raw)
	d.unfold(maxFirst)
	return d
}

func BenchmarkOpen60MB(b *testing.B) {
	var items strings.Builder
	items.WriteString(`{"type":"response","data":{"messages":[`)
	for i := 0; items.Len() < 60<<20; i++ {
		if i > 0 {
			items.WriteByte(',')
		}
		fmt.Fprintf(&items, `{"role":"assistant","content":[{"type":"text","text":"message %d"}],"usage":{"input":1,"output":2}}`, i)
	}
	items.WriteString(`]}}`)
	docs := map[string]string{
		"items":  items.String(),
		"string": `{"type":"tool","text":"` + strings.Repeat(`0123456789abcdef\n`, 60<<20/18) + `"}`,
	}
	s := panetest.Styles(b, themes.DefaultDark)
	for name, doc := range docs {
		raw := []byte(doc)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				tr := New()
				tr.SetStyles(s)
				tr.SetSize(120, 40)
				tr.Set(raw)
				_ = tr.View()
			}
		})
		b.Run(name+"-view", func(b *testing.B) {
			tr := New()
			tr.SetStyles(s)
			tr.SetSize(120, 40)
			tr.Set(raw)
			press(tr, "j", "j", "enter", "enter")
			for b.Loop() {
				press(tr, "j")
				_ = tr.View()
			}
		})
		b.Run(name+"-search", func(b *testing.B) {
			for b.Loop() {
				Find(raw, "not there at all", maxHits)
			}
		})
	}
}
