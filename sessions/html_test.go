package sessions

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// harmless are the tags that a page has, with their attributes.
var harmless = map[string][]string{
	"html": {"lang"}, "head": nil, "meta": {"charset", "http-equiv", "content", "name"}, "title": nil, "style": nil, "body": nil,
	"header": nil, "main": nil, "h1": nil, "h2": nil, "small": nil, "dl": nil, "dt": nil, "dd": nil, "article": {"class"}, "p": {"class"},
	"div": {"class", "dir"}, "pre": nil, "details": {"class", "id", "open"}, "summary": nil, "b": nil, "span": {"class"}, "img": {"alt", "src"},
}

// requireHarmless reads a page as a browser does and knows every tag in it.
func requireHarmless(t testing.TB, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	styles, open := 0, []string{}
	for n := range root.Descendants() {
		require.NotEqual(t, html.CommentNode, n.Type, n.Data)
		if n.Type != html.ElementNode {
			continue
		}
		attributes, known := harmless[n.Data]
		require.True(t, known, "<%s> in the page", n.Data)
		open = append(open, n.Data)
		for _, a := range n.Attr {
			require.True(t, slices.Contains(attributes, a.Key), "%s in <%s>", a.Key, n.Data)
			if a.Key == "src" {
				require.Regexp(t, `^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$`, a.Val)
			}
		}
		if n.Data == "style" {
			styles++
			require.Equal(t, style, n.FirstChild.Data)
		}
	}
	require.Equal(t, 1, styles)
	// Every tag is closed where it was meant to be: written anew, the page has as many.
	for _, tag := range []string{"details", "article", "pre", "div"} {
		require.Equal(t, strings.Count(page, "<"+tag), strings.Count(page, "</"+tag+">"), tag)
		require.Equal(t, strings.Count(page, "<"+tag), countOf(open, tag), tag)
	}
	require.Equal(t, 1, strings.Count(page, "default-src 'none'"))
	require.Contains(t, page, policy)
}

func countOf(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// A session says whatever it likes; the page must stay a page.
func TestHostileSession(t *testing.T) {
	hostile := []string{
		`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `' onload='alert(1)`, `</div></article><script>`, `javascript:alert(1)`,
		`[x](javascript:alert(1))`, `<a href="data:text/html,<script>">`, `<iframe srcdoc="x">`, "{{.}}", `<!--`, `-->`, `]]>`, `</title><script>`, `</pre></details></main></body>`,
		`<style>@import 'http://203.0.113.1'</style>`, `<link rel=stylesheet href=http://203.0.113.1>`, `<meta http-equiv=refresh content=0;url=http://203.0.113.1>`,
		`<base href=http://203.0.113.1>`, `<form action=http://203.0.113.1><button>`, "\x00\x1b]52;c;AAAA\x07", "```html\n<script>alert(1)</script>\n```", "~~~\n</pre>\n~~~\n<b>",
		"&lt;script&gt;", "\u2028<script>", "<scr\x00ipt>alert(1)</script>", "\u202e<evil", "<plaintext>", "<math><mi><table>", "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
	}
	for _, h := range hostile {
		q := quote(h)
		f := open(t, write(t, `{"type":"session","version":3,"id":"h","cwd":`+q+`,"parentSession":`+q+`}`+"\n",
			`{"type":"session_info","id":"0","parentId":null,"name":`+q+`}`+"\n",
			`{"type":"message","id":"1","parentId":"0","message":{"role":"user","content":[{"type":"text","text":`+q+`},{"type":"image","mimeType":`+q+`,"data":`+q+`},{"type":"image","mimeType":"image/png","data":`+q+`},{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="},{"type":"image","mimeType":"image/png","data":"PHN2Zz4="},{"type":`+q+`,"x":1}]}}`+"\n",
			`{"type":"message","id":"2","parentId":"1","timestamp":`+q+`,"message":{"role":"assistant","provider":`+q+`,"model":`+q+`,"errorMessage":`+q+`,"content":[{"type":"thinking","thinking":`+q+`},{"type":"toolCall","id":`+q+`,"name":`+q+`,"arguments":{"a":`+q+`}}]}}`+"\n",
			`{"type":"message","id":"3","parentId":"2","message":{"role":"toolResult","toolCallId":`+q+`,"content":[{"type":"text","text":`+q+`}]}}`+"\n",
			`{"type":"message","id":"4","parentId":"3","message":{"role":`+q+`,"content":`+q+`}}`+"\n",
			`{"type":"label","id":"5","parentId":"4","targetId":"1","label":`+q+`}`+"\n",
			`{"type":"compaction","id":"6","parentId":"5","summary":`+q+`,"tokensBefore":`+q+`}`+"\n",
			`{"type":"message","id":`+q+`,"parentId":"1","message":{"role":"bashExecution","command":`+q+`,"output":`+q+`,"truncated":true,"fullOutputPath":`+q+`}}`+"\n",
			`{"type":"model_change","id":"7","parentId":`+q+`,"provider":`+q+`,"modelId":`+q+`}`+"\n",
			`{"type":"thinking_level_change","id":"8","parentId":`+q+`,"thinkingLevel":`+q+`}`+"\n",
			`{"type":`+q+`,"id":"9","parentId":"6"}`+"\n"))
		for _, o := range []ExportOptions{{}, {Limit: 7}, {Leaf: "6"}} {
			var page, text bytes.Buffer
			require.NoError(t, f.WriteHTML(&page, o))
			requireHarmless(t, page.String())
			require.NoError(t, f.WriteText(&text, o))
			require.NotContains(t, text.String(), "\x1b")
			require.NotContains(t, text.String(), "\u202e")
		}
	}
}

func TestCutFence(t *testing.T) {
	for name, tc := range map[string]struct{ in, before, code, after string }{
		"none":       {"a\nb", "a\nb", "", ""},
		"one":        {"a\n```go\nx\n```\nb", "a\n", "x\n", "b"},
		"longer":     {"````\n```\n````\n", "", "```\n", ""},
		"not closed": {"a\n```\nx", "a\n```\nx", "", ""},
		"tilde":      {"~~~\nx\n~~~", "", "x\n", ""},
		"inline":     {"```x```\ny", "```x```\ny", "", ""},
		"empty":      {"```\n```\nz", "", "", "z"},
	} {
		t.Run(name, func(t *testing.T) {
			before, code, after := cutFence(tc.in)
			require.Equal(t, []string{tc.before, tc.code, tc.after}, []string{before, code, after})
		})
	}
}

func TestWithoutLimitAllIsThere(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	f := open(t, write(t, head, `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"`+long+`"}}`+"\n"))
	var page bytes.Buffer
	require.NoError(t, f.WriteHTML(&page, ExportOptions{}))
	require.Contains(t, page.String(), long)
	page.Reset()
	require.NoError(t, f.WriteHTML(&page, ExportOptions{Limit: 100}))
	require.Contains(t, page.String(), "[cut: 99900 bytes more]")
	require.Less(t, page.Len(), 10_000)
}
