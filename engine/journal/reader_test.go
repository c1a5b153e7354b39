package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThousandReadersSeeEverythingInOrder(t *testing.T) {
	j, _ := openTest(t)
	const readers, records = 1000, 300
	var wg sync.WaitGroup
	for i := range readers {
		since := uint64(i % 3)
		r, err := j.NewReader(since)
		require.NoError(t, err)
		wg.Go(func() {
			for want := since + 1; ; want++ {
				line, err := r.Next(t.Context())
				if errors.Is(err, io.EOF) {
					if want != records+1 {
						t.Errorf("reader %d ended before record %d", i, want)
					}
					break
				}
				if seq, _, _, ok := Header(line); err != nil || !ok || seq != want {
					t.Errorf("reader %d: got record %d, error %v, want record %d", i, seq, err, want)
					break
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range records {
		_, err := j.Append("n", i)
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	wg.Wait()
}

func TestReadersThatDoNotReadCostNothing(t *testing.T) {
	j, path := openTest(t)
	for range 100 {
		r, err := j.NewReader(0)
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
	}
	slow, err := j.NewReader(0)
	require.NoError(t, err)
	data := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	before := heap()
	for range 64 {
		_, err := j.AppendRaw("big", data)
		require.NoError(t, err)
	}
	require.Less(t, heap(), before+4<<20)

	for i := range 64 {
		line, err := slow.Next(t.Context())
		require.NoError(t, err)
		seq, _, typ, ok := Header(line)
		require.True(t, ok)
		require.Equal(t, "big", typ)
		require.EqualValues(t, i+1, seq)
		if i == 31 {
			require.NoError(t, j.Close())
		}
	}
	_, err = slow.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, slow.Close())

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(64<<20))
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestLongLineInBoundedMemory(t *testing.T) {
	j, path := openTest(t)
	const length = 60 << 20
	data := bytes.Repeat([]byte{'x'}, length)
	data[0], data[length-1] = '"', '"'

	start := allocated()
	_, err := j.AppendRaw("rpc", data)
	require.NoError(t, err)
	_, err = j.Append("state", "after")
	require.NoError(t, err)
	require.Less(t, allocated()-start, uint64(1<<20), "append must not copy")
	require.NoError(t, j.Close())

	start = allocated()
	j = reopen(t, path)
	require.Less(t, allocated()-start, uint64(2<<20), "open must not read the line")
	require.NoError(t, j.Close())
	require.NoError(t, os.Truncate(path, length))
	start = allocated()
	require.EqualValues(t, length, reopen(t, path).Cut())
	require.Less(t, allocated()-start, uint64(2<<20), "open must not read a torn line")

	j, path = openTest(t)
	_, err = j.AppendRaw("rpc", data[:length/2], data[length/2:])
	require.NoError(t, err)
	_, err = j.Append("state", "after")
	require.NoError(t, err)
	for _, open := range []func() (*Reader, error){
		func() (*Reader, error) { return j.NewReader(0) },
		func() (*Reader, error) { return OpenReader(path, 0) },
	} {
		r, err := open()
		require.NoError(t, err)
		start = allocated()
		line, ok, err := r.TryNext()
		require.NoError(t, err)
		require.True(t, ok)
		require.True(t, bytes.HasSuffix(line, append([]byte(keyData), append(data, '}')...)))
		line, ok, err = r.TryNext()
		require.NoError(t, err)
		require.True(t, ok)
		require.Contains(t, string(line), `"data":"after"`)
		// The line itself once, and what the comparison above copies.
		require.Less(t, allocated()-start, uint64(4*length))
		require.NoError(t, r.Close())
	}
}

func TestLinesAroundTheBlockSize(t *testing.T) {
	j, path := openTest(t)
	var want []string
	for n := blockSize - 130; n < blockSize+10; n++ {
		data := `"` + strings.Repeat("x", n) + `"`
		_, err := j.AppendRaw("t", []byte(data))
		require.NoError(t, err)
		want = append(want, data)
	}
	r, err := OpenReader(path, 0)
	require.NoError(t, err)
	for _, data := range want {
		line, err := r.Next(t.Context())
		require.NoError(t, err)
		rec, err := Decode(line)
		require.NoError(t, err)
		require.Equal(t, data, string(rec.Data))
	}
	_, err = r.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Close())
}

func TestNextWaits(t *testing.T) {
	j, _ := openTest(t)
	r, err := j.NewReader(0)
	require.NoError(t, err)
	_, ok, err := r.TryNext()
	require.NoError(t, err)
	require.False(t, ok)

	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		line string
		err  error
	}
	results := make(chan result)
	next := func(ctx context.Context) {
		go func() {
			line, err := r.Next(ctx)
			results <- result{string(line), err}
		}()
		require.Eventually(t, j.bell.waiting.Load, 10*time.Second, time.Millisecond)
	}
	next(ctx)
	_, err = j.Append("t", 1)
	require.NoError(t, err)
	got := <-results
	require.NoError(t, got.err)
	require.Contains(t, got.line, `"seq":1,`)

	next(ctx)
	cancel()
	require.ErrorIs(t, (<-results).err, context.Canceled)

	next(t.Context())
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.ErrorIs(t, (<-results).err, ErrClosed)
	_, _, err = r.TryNext()
	require.ErrorIs(t, err, ErrClosed)

	r, err = j.NewReader(1)
	require.NoError(t, err)
	j.bell.ring()
	require.Eventually(t, func() bool { return !j.bell.waiting.Load() }, 10*time.Second, time.Millisecond)
	next(t.Context())
	require.NoError(t, j.Close())
	require.ErrorIs(t, (<-results).err, io.EOF)
	_, err = r.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Close())
}

func TestCloseWhileReading(t *testing.T) {
	j, _ := openTest(t)
	var wg sync.WaitGroup
	var readers []*Reader
	for range 50 {
		r, err := j.NewReader(0)
		require.NoError(t, err)
		readers = append(readers, r)
		wg.Go(func() {
			for {
				line, err := r.Next(t.Context())
				if err != nil {
					if !errors.Is(err, io.EOF) && !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				if _, err := Decode(line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	appended := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			if _, err := j.Append("t", strings.Repeat("x", i%5000)); err != nil {
				t.Error(err)
				return
			}
			if i%20 != 19 {
				continue
			}
			select {
			case <-stop:
				return
			case appended <- struct{}{}:
			}
		}
	})
	for _, r := range readers[:25] {
		<-appended
		require.NoError(t, r.Close())
	}
	close(stop)
	writer.Wait()
	require.NoError(t, j.Close())
	wg.Wait()
	for _, r := range readers {
		require.NoError(t, r.Close())
	}
}

func TestSinceInTheFuture(t *testing.T) {
	j, _ := openTest(t)
	r, err := j.NewReader(2)
	require.NoError(t, err)
	for i := range 3 {
		_, err := j.Append("t", i)
		require.NoError(t, err)
	}
	line, err := r.Next(t.Context())
	require.NoError(t, err)
	seq, _, _, _ := Header(line)
	require.EqualValues(t, 3, seq)
	require.NoError(t, r.Close())
}

func TestOpenReaderStopsBeforeTornTail(t *testing.T) {
	record := `{"v":1,"seq":1,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":1}` + "\n"
	for name, tail := range map[string]string{
		"none": "", "short": record[:20], "block": strings.Repeat("x", blockSize-len(record)), "long": strings.Repeat("x", 5*blockSize),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			require.NoError(t, os.WriteFile(path, []byte(record+tail), 0o600))
			for _, since := range []uint64{0, 1} {
				r, err := OpenReader(path, since)
				require.NoError(t, err)
				if since == 0 {
					line, err := r.Next(t.Context())
					require.NoError(t, err)
					require.Equal(t, record, string(line)+"\n")
				}
				for range 2 {
					_, err = r.Next(t.Context())
					require.ErrorIs(t, err, io.EOF)
				}
				require.NoError(t, r.Close())
			}
		})
	}
	_, err := OpenReader(filepath.Join(t.TempDir(), "none"), 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReaderGivesRecordsOfAnyKeyOrder(t *testing.T) {
	content := `{"seq":1,"v":1,"type":"a","session":"s1","time":"2026-01-02T03:04:05Z","data":1}` + "\n" +
		`{"v":1, "seq":2,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":2}` + "\n"
	path := filepath.Join(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	r, err := OpenReader(path, 1)
	require.NoError(t, err)
	line, err := r.Next(t.Context())
	require.NoError(t, err)
	rec, err := Decode(line)
	require.NoError(t, err)
	require.EqualValues(t, 2, rec.Seq)
	require.NoError(t, r.Close())
}
