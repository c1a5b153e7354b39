package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInternationalNames(t *testing.T) {
	for name, want := range map[string]string{
		"bücher.example":        "xn--bcher-kva.example",
		"BÜCHER.example":        "xn--bcher-kva.example",
		"xn--bcher-kva.example": "xn--bcher-kva.example",
		"bu\u0308cher.example":  "xn--bcher-kva.example", // composed first
		"a\u3002example":        "a.example",             // an ideographic full stop is a dot
		"faß.example":           "xn--fa-hia.example",    // not transitional
		"r3---sn-x.example":     "r3---sn-x.example",
	} {
		got, err := NormalizeName(name)
		require.NoError(t, err, name)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"xn--a.example", "xn--0.example", "a\u200db.example", "\u0378.example", "\uff0fexample"} {
		_, err := NormalizeName(name)
		require.Error(t, err, name)
	}
}
