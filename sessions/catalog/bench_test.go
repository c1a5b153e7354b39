package catalog

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"patio/sessions/catalog/benchtree"
)

// bench is the standard tree, made once for all benchmarks of a run.
var bench = struct {
	once sync.Once
	dir  string
	err  error
}{}

func benchRoots(b *testing.B) (agentDir string, roots []Root) {
	b.Helper()
	bench.once.Do(func() {
		if bench.dir, bench.err = os.MkdirTemp("", "patio-bench-catalog-"); bench.err == nil {
			_, bench.err = benchtree.Write(bench.dir, benchtree.Standard)
		}
	})
	require.NoError(b, bench.err)
	return bench.dir, []Root{{Dir: filepath.Join(bench.dir, "sessions")}}
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if bench.dir != "" {
			os.RemoveAll(bench.dir)
		}
		os.Exit(code)
	}))
}

// hostPi is the Pi that PATIO_BENCH_NODE and PATIO_BENCH_PI name.
func hostPi(tb testing.TB) benchtree.Pi {
	tb.Helper()
	pi := benchtree.Pi{Node: os.Getenv("PATIO_BENCH_NODE"), Dist: os.Getenv("PATIO_BENCH_PI")}
	if pi.Node == "" || pi.Dist == "" {
		tb.Skip("set PATIO_BENCH_NODE to a node binary, PATIO_BENCH_PI to dist of @earendil-works/pi-coding-agent")
	}
	return pi
}

func BenchmarkListCold(b *testing.B) {
	_, roots := benchRoots(b)
	for b.Loop() {
		list, err := Scan(b.Context(), Options{Roots: roots})
		require.NoError(b, err)
		require.Len(b, list.Sessions, benchtree.Standard.Files)
	}
}

func BenchmarkListExact(b *testing.B) {
	_, roots := benchRoots(b)
	for b.Loop() {
		list, err := Scan(b.Context(), Options{Roots: roots, Exact: true})
		require.NoError(b, err)
		require.Len(b, list.Sessions, benchtree.Standard.Files)
	}
}

func BenchmarkListIndexed(b *testing.B) {
	_, roots := benchRoots(b)
	index := filepath.Join(b.TempDir(), "index")
	_, err := Scan(b.Context(), Options{Roots: roots, Index: index})
	require.NoError(b, err)
	time.Sleep(granularity) // until the files' change times are settled
	_, err = Scan(b.Context(), Options{Roots: roots, Index: index})
	require.NoError(b, err)
	for b.Loop() {
		list, err := Scan(b.Context(), Options{Roots: roots, Index: index})
		require.NoError(b, err)
		require.Len(b, list.Sessions, benchtree.Standard.Files)
		require.Zero(b, list.Read)
	}
}

func BenchmarkListPi(b *testing.B) {
	pi := hostPi(b)
	dir, _ := benchRoots(b)
	var total time.Duration
	for range b.N {
		d, sessions, err := pi.ListAll(b.Context(), dir)
		require.NoError(b, err)
		require.Len(b, sessions, benchtree.Standard.Files)
		total += d
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "listAll-ns/op")
}
