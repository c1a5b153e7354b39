package namespace

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process id comes round again: the status of an earlier process must not be taken for
// that of a new one.
func TestReusedProcessIDs(t *testing.T) {
	ours, theirs := socketPair(t)
	in := &initProcess{conn: theirs, watched: map[int]uint64{}, started: map[uint64]int{}, done: map[int]int{}}
	loadavg, err := os.ReadFile("/proc/loadavg") // its last field is the newest id
	require.NoError(t, err)
	fields := strings.Fields(string(loadavg))
	newest, err := strconv.Atoi(fields[len(fields)-1])
	require.NoError(t, err)
	for pid := range 20000 {
		in.done[newest+pid] = 99 << 8
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	in.start(message{Op: opStart, ID: 7, Argv: []string{"/bin/true"}}, []*os.File{null, null, null})
	m, _, err := receive(ours)
	require.NoError(t, err)
	require.Equal(t, opStart, m.Op)
	require.Equal(t, map[int]uint64{m.PID: 7}, in.watched, "its end is still to come")
	require.Equal(t, map[uint64]int{7: m.PID}, in.started)
	require.NotContains(t, in.done, m.PID)
	var status syscall.WaitStatus
	_, err = syscall.Wait4(m.PID, &status, 0, nil)
	require.NoError(t, err)
	require.Zero(t, status.ExitStatus())
}
