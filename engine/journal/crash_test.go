package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// crash ends a journal as the death of its process does: nothing is synced or tidied, the lock goes.
func crash(t require.TestingT, j *Journal) {
	j.closed.Store(true)
	j.bell.stop()
	require.NoError(t, j.file.release())
}

// Whatever is appended, wherever it crashes, a journal opens to a prefix of what was appended and goes on from there.
func TestAppendCrashReopen(t *testing.T) {
	dir := t.TempDir()
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		count++
		path := filepath.Join(dir, fmt.Sprint(count))
		var j *Journal
		open := func() {
			var err error
			j, err = Open(path, "s1")
			require.NoError(t, err)
		}
		open()
		defer func() { require.NoError(t, j.Close()) }()
		var data []string
		size := rapid.SampledFrom([]int{0, 1, 30, 300, 300, 300, blockSize / 3, oneWrite / 3})
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				text := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "\u2028", `"`}).Draw(t, "text"), size.Draw(t, "size"))
				seq, err := j.Append("t", text)
				require.NoError(t, err)
				data = append(data, text)
				require.EqualValues(t, len(data), seq)
			},
			"full disk": func(t *rapid.T) {
				// Less than the shortest record: a time can have few digits.
				j.store = &faultyStore{File: j.file.File, budget: rapid.IntRange(0, 70).Draw(t, "room"), err: syscall.ENOSPC}
				_, err := j.Append("t", strings.Repeat("z", size.Draw(t, "size")))
				require.ErrorIs(t, err, syscall.ENOSPC)
				j.store = j.file.File
			},
			"close and open": func(t *rapid.T) {
				require.NoError(t, j.Close())
				open()
				require.Zero(t, j.Cut())
			},
			"crash": func(t *rapid.T) {
				_, end := j.Last()
				crash(t, j)
				cut := rapid.Int64Range(max(0, end-2*blockSize), end).Draw(t, "cut")
				require.NoError(t, os.Truncate(path, cut))
				open()
				seq, kept := j.Last()
				require.LessOrEqual(t, kept, cut)
				require.Equal(t, cut-kept, j.Cut())
				require.LessOrEqual(t, int(seq), len(data))
				data = data[:seq]
			},
			"": func(t *rapid.T) {
				since := rapid.IntRange(max(0, len(data)-3), len(data)+1).Draw(t, "since")
				live, err := j.NewReader(uint64(since))
				require.NoError(t, err)
				file, err := OpenReader(path, uint64(since))
				require.NoError(t, err)
				for i := since; i < len(data); i++ {
					for _, r := range []*Reader{live, file} {
						line, ok, err := r.TryNext()
						require.NoError(t, err)
						require.True(t, ok)
						rec, err := Decode(line)
						require.NoError(t, err)
						require.EqualValues(t, i+1, rec.Seq)
						var text string
						require.NoError(t, json.Unmarshal(rec.Data, &text))
						require.Equal(t, data[i], text)
					}
				}
				_, ok, err := live.TryNext()
				require.NoError(t, err)
				require.False(t, ok)
				_, _, err = file.TryNext()
				require.ErrorIs(t, err, io.EOF)
				require.NoError(t, errors.Join(live.Close(), file.Close()))
			},
		})
	})
}
