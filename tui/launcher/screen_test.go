package launcher

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"patio/themes"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// screens are the sizes of the goldens.
var screens = [][2]int{{60, 12}, {80, 20}, {160, 46}}

func styles(t testing.TB, theme string) *style.Styles {
	t.Helper()
	all, err := themes.All("")
	require.NoError(t, err)
	for _, p := range all {
		if p.Name == theme {
			return style.New(p)
		}
	}
	t.Fatalf("no theme %s", theme)
	return nil
}

// golden compares what a pane draws at every size and in two themes. The pane is made
// anew for each, because what it asks for may depend on its room.
func golden(t *testing.T, name string, open func(t *testing.T, width, height int, s *style.Styles) pane.Pane) {
	t.Helper()
	for _, theme := range []string{themes.DefaultDark, themes.DefaultLight} {
		for _, size := range screens {
			w, h := size[0], size[1]
			view := open(t, w, h, styles(t, theme)).View()
			requireScreen(t, view, w, h)
			path := filepath.Join("testdata", "golden", fmt.Sprintf("%s-%dx%d-%s.txt", name, w, h, theme))
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(view+"\n"), 0o644))
				continue
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "rewrite with -update")
			require.Equal(t, string(want), view+"\n", path)
		}
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// plain is what a screen says without its styles.
func plain(view string) string { return sgr.ReplaceAllString(view, "") }

// requireScreen checks the dimensions, and that nothing but styles and text is drawn.
func requireScreen(t testing.TB, view string, width, height int) {
	t.Helper()
	lines := strings.Split(view, "\n")
	require.Len(t, lines, height)
	for i, line := range lines {
		require.Equal(t, width, safe.Width(line), "line %d at %dx%d: %q", i, width, height, line)
		for _, r := range plain(line) {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("line %d at %dx%d has %U: %q", i, width, height, r, line)
			}
		}
	}
}

// hostile are texts that would change the screen if they reached it.
func hostile() map[string]string {
	return map[string]string{
		"escape":    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
		"clipboard": "\x1b]52;c;cm0gLXJm\x07copied",
		"C1":        "\u009b2J\u009d0;t\u009c\x9b31m",
		"direction": "\u202eevil\u2066x\u2069",
		"no width":  "a\u200bb\u200dc\ufeffd\u00ad",
		"marks":     "e" + strings.Repeat("\u0301", 300),
		"not UTF-8": "\xff\xfe\xc3(\xe2\x28\xa1",
		"lines":     "one\r\ntwo\rthree\u2028four\tfive\vsix",
		"wide":      strings.Repeat("漢字🧑‍🚀", 40),
		"endless":   strings.Repeat("x", 10<<20),
	}
}

// everySize draws a pane at sizes down to what no terminal has.
func everySize(t *testing.T, p pane.Pane) {
	t.Helper()
	for w := 20; w <= 200; w += 9 {
		for h := 4; h <= 60; h += 7 {
			p.SetSize(w, h)
			requireScreen(t, p.View(), w, h)
		}
	}
}
