package mounts

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"patio/themes"
	"patio/tui/pane"
	"patio/tui/style"
)

var update = flag.Bool("update", false, "write the golden files anew")

func theme(t testing.TB, name string) *style.Styles {
	t.Helper()
	all, err := themes.All("")
	require.NoError(t, err)
	for _, p := range all {
		if p.Name == name {
			return style.New(p)
		}
	}
	t.Fatalf("no theme %s", name)
	return nil
}

// golden compares what a pane draws with its files: three sizes, two themes.
func golden(t *testing.T, name string, make func() pane.Pane) {
	t.Helper()
	for _, size := range [][2]int{{60, 12}, {80, 20}, {160, 46}} {
		for _, palette := range []string{themes.DefaultDark, themes.DefaultLight} {
			p := make()
			p.SetStyles(theme(t, palette))
			p.SetSize(size[0], size[1])
			view := p.View()
			clean(t, view, size[0], size[1])
			file := filepath.Join("testdata", "golden", fmt.Sprintf("%s-%dx%d-%s.txt", name, size[0], size[1], palette))
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(view), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), view, file)
		}
	}
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// clean requires that a view has its size, and nothing for the terminal but our colours.
func clean(t testing.TB, view string, width, height int) {
	t.Helper()
	text := colours.ReplaceAllString(view, "")
	lines := strings.Split(text, "\n")
	require.Len(t, lines, height)
	for i, line := range lines {
		if ansi.StringWidth(line) != width {
			t.Fatalf("line %d isn't %d wide: %q", i, width, line)
		}
		if bad := strings.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); bad >= 0 {
			t.Fatalf("line %d has %q: %q", i, line[bad:min(bad+4, len(line))], line)
		}
	}
}

// plain is what a pane draws, without colours.
func plain(p pane.Pane) string { return colours.ReplaceAllString(p.View(), "") }

// sweep draws a pane in every size.
func sweep(t *testing.T, p pane.Pane) {
	t.Helper()
	for w := 20; w <= 200; w += 9 {
		for h := 4; h <= 60; h += 7 {
			p.SetSize(w, h)
			clean(t, p.View(), w, h)
			p.Keys()
		}
	}
	for _, size := range [][2]int{{1, 1}, {4, 2}, {0, 0}} {
		p.SetSize(size[0], size[1])
		p.View()
	}
}

// evil are texts that must not get at the terminal.
var evil = []string{
	"\x1b[2J\x1b[31mred", "\x1b]52;c;aGk=\x07", "\x1bPq#0\x1b\\", "\u009b31m\u009d0;x\u009c", "a\rb\nc\td\x00e\x7f", "\u202eevil\u2066x\u2069",
	"z\u200bw\u200dj\ufeff\u00ad", "e" + strings.Repeat("\u0301", 300), "\xff\xfe\xc3\x28", "日本語👩‍👩‍👧‍👦 عربي", strings.Repeat("x", 10<<20), strings.Repeat("\u0301", 9000), " \u2028\u2029 ",
}

// press makes keys of their names.
func press(p pane.Pane, names ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, name := range names {
		k := tea.KeyPressMsg{}
		switch name {
		case "enter":
			k.Code = tea.KeyEnter
		case "esc":
			k.Code = tea.KeyEscape
		case "up":
			k.Code = tea.KeyUp
		case "down":
			k.Code = tea.KeyDown
		case "left":
			k.Code = tea.KeyLeft
		case "right":
			k.Code = tea.KeyRight
		case "pgup":
			k.Code = tea.KeyPgUp
		case "pgdown":
			k.Code = tea.KeyPgDown
		case "space":
			k.Code, k.Text = tea.KeySpace, " "
		case "backspace":
			k.Code = tea.KeyBackspace
		default:
			r := []rune(name)
			k.Code, k.Text = r[0], name
		}
		cmd = p.Update(k)
	}
	return cmd
}

// reserved are the root's keys.
var reserved = strings.Fields("ctrl+c ctrl+p : ? q [ ] tab shift+tab 0 1 2 3 4 5 6 7 8 9 t m n N D I x s a ctrl+d ctrl+]")

// keysAreOurs requires that a pane's keys have help, and aren't the root's.
func keysAreOurs(t *testing.T, p pane.Pane) {
	t.Helper()
	seen := map[string]bool{}
	for _, b := range p.Keys() {
		require.NotEmpty(t, b.Help().Key)
		require.NotEmpty(t, b.Help().Desc)
		require.True(t, b.Enabled())
		for _, k := range b.Keys() {
			require.NotContains(t, reserved, k)
			require.False(t, seen[k], "%s is bound twice", k)
			seen[k] = true
		}
	}
}
