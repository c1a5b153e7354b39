package safe

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Hostile strings that a title, a prompt, a tool's output, a file's name, a host or an
// error can hold. Other packages' tests put them through whole screens.
func TestHostileText(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":             {"hello", "hello"},
		"window title":      {"a\x1b]0;owned\ab", "a]0;ownedb"},
		"hyperlink":         {"\x1b]8;;http://example.com\x1b\\x\x1b]8;;\x1b\\", `]8;;http://example.com\x]8;;\`},
		"clipboard":         {"\x1b]52;c;Zm9v\x07", "]52;c;Zm9v"},
		"dcs":               {"\x1bP1$r0m\x1b\\", `P1$r0m\`},
		"apc":               {"\x1b_Gf=100;\x1b\\", `_Gf=100;\`},
		"report":            {"\x1b[6n", "[6n"},
		"C1 csi":            {"\u009b31mred", "31mred"},
		"C1 raw byte":       {"\x9b31m", "\ufffd31m"},
		"C1 osc":            {"\u009d0;x\u009c", "0;x"},
		"bidi override":     {"abc\u202edef\u202c", "abcdef"},
		"isolates":          {"\u2066x\u2069", "x"},
		"zero width":        {"a\u200bb\u200dc\ufeffd\u2060e", "abcde"},
		"soft hyphen":       {"a\u00adb", "ab"},
		"tags":              {"a\U000e0041\U000e007fb", "ab"},
		"combining flood":   {"a" + strings.Repeat("\u0301", 500), "a" + strings.Repeat("\u0301", maxCombining)},
		"combining first":   {"\u0301a", "a"},
		"after line feed":   {"x\n\u0301a", "x\na"},
		"variation":         {"\u2764\ufe0f", "\u2764"},
		"tab":               {"a\tb", "a    b"},
		"crlf":              {"a\r\nb", "a\nb"},
		"carriage return":   {"real\rfake", "real\nfake"},
		"backspace":         {"ab\b\bcd", "abcd"},
		"nul":               {"a\x00b", "ab"},
		"delete":            {"a\x7fb", "ab"},
		"invalid":           {"a\xffb\xc3", "a\ufffdb\ufffd"},
		"surrogate":         {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		"separator":         {"a\u2028b\u2029c\u0085d", "a\nb\nc\nd"},
		"blank letters":     {"a\u3164\u115f\u2800b", "ab"},
		"right to left":     {"\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05dc\u05d5\u05dd"},
		"interlinear":       {"\ufff9a\ufffab\ufffb", "ab"},
		"mongolian":         {"a\u180eb", "ab"},
		"escape in escape":  {"\x1b\x1b[[31m", "[[31m"},
		"line feeds remain": {"a\n\nb\n", "a\n\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Text(c.in))
			require.NotContains(t, Line(c.in), "\n")
		})
	}
}

func TestFit(t *testing.T) {
	require.Equal(t, "abc…", Fit("abcdef", 4))
	require.Equal(t, "世…", Fit("世界人", 4))
	require.Equal(t, 4, Width(Pad("世…", 4)))
	require.Equal(t, "", Fit("abc", 0))
	long := Fit(strings.Repeat("é", 10<<20), 80)
	require.Equal(t, 80, Width(long))
	require.True(t, utf8.ValidString(long))
	flood := Fit("a"+strings.Repeat("\u0301", 10<<20)+"b", 80)
	require.True(t, strings.HasSuffix(flood, "…"), "what was cut is marked")
	require.Equal(t, "one two", Fit("one\ntwo", 80))
}

func TestFitIsBounded(t *testing.T) {
	huge := strings.Repeat("\x1b[31m世", 2<<20)
	allocated := testing.AllocsPerRun(5, func() { Fit(huge, 80) })
	require.Less(t, allocated, 50.0)
}

func TestBlock(t *testing.T) {
	require.Equal(t, "ab \nc… ", strings.ReplaceAll(Block("ab\ncdefgh", 3, 2), "cd…", "c… "))
	require.Equal(t, "a \n  ", Block("a", 2, 2))
	require.Equal(t, "", Block("a", 2, 0))
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b]0;x\ab\u202e\u0301\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{Text(s), Line(s), Fit(s, 20)} {
			require.True(t, utf8.ValidString(out))
			for _, r := range out {
				require.False(t, r != '\n' && dropped(r), "%U", r)
				require.False(t, r != '\n' && unicode.Is(unicode.C, r) && !unicode.Is(unicode.Co, r) && unicode.Is(unicode.Cc, r), "%U", r)
			}
			require.Equal(t, out, Text(out), "clean text stays as it is")
		}
		require.LessOrEqual(t, Width(Fit(s, 20)), 20)
		require.NotContains(t, Line(s), "\n")
	})
}
