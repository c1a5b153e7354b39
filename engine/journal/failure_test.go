package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// faultyStore fails once a budget of bytes is used up, having written what fitted.
type faultyStore struct {
	*os.File
	budget       int
	err          error
	truncateErr  error
	writes       int
	failTruncate int
}

func (f *faultyStore) WriteAt(p []byte, off int64) (int, error) {
	f.writes++
	if len(p) <= f.budget {
		f.budget -= len(p)
		return f.File.WriteAt(p, off)
	}
	n, err := f.File.WriteAt(p[:f.budget], off)
	f.budget = 0
	if err != nil {
		return n, err
	}
	return n, &os.PathError{Op: "write", Path: f.Name(), Err: f.err}
}

func (f *faultyStore) Truncate(size int64) error {
	if f.failTruncate > 0 {
		f.failTruncate--
		return f.truncateErr
	}
	return f.File.Truncate(size)
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	for _, length := range []int{100, oneWrite + 1} {
		for _, budget := range []int{0, 1, 50, 105, 109} {
			for _, failTruncate := range []int{0, 1, 2} {
				t.Run(fmt.Sprintf("length %d, room %d, failing truncates %d", length, budget, failTruncate), func(t *testing.T) {
					j, path := openTest(t)
					_, err := j.Append("a", "kept")
					require.NoError(t, err)
					before := lines(t, path)

					store := &faultyStore{
						File: j.file.File, budget: budget, err: syscall.ENOSPC,
						failTruncate: failTruncate, truncateErr: syscall.EIO,
					}
					j.store = store
					data := []byte(`"` + strings.Repeat("x", length) + `"`)
					// Room for the prefix, so that the longer record fails in its second write.
					_, err = j.AppendRaw("b", data)
					require.ErrorIs(t, err, syscall.ENOSPC)
					require.ErrorContains(t, err, "free some disk space")
					seq, _ := j.Last()
					require.EqualValues(t, 1, seq)
					if failTruncate > 0 {
						require.ErrorIs(t, err, syscall.EIO)
					} else {
						require.Equal(t, before, lines(t, path))
					}

					store.budget = 1 << 20
					if failTruncate > 1 {
						// What is left of the failed write can't be removed: nothing is written over it.
						store.failTruncate = 2
						_, err = j.AppendRaw("c", []byte("1"))
						require.ErrorIs(t, err, syscall.EIO)
						store.failTruncate = 0
					}
					seq, err = j.AppendRaw("c", []byte("1"))
					require.NoError(t, err)
					require.EqualValues(t, 2, seq)
					got := lines(t, path)
					require.Len(t, got, 2)
					require.Equal(t, before[0], got[0])
					require.Contains(t, got[1], `"type":"c"`)
				})
			}
		}
	}
}

func TestSmallRecordIsOneWrite(t *testing.T) {
	j, _ := openTest(t)
	store := &faultyStore{File: j.file.File, budget: 1 << 20}
	j.store = store
	_, err := j.AppendRaw("rpc", []byte("{"), []byte(`"a":1`), []byte("}"))
	require.NoError(t, err)
	require.Equal(t, 1, store.writes)
}

// limitedChild runs in a process of its own, for a file size limit holds for a whole process.
func limitedChild(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	limit := unix.Rlimit{Cur: 300_000, Max: 300_000}
	fail(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	j, err := Open(path, "s1")
	fail(err)
	for _, n := range []int{200_000, 150_000, 60_000, 60_000, 100} {
		_, err := j.AppendRaw("fill", []byte(`"`), bytes.Repeat([]byte("x"), n), []byte(`"`))
		seq, end := j.Last()
		fmt.Println(n, seq, end, errors.Is(err, syscall.EFBIG))
	}
	fail(j.Close())
}

func TestFileSizeLimitOfTheKernel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	var n, end int
	var seq uint64
	var tooBig bool
	var got []string
	for line := range strings.Lines(string(out)) {
		_, err := fmt.Sscan(line, &n, &seq, &end, &tooBig)
		require.NoError(t, err, string(out))
		got = append(got, fmt.Sprint(n, " ", seq, " ", tooBig))
	}
	require.Equal(t, []string{"200000 1 false", "150000 1 true", "60000 2 false", "60000 2 true", "100 3 false"}, got)
	require.Len(t, lines(t, path), 3)
	require.Zero(t, reopen(t, path).Cut())
}
