package jsonl

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestNext(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	for name, tc := range map[string]struct {
		in   string
		want []string
		last error
	}{
		"empty":                  {"", nil, io.EOF},
		"lines":                  {"a\nb\n", []string{"a", "b"}, io.EOF},
		"empty line":             {"a\n\nb\n", []string{"a", "", "b"}, io.EOF},
		"carriage return stays":  {"a\r\nb\n", []string{"a\r", "b"}, io.EOF},
		"line separator is text": {"a\u2028b\n", []string{"a\u2028b"}, io.EOF},
		"long":                   {long + "\nshort\n", []string{long, "short"}, io.EOF},
		"torn":                   {"a\nb", []string{"a", "b"}, io.EOF},
		"torn long":              {long, []string{long}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(iotest.HalfReader(strings.NewReader(tc.in)))
			var got []string
			for {
				line, err := r.Next()
				if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
					require.ErrorIs(t, err, tc.last)
					break
				}
				got = append(got, string(line))
			}
			require.Equal(t, tc.want, got)
			require.LessOrEqual(t, cap(r.line), max(keep, len(long)*2))
		})
	}
}
