package journal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeekFindsEveryRecord(t *testing.T) {
	j, path := openTest(t)
	rng := rand.New(rand.NewPCG(1, 2))
	const records = 3000
	for i := range records {
		n := rng.IntN(400)
		if i%500 == 250 {
			n = 2 << 20
		}
		_, err := j.AppendRaw("t", []byte(`"`), bytes.Repeat([]byte{'x'}, n), []byte(`"`))
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	j = reopen(t, path)
	for range 300 {
		_, err := j.Append("t", "after reopening")
		require.NoError(t, err)
	}
	size, err := os.Stat(path)
	require.NoError(t, err)
	for since := uint64(0); since <= records+300; since += 1 + since%17 {
		live, err := j.NewReader(since)
		require.NoError(t, err)
		file, err := OpenReader(path, since)
		require.NoError(t, err)
		counter := &countingReader{r: j.file}
		_, err = seek(counter, size.Size(), since)
		require.NoError(t, err)
		// The file is over 12 MB; lines are up to 2 MB, each read at most about twice.
		require.Less(t, counter.n, int64(5<<20), "since %d", since)
		for _, r := range []*Reader{live, file} {
			line, ok, err := r.TryNext()
			if since == records+300 {
				require.False(t, ok)
				continue
			}
			require.NoError(t, err)
			seq, _, _, ok := Header(line)
			require.True(t, ok)
			require.Equal(t, since+1, seq)
		}
		require.NoError(t, errors.Join(live.Close(), file.Close()))
	}
}

type countingReader struct {
	r io.ReaderAt
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}
