package sessions

import (
	"bytes"
	"encoding/json"
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

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
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
