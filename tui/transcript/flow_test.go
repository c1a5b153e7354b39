package transcript

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"patio/tui/panetest"
)

// inPieces adds a text in pieces of random sizes.
func inPieces(text string, markdown bool, seed uint64) *flow {
	r := rand.New(rand.NewPCG(seed, 1))
	f := newFlow(markdown)
	for text != "" {
		n := min(len(text), 1+r.IntN(60))
		f.add(text[:n])
		text = text[n:]
	}
	f.end()
	return f
}

func kindsOf(f *flow) string {
	var b strings.Builder
	for _, p := range f.parts {
		b.WriteByte("pmc…"[p.kind])
	}
	return strings.ReplaceAll(b.String(), "\xe2", "…")
}

func TestPiecesGiveTheSameParts(t *testing.T) {
	for name, text := range map[string]string{
		"prose": prose,
		"long":  strings.Repeat(prose+"\n\n", 8),
		"list":  strings.Repeat("- an item of some length that goes on\n", 300),
		"table": "| a | b |\n|---|---|\n" + strings.Repeat("| one | two |\n", 900),
		"code":  "before\n```go\n" + strings.Repeat("x := 1\n\n", 900) + "```\nafter",
		"open":  "```\nnever closed\n" + strings.Repeat("a\n", 4000),
		"line":  strings.Repeat("no end ", 3000),
		"plain": strings.Repeat("漢字", 3000),
	} {
		for _, markdown := range []bool{true, false} {
			t.Run(fmt.Sprint(name, markdown), func(t *testing.T) {
				want := flowOf(text, markdown)
				for seed := range uint64(5) {
					got := inPieces(text, markdown, seed)
					require.Equal(t, kindsOf(want), kindsOf(got))
					require.True(t, want.same(text))
					require.True(t, got.same(text))
					require.False(t, got.same(text+"x"))
					require.Equal(t, want.words, got.words)
					require.Equal(t, want.lines, got.lines)
					for k := range want.parts {
						require.Equal(t, want.parts[k].text, got.parts[k].text)
						require.Equal(t, want.parts[k].tight, got.parts[k].tight)
						require.LessOrEqual(t, len(got.parts[k].text), 4*maxPart+200)
					}
				}
			})
		}
	}
}

func TestTextIsKeptWhole(t *testing.T) {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, text := range []string{prose, strings.Repeat("- a\n\n  b\n", 500), "| a | b |\n|---|---|\n" + strings.Repeat("| one | two |\n", 900), "```sh\nls\n```", "a\n\n```\nx\n```\n\nb", "\n\n\nlate", "1. a\n2. b\n\n    c\n"} {
		require.Equal(t, squeeze(text), squeeze(inPieces(text, true, 1).all()))
		require.Equal(t, text, inPieces(text, false, 1).all())
	}
}

// left is how many bytes of the text were left out.
func (f *flow) left() int {
	if f.head == 0 {
		return 0
	}
	return f.parts[f.head-1].left
}

func TestTheMiddleIsLeftOut(t *testing.T) {
	for _, size := range []int{90 << 10, 2 << 20} {
		var b strings.Builder
		for k := 0; b.Len() < size; k++ {
			fmt.Fprintf(&b, "line %d\n", k)
		}
		text := b.String()
		for name, f := range map[string]*flow{"whole": flowOf(text, false), "pieces": inPieces(text, false, 1)} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				f.end()
				require.LessOrEqual(t, f.kept, keepHead+keepTail)
				require.Equal(t, len(text), f.kept+f.left())
				all := f.all()
				require.True(t, strings.HasPrefix(all, "line 0\nline 1\n"))
				require.True(t, strings.HasSuffix(text, all[len(all)-1000:]))
				require.Contains(t, all, "left out")
				require.Equal(t, strings.Count(text, "\n"), f.lines)
				require.True(t, f.same(text))
			})
		}
	}
}

func TestFences(t *testing.T) {
	for text, want := range map[string]string{
		"```\na\n```":                           "c",
		"a\n```go\nb\n```\nc":                   "mcm",
		"~~~\n```\n~~~\nx":                      "cm",
		"````\n```\n````\n":                     "c",
		"- a\n\n  ```\n  b\n\nc\n  ```\n\nd":    "mm",
		"a\n\nb\n\n- c\n\n  d\n\ne":             "mmmm",
		"``` not `a` fence\n\nb":                "mm",
		"1. ```sh\n   ls\n\nx\n   ```\n\ny":     "mm",
		"```\n\n```\n":                          "c",
		"":                                      "",
		"\n\n\n":                                "",
		"a\r\n\r\n```\r\nb\r\n```\r\n\r\nc\r\n": "mcm",
	} {
		require.Equal(t, want, kindsOf(inPieces(text, true, 3)), "%q", text)
	}
}

func TestStreamedEqualsWhole(t *testing.T) {
	text := strings.Repeat(prose+"\n", 3)
	p := &tape{t: t}
	p.from(object{"type": "message_start", "message": message("assistant", []any{}, "provider", "demo", "model", "tour")})
	tr := made(t, "patio-dark", 100, 200, p.records)
	for k := 0; k < len(text); k += 37 {
		at := len(p.records)
		p.event(object{"type": "text_delta", "contentIndex": 0, "delta": text[k:min(k+37, len(text))]})
		tr.Apply(p.records[at:])
		panetest.Screen(t, tr.View(), 100, 200)
	}
	at := len(p.records)
	p.from(object{"type": "message_end", "message": message("assistant", []any{object{"type": "text", "text": text}}, "stopReason", "stop", "provider", "demo", "model", "tour")})
	tr.Apply(p.records[at:])
	whole := made(t, "patio-dark", 100, 200, (&tape{t: t}).from(object{"type": "message_end", "message": message("assistant", []any{object{"type": "text", "text": text}}, "stopReason", "stop", "provider", "demo", "model", "tour")}).records)
	streamed, want := plainOf(tr), plainOf(whole)
	require.Equal(t, strings.Replace(want, "◆ Pi demo/tour", "◆ Pi          ", 1), strings.Replace(streamed, "◆ Pi demo/tour", "◆ Pi          ", 1))
}

func TestTheFinalTextCounts(t *testing.T) {
	p := &tape{t: t}
	p.from(object{"type": "agent_start"}).from(object{"type": "message_start", "message": message("assistant", []any{})})
	p.event(object{"type": "text_delta", "contentIndex": 0, "delta": "draft"})
	p.event(object{"type": "toolcall_start", "contentIndex": 1}).event(object{"type": "toolcall_delta", "contentIndex": 1, "delta": `{"comm`})
	tr := made(t, "patio-dark", 100, 20, p.records)
	require.Contains(t, plainOf(tr), "tool call  writing, 6 B")
	at := len(p.records)
	p.answer("aborted", text("final"), text("  "))
	tr.Apply(p.records[at:])
	view := plainOf(tr)
	require.NotContains(t, view, "draft")
	require.Contains(t, view, "final")
	require.Contains(t, view, "■ tool call  stopped")
	require.Contains(t, view, "■ stopped")
	require.True(t, tr.Working())
	at = len(p.records)
	p.from(object{"type": "agent_end", "willRetry": true})
	tr.Apply(p.records[at:])
	require.True(t, tr.Working())
	p.from(object{"type": "agent_settled"})
	tr.Apply(p.records[at+1:])
	require.False(t, tr.Working())
}

func TestQueue(t *testing.T) {
	p := (&tape{t: t}).from(object{"type": "queue_update", "steering": []any{"now"}, "followUp": []any{"then", object{"text": "later"}}})
	tr := made(t, "patio-dark", 100, 20, p.records)
	steering, followUp := tr.Queue()
	require.Equal(t, []string{"now"}, steering)
	require.Equal(t, []string{"then", "later"}, followUp)
}

func TestLiteral(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                            "plain",
		"a <b> `<c>` d":                    `a \<b> ` + "`<c>` d",
		"<https://x.y>":                    "<https://x.y>",
		"&amp; &#27; &zwj; &eacute;":       "&amp; &amp;#27; &amp;zwj; &eacute;",
		"```\n<a>\n```\n<b>":               "```text\n<a>\n```\n\\<b>",
		`\<x> \& <`:                        `\<x> \& \<`,
		"`open <a>":                        "`open \\<a>",
		"&#999999999999999999999999999999": "&amp;#999999999999999999999999999999",
	} {
		require.Equal(t, want, literal(in))
	}
}

func TestMarkdownIsSetWell(t *testing.T) {
	tr := made(t, "patio-dark", 60, 20, nil)
	set := func(s string) []string {
		lines := tr.markdown(s, 40)
		for k := range lines {
			lines[k] = ansi.Strip(lines[k])
		}
		return lines
	}
	require.Equal(t, []string{"• one two three four five six seven", "  eight nine ten", "  • nested words that go on and on and", "    on"},
		set("- one two three four five six seven eight nine ten\n  - nested words that go on and on and on\n"))
	require.Equal(t, []string{"10. one two three four five six seven", "    eight nine"}, set("10. one two three four five six seven eight nine\n"))
	require.Equal(t, []string{"│ one two three four five six seven", "│ eight nine"}, set("> one two three four five six seven eight nine\n"))
	require.Equal(t, []string{"a <b>bold</b> & <!-- c --> `"}, set("a <b>bold</b> & <!-- c --> `\n"))
	for _, l := range set("| aaaaaaaaaaaaaaaaaaaaaaa | bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb |\n|---|---|\n| c | d |\n") {
		require.LessOrEqual(t, ansi.StringWidth(l), 40)
	}
}

func TestDiffs(t *testing.T) {
	d := diffOf("   ...\n 3 a\n-4 b\n+4 c d\n   ...")
	require.Equal(t, []diffLine{{'~', 0, ""}, {' ', 3, "a"}, {'-', 4, "b"}, {'+', 4, "c d"}, {'~', 0, ""}}, d.lines)
	require.Equal(t, 1, d.added)
	require.Equal(t, 1, d.removed)
	for _, bad := range []string{"", " 1 same", "x", "+ no number", "@@ -1 +1 @@"} {
		require.Nil(t, diffOf(bad), bad)
	}
	d = diffOfArgs("edit", `{"path":"a","oldText":"one\ntwo\nthree","newText":"one\n2\nthree"}`)
	require.Equal(t, []diffLine{{' ', 0, "one"}, {'-', 0, "two"}, {'+', 0, "2"}, {' ', 0, "three"}}, d.lines)
	d = diffOfArgs("edit", `{"edits":[{"oldText":"a","newText":"b"},{"oldText":"","newText":"c"}]}`)
	require.Equal(t, []diffLine{{'-', 0, "a"}, {'+', 0, "b"}, {'~', 0, ""}, {'+', 0, "c"}}, d.lines)
	d = diffOfArgs("write", `{"content":"a\nb\n"}`)
	require.Equal(t, []diffLine{{'+', 1, "a"}, {'+', 2, "b"}}, d.lines)
	require.Nil(t, diffOfArgs("edit", `{"edits":[{"oldText":1}]}`))
	require.Nil(t, diffOfArgs("write", `{}`))
	require.Nil(t, diffOfArgs("bash", `{}`))
	d = diffOfArgs("write", `{"content":"`+strings.Repeat(`a\n`, 5000)+`"}`)
	require.Len(t, d.lines, maxDiffLines)
	require.Equal(t, 3000, d.left)
}

func TestAdvice(t *testing.T) {
	for problem, part := range map[string]string{"401 Unauthorized": "key", "529 Overloaded": "Wait", "prompt is too long": "/compact", "Connection error.": "Egress", "400": "another model"} {
		require.Contains(t, adviceFor(problem), part)
	}
}
