package panetest

import (
	"iter"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
)

// Screens are the sizes of the golden files: as small as a pane gets, of a usual terminal,
// and with room to spare.
var Screens = [][2]int{{60, 12}, {80, 20}, {160, 46}}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Plain is what a view says without its styles.
func Plain(view string) string { return sgr.ReplaceAllString(view, "") }

// Screen requires that a view has its size, and nothing for the terminal but styles and text.
func Screen(t testing.TB, view string, width, height int) {
	t.Helper()
	lines := strings.Split(view, "\n")
	require.Len(t, lines, height)
	for i, line := range lines {
		text := Plain(line)
		// Both measures: the one that views are made with, and a terminal's.
		if w, of := safe.Width(line), ansi.StringWidth(text); w != width || of != width {
			t.Fatalf("line %d at %dx%d is %d wide, %d without its styles: %q", i, width, height, w, of, line)
		}
		if !utf8.ValidString(text) {
			t.Fatalf("line %d at %dx%d isn't UTF-8: %q", i, width, height, text)
		}
		for _, r := range text {
			// U+FFFE is no character, of no category.
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == 0xfffe {
				t.Fatalf("line %d at %dx%d has %U: %q", i, width, height, r, line)
			}
		}
	}
}

// Draw is what a pane draws in a size.
func Draw(p pane.Pane, width, height int, s *style.Styles) string {
	p.SetStyles(s)
	p.SetSize(width, height)
	return p.View()
}

// Sizes go from what is hardly a terminal to a large one, in steps.
func Sizes(stepWidth, stepHeight int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for w := 20; w <= 200; w += stepWidth {
			for h := 4; h <= 60; h += stepHeight {
				if !yield(w, h) {
					return
				}
			}
		}
	}
}

// EverySize draws a pane in all of Sizes, and in some that no terminal has. It leaves the
// pane as large as the largest.
func EverySize(t testing.TB, p pane.Pane) {
	t.Helper()
	var width, height int
	draw := func() {
		t.Helper()
		p.SetSize(width, height)
		Screen(t, p.View(), width, height)
		p.Keys()
	}
	for width, height = range Sizes(9, 7) {
		draw()
	}
	for _, tiny := range [][2]int{{1, 1}, {4, 2}, {0, 0}} {
		p.SetSize(tiny[0], tiny[1])
		p.View()
	}
	draw()
}
