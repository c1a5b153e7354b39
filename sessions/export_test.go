package sessions

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExportRecorded(t *testing.T) {
	f := open(t, filepath.Join("testdata", "recorded.jsonl"))
	var md, page bytes.Buffer
	require.NoError(t, f.WriteMarkdown(&md, ExportOptions{}))
	require.NoError(t, f.WriteHTML(&page, ExportOptions{}))
	for _, want := range []string{"# My fake session", "## User", "TOOL:env", "**bash**", "PI_CODING_AGENT=true", "SLOW please"} {
		require.Contains(t, md.String(), want)
	}
	require.Contains(t, page.String(), "PI_CODING_AGENT=true")
	require.NotContains(t, md.String(), "## Tool", "a result is with its call")
}

// A session says whatever it likes; the page must stay a page.
func TestHostileSession(t *testing.T) {
	hostile := []string{
		`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `"><svg onload=alert(1)>`, `</div></article><script>`, `javascript:alert(1)`,
		`<iframe srcdoc="x">`, "{{.}}", `<!--`, `]]>`, `<style>@import 'http://203.0.113.1'</style>`, "\x00\x1b]52;c;AAAA\x07",
	}
	for _, h := range hostile {
		q := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", `\u0000`, "\x1b", `\u001b`, "\x07", `\u0007`).Replace(h)
		f := open(t, write(t, `{"type":"session","version":3,"id":"h","cwd":"`+q+`"}`+"\n",
			`{"type":"session_info","id":"0","parentId":null,"name":"`+q+`"}`+"\n",
			`{"type":"message","id":"1","parentId":"0","message":{"role":"user","content":[{"type":"text","text":"`+q+`"},{"type":"image","mimeType":"`+q+`","data":"`+q+`"},{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="},{"type":"`+q+`","x":1}]}}`+"\n",
			`{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","provider":"`+q+`","model":"m","errorMessage":"`+q+`","content":[{"type":"thinking","thinking":"`+q+`"},{"type":"toolCall","id":"c","name":"`+q+`","arguments":{"a":"`+q+`"}}]}}`+"\n",
			`{"type":"message","id":"3","parentId":"2","message":{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"`+q+`"}]}}`+"\n",
			`{"type":"`+q+`","id":"4","parentId":"3"}`+"\n"))
		var page bytes.Buffer
		require.NoError(t, f.WriteHTML(&page, ExportOptions{}))
		body := page.String()[strings.Index(page.String(), "<body>"):]
		for _, tag := range []string{"<script", "<svg", "<iframe", "<style", "onerror=alert(1)>", "<!--", "image/svg"} {
			if tag == "onerror=alert(1)>" {
				require.NotContains(t, body, "<img src=x")
				continue
			}
			if tag == "image/svg" {
				require.NotContains(t, body, `src="data:image/svg`)
				continue
			}
			require.NotContains(t, body, tag, h)
		}
		require.Equal(t, 1, strings.Count(page.String(), "default-src 'none'"))
	}
}

func TestMarkdownFence(t *testing.T) {
	require.Equal(t, "````text\na ``` b\n````\n", fenced("a ``` b"))
}

func TestExportLimits(t *testing.T) {
	f := open(t, write(t, head, `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"`+strings.Repeat("é", 100)+`"}}`+"\n"))
	var b bytes.Buffer
	require.NoError(t, f.WriteMarkdown(&b, ExportOptions{Limit: 11, Clean: strings.ToUpper}))
	require.Contains(t, b.String(), strings.Repeat("É", 5)+"\n[CUT: 190 BYTES MORE]")
}
