package namespace

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func socketPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var conns [2]*net.UnixConn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		conns[i] = c.(*net.UnixConn)
		t.Cleanup(func() { _ = c.Close() })
	}
	return conns[0], conns[1]
}

func openFiles(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(target, "/proc/") {
			names = append(names, target)
		}
	}
	return names
}

func TestMessages(t *testing.T) {
	a, b := socketPair(t)
	before := openFiles(t)
	for _, n := range []int{0, 1, 3, maxFDs} {
		t.Run(fmt.Sprintf("%d descriptors", n), func(t *testing.T) {
			var files []*os.File
			for range n {
				f, err := os.Open(os.DevNull)
				require.NoError(t, err)
				files = append(files, f)
			}
			want := message{Op: opStart, ID: 7, Argv: []string{"a", "b c", "日本\n"}, Env: []string{"A=\u2028"}, Dir: "/x", TTY: true, Signal: 9, Status: -1}
			require.NoError(t, send(a, want, files...))
			closeAll(files)
			got, received, err := receive(b)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Len(t, received, n)
			for _, f := range received {
				flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
				require.NoError(t, err)
				require.NotZero(t, flags&unix.FD_CLOEXEC)
				_, err = f.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.EOF, "it is /dev/null")
			}
			closeAll(received)
		})
	}
	require.ElementsMatch(t, before, openFiles(t))
}

func TestTooManyDescriptors(t *testing.T) {
	a, b := socketPair(t)
	before := openFiles(t)
	var files []*os.File
	for range maxFDs + 10 {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		files = append(files, f)
	}
	require.NoError(t, send(a, message{Op: opStart}, files...))
	closeAll(files)
	_, received, err := receive(b)
	require.ErrorContains(t, err, "cut off")
	require.Empty(t, received)
	require.ElementsMatch(t, before, openFiles(t), "what came is closed")
}

func TestOversize(t *testing.T) {
	a, b := socketPair(t)
	big := message{Op: opStart, Argv: []string{strings.Repeat("x", maxMessage)}}
	require.ErrorContains(t, send(a, big), "too long")
	// One that just fits comes through whole.
	big.Argv[0] = strings.Repeat("x", maxMessage-100)
	require.NoError(t, send(a, big))
	got, _, err := receive(b)
	require.NoError(t, err)
	require.Equal(t, big, got)
	// A sender with other bounds.
	require.NoError(t, a.SetWriteBuffer(4*maxMessage))
	if _, err := a.Write([]byte(`{"op":"` + strings.Repeat("x", maxMessage) + `"}`)); err == nil {
		_, _, err = receive(b)
		require.ErrorContains(t, err, "cut off")
	}
}

func TestReceiveJunk(t *testing.T) {
	a, b := socketPair(t)
	before := openFiles(t)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	for _, junk := range []string{"x", "[]", `{"op":7}`} {
		_, _, err = a.WriteMsgUnix([]byte(junk), unix.UnixRights(int(f.Fd())), nil)
		require.NoError(t, err)
		_, _, err = receive(b)
		require.ErrorContains(t, err, "decode message")
	}
	require.NoError(t, f.Close())
	require.ElementsMatch(t, before, openFiles(t))
	require.NoError(t, a.Close())
	_, _, err = receive(b)
	require.ErrorIs(t, err, io.EOF)
}
