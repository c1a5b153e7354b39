package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestChoose(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"none": {nil, []string{"start", "stream", "gateway", "scan", "ui"}},
		"dot":  {[]string{"."}, []string{"start", "stream", "gateway", "scan", "ui"}},
		"all":  {[]string{"all"}, []string{"start", "stream", "gateway", "scan", "ui"}},
		"some": {[]string{"gateway", "start"}, []string{"gateway", "start"}},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(c.args)
			require.NoError(t, err)
			var got []string
			for _, b := range chosen {
				got = append(got, b.name)
			}
			require.Equal(t, c.want, got)
		})
	}
	_, err := choose([]string{"sart"})
	require.EqualError(t, err, `no benchmark "sart": all, start, stream, gateway, scan, ui`)
}

func TestUsage(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.ErrorContains(t, run(t.Context(), []string{"-n", "0"}, &stdout, &stderr), "at least 1")
	require.Error(t, run(t.Context(), []string{"-h"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "usage: bench")
	require.Empty(t, stdout.String())
}

func TestSourceRoot(t *testing.T) {
	root, err := sourceRoot()
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(root, "internal", "bench", "main.go"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	_, err = sourceRoot()
	require.ErrorContains(t, err, "no go.mod")
}
