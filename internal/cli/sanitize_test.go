package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// attacks are texts that would do something to a terminal.
var attacks = []string{
	"plain",
	"\x1b]52;c;ZXZpbA==\x07",
	"\x1b]0;title\x1b\\",
	"\x1b[2J\x1b[H\x1b[31mred",
	"\x1bP+q544e\x1b\\",
	"\u009b2J\u009d52;c;eA==\u009c",
	"\x9b31m\x90q\x9c",
	"over\rwritten",
	"back\b\b\bspace\a\x00\x7f",
	"abc\u202egnp.exe",
	"\u2066a\u2069\u200f\u061c",
	"bad \xff\xfe utf-8 \xe2\x82",
	"é世界🙂 stays",
	"tab\tand\nline",
	"line\u2028separator",
}

func requireSafe(t *testing.T, s string) {
	t.Helper()
	require.True(t, utf8.ValidString(s), "%q", s)
	for _, r := range s {
		require.False(t, r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0, "control character in %q", s)
		require.False(t, strings.ContainsRune("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r), "direction in %q", s)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b]52;c;ZXZpbA==\x07":   "]52;c;ZXZpbA==",
		"\u009b2Jx":                "2Jx",
		"\x9b31m":                  "\uFFFD31m",
		"abc\u202egnp.exe":         "abcgnp.exe",
		"é世界🙂\tstays\n":            "é世界🙂\tstays\n",
		"a\r\nb":                   "a\nb",
		"no\x00thing\x7f at\u0085": "nothing at",
	} {
		require.Equal(t, want, clean(in))
	}
	require.Equal(t, "a b c", cleanLine("a\nb\t\tc\n"))
	require.Equal(t, "a b", cleanLine("a\u2028b"))
}

func TestCleanerSplitsRunes(t *testing.T) {
	for _, text := range attacks {
		want := clean(text)
		for size := 1; size <= 3; size++ {
			var b bytes.Buffer
			c := newCleaner(&b, dropHazards)
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				wrote, err := c.Write(rest[:n])
				require.NoError(t, err)
				require.Equal(t, n, wrote)
				rest = rest[n:]
			}
			require.NoError(t, c.Flush())
			requireSafe(t, b.String())
			// A run of bad bytes is one mark in clean and may be several here.
			require.Equal(t, squeeze(want), squeeze(b.String()), "%q in pieces of %d", text, size)
		}
	}
}

func squeeze(s string) string {
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

func TestEscapedJSONMeansTheSame(t *testing.T) {
	for _, text := range attacks {
		want, err := json.Marshal(text)
		require.NoError(t, err)
		// json escapes C0 by itself but leaves C1 and direction alone.
		var b bytes.Buffer
		_, err = newCleaner(&b, escapeJSON).Write(want)
		require.NoError(t, err)
		requireSafe(t, b.String())
		var before, after string
		require.NoError(t, json.Unmarshal(want, &before))
		require.NoError(t, json.Unmarshal(b.Bytes(), &after))
		require.Equal(t, before, after)
	}
}

func FuzzClean(f *testing.F) {
	for _, a := range attacks {
		f.Add(a, 1)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		requireSafe(t, clean(text))
		line := cleanLine(text)
		requireSafe(t, line)
		require.NotContains(t, line, "\n")
		require.Equal(t, clean(text), clean(clean(text)))
		size = max(1, size%7)
		var b bytes.Buffer
		c := newCleaner(&b, dropHazards)
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			_, err := c.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.NoError(t, c.Flush())
		requireSafe(t, b.String())
		require.Equal(t, squeeze(clean(text)), squeeze(b.String()))
	})
}
