// Package panetest lets the tests of views draw them in every size, compare them with golden files, and press their keys.
package panetest

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/journal"
	"patio/themes"
	"patio/tui/style"
)

// Noon is when most tests look.
var Noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Clock is a clock that stands.
func Clock() time.Time { return Noon }

var builtin = sync.OnceValues(func() (map[string]*style.Styles, error) {
	all, err := themes.All("")
	by := map[string]*style.Styles{}
	for _, p := range all {
		by[p.Name] = style.New(p)
	}
	return by, err
})

// Styles are those of a theme.
func Styles(t testing.TB, theme string) *style.Styles {
	t.Helper()
	by, err := builtin()
	require.NoError(t, err)
	require.Contains(t, by, theme)
	return by[theme]
}

// Records are those of a recorded journal.
func Records(t testing.TB, file string) []journal.Record {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []journal.Record
	for l := range strings.Lines(string(b)) {
		r, err := journal.Decode([]byte(strings.TrimSuffix(l, "\n")))
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}
