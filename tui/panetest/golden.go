package panetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/themes"
	"patio/tui/style"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden compares what is drawn with golden files: each of Screens, in two themes. After
// the view a file has end.
func Golden(t *testing.T, name, end string, draw func(width, height int, s *style.Styles) string) {
	t.Helper()
	for _, size := range Screens {
		for _, theme := range []string{themes.DefaultDark, themes.DefaultLight} {
			w, h := size[0], size[1]
			id := fmt.Sprintf("%s-%dx%d-%s", name, w, h, theme)
			t.Run(id, func(t *testing.T) {
				view := draw(w, h, Styles(t, theme))
				Screen(t, view, w, h)
				Compare(t, id, view+end)
			})
		}
	}
}

// Compare compares a text with the golden file of a name.
func Compare(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "make golden writes it")
	require.Equal(t, string(want), text, file)
}
