package journal

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkAppendToSubscriber measures lines per second from Append to a reader that follows, beside the same lines
// through a pipe, which keeps nothing.
func BenchmarkAppendToSubscriber(b *testing.B) {
	data := []byte(`{"type":"message_update","delta":"` + strings.Repeat("x", 150) + `"}`)
	line := append(append(appendPrefix(nil, 123456, time.Now(), "s1", "rpc"), data...), "}\n"...)
	b.SetBytes(int64(len(line)))

	pipe := func(b *testing.B) time.Duration {
		r, w, err := os.Pipe()
		require.NoError(b, err)
		done := make(chan error, 1)
		start := time.Now()
		go func() {
			defer close(done)
			s := bufio.NewReaderSize(r, blockSize)
			for range b.N {
				if _, err := s.ReadSlice('\n'); err != nil {
					done <- err
					return
				}
			}
		}()
		for range b.N {
			_, err := w.Write(line)
			require.NoError(b, err)
		}
		require.NoError(b, <-done)
		spent := time.Since(start)
		require.NoError(b, w.Close())
		require.NoError(b, r.Close())
		return spent
	}
	piped := pipe(b)

	j, err := Open(filepath.Join(b.TempDir(), "j"), "s1")
	require.NoError(b, err)
	r, err := j.NewReader(0)
	require.NoError(b, err)
	done := make(chan error, 1)
	b.ResetTimer()
	start := time.Now()
	go func() {
		defer close(done)
		for range b.N {
			if _, err := r.Next(b.Context()); err != nil {
				done <- err
				return
			}
		}
	}()
	for range b.N {
		_, err := j.AppendRaw("rpc", data)
		require.NoError(b, err)
	}
	require.NoError(b, <-done)
	spent := time.Since(start)
	b.StopTimer()
	require.NoError(b, r.Close())
	require.NoError(b, j.Close())
	b.ReportMetric(float64(b.N)/spent.Seconds(), "lines/s")
	b.ReportMetric(float64(b.N)/piped.Seconds(), "pipe-lines/s")
	b.ReportMetric(piped.Seconds()/spent.Seconds(), "x-pipe")
}

// BenchmarkAppendThousandReaders measures the writer alone while a thousand readers follow.
func BenchmarkAppendThousandReaders(b *testing.B) {
	j, err := Open(filepath.Join(b.TempDir(), "j"), "s1")
	require.NoError(b, err)
	done := make(chan error, 1000)
	for range cap(done) {
		r, err := j.NewReader(0)
		require.NoError(b, err)
		go func() {
			for {
				if _, err := r.Next(b.Context()); err != nil {
					done <- r.Close()
					return
				}
			}
		}()
	}
	data := []byte(`{"a":"` + strings.Repeat("x", 150) + `"}`)
	for b.Loop() {
		_, err := j.AppendRaw("rpc", data)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
	require.NoError(b, j.Close())
	for range cap(done) {
		require.NoError(b, <-done)
	}
}
