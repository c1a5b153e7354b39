package supervisor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"patio/engine/api"
)

func TestParseProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want api.Process
		bad  bool
	}{
		"plain":         {line: "    1     0  1000  2.5 102400      61 /usr/local/bin/node cli.js --mode rpc\n", want: api.Process{PID: 1, UID: 1000, CPUPercent: 2.5, RSS: 100 << 20, Elapsed: 61, Command: "/usr/local/bin/node cli.js --mode rpc"}},
		"spaces kept":   {line: "7 1 1000 0.0 4 0 sh -c  a   b", want: api.Process{PID: 7, PPID: 1, UID: 1000, RSS: 4 << 10, Command: "sh -c  a   b"}},
		"tabs":          {line: "7\t1\t1000\t0.0\t4\t0\tsh\n", want: api.Process{PID: 7, PPID: 1, UID: 1000, RSS: 4 << 10, Command: "sh"}},
		"no command":    {line: "7 1 1000 0.0 4 0", want: api.Process{PID: 7, PPID: 1, UID: 1000, RSS: 4 << 10}},
		"unicode":       {line: "7 1 1000 0.0 4 0 ./é 日本", want: api.Process{PID: 7, PPID: 1, UID: 1000, RSS: 4 << 10, Command: "./é 日本"}},
		"too short":     {line: "7 1 1000", bad: true},
		"empty":         {line: "\n", bad: true},
		"no number":     {line: "PID PPID UID %CPU RSS ELAPSED COMMAND", bad: true},
		"one no number": {line: "7 1 1000 x 4 0 sh", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, ok := parseProcess(tc.line)
			require.Equal(t, !tc.bad, ok)
			if ok {
				require.Equal(t, tc.want, p)
			}
		})
	}
}

func TestReceiveFiles(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4} {
		t.Run(fmt.Sprintf("%d", n), func(t *testing.T) {
			dir := t.TempDir()
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			a, err := net.Dial("unix", filepath.Join(dir, "s"))
			require.NoError(t, err)
			defer func() { require.NoError(t, a.Close()) }()
			b, err := l.Accept()
			require.NoError(t, err)
			defer func() { require.NoError(t, b.Close()) }()
			var fds []int
			for range n {
				f, err := os.Open(os.DevNull)
				require.NoError(t, err)
				defer func() { require.NoError(t, f.Close()) }()
				fds = append(fds, int(f.Fd()))
			}
			var rights []byte
			if n > 0 {
				rights = unix.UnixRights(fds...)
			}
			before := openFiles(t)
			_, _, err = a.(*net.UnixConn).WriteMsgUnix([]byte{'\n'}, rights, nil)
			require.NoError(t, err)
			files, err := receiveFiles(b.(*net.UnixConn), 3)
			if n != 3 {
				require.ErrorContains(t, err, "the wrong number")
			} else {
				require.NoError(t, err)
				require.Len(t, files, 3)
			}
			for _, f := range files {
				flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
				require.NoError(t, err)
				require.NotZero(t, flags&unix.FD_CLOEXEC, "no other program may inherit it")
				require.NoError(t, f.Close())
			}
			require.Equal(t, before, openFiles(t))
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
