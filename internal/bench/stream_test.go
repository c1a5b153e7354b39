package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	for _, size := range []int{300, 10 << 10} {
		l := line(size)
		require.Len(t, l, size)
		require.EqualValues(t, '\n', l[size-1])
		require.True(t, json.Valid(l))
	}
}

func TestLinesArriveOnBothWays(t *testing.T) {
	took, err := timePipe(300, 1000)
	require.NoError(t, err)
	require.Positive(t, took)
	took, err = timePath(t.Context(), 300, 1000)
	require.NoError(t, err)
	require.Positive(t, took)
}
