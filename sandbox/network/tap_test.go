package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"patio/sandbox/network/policy"
)

// inNamespace runs what is sent to it on a thread in a new network namespace, and ends with the test. The thread is
// never unlocked, so that it dies with its goroutine.
func inNamespace(t *testing.T) func(func()) {
	t.Helper()
	calls, ready, done := make(chan func()), make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		ready <- unix.Unshare(unix.CLONE_NEWNET)
		for call := range calls {
			call()
		}
	}()
	err := <-ready
	t.Cleanup(func() {
		close(calls)
		<-done
	})
	if errors.Is(err, unix.EPERM) {
		t.Skip("making a network namespace is not permitted here")
	}
	require.NoError(t, err)
	return func(f func()) {
		finished := make(chan struct{})
		call := func() {
			defer close(finished)
			f()
		}
		select {
		case calls <- call:
			<-finished
		case <-done: // an earlier call ended the test
			t.FailNow()
		}
	}
}

func openTAP(t *testing.T, in func(func())) *os.File {
	t.Helper()
	var tap *os.File
	var err error
	in(func() {
		if tap, err = OpenTAP("eth0"); err == nil {
			err = Configure("eth0", 0)
		}
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skipf("TAP devices are not permitted here: %v", err)
	}
	require.NoError(t, err)
	return tap
}

func TestConfigure(t *testing.T) {
	in := inNamespace(t)
	tap := openTAP(t, in)
	defer tap.Close()
	in(func() {
		link, err := netlink.LinkByName("eth0")
		require.NoError(t, err)
		require.Equal(t, SandboxMAC.String(), link.Attrs().HardwareAddr.String())
		require.Equal(t, DefaultMTU, link.Attrs().MTU)
		require.NotZero(t, link.Attrs().Flags&net.FlagUp)
		addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		require.NoError(t, err)
		require.Len(t, addrs, 1)
		require.Equal(t, SandboxAddress.String(), addrs[0].IPNet.String())
		routes, err := netlink.RouteList(link, netlink.FAMILY_V4)
		require.NoError(t, err)
		var gateways []string
		for _, r := range routes {
			if r.Gw != nil {
				gateways = append(gateways, r.Gw.String())
			}
		}
		require.Equal(t, []string{GatewayAddress.String()}, gateways)
		require.NoError(t, Configure("eth0", 1500), "a second time")
	})
	in(func() {
		_, err := OpenTAP("a name that is far too long")
		require.ErrorContains(t, err, "1 to 15 characters")
		require.Error(t, Configure("missing", 0))
	})
}

// The kernel's own TCP/IP is the client here, through a real TAP.
func TestGatewayOnTAP(t *testing.T) {
	in := inNamespace(t)
	tap := openTAP(t, in)
	live, err := policy.NewLive(mustRule(t, "example.com:7000"))
	require.NoError(t, err)
	h, j := newHosts(), newJournal()
	h.name("example.com", "1.2.3.4")
	h.listen("1.2.3.4:7000", echo(t, "hello"))
	g, err := New(Config{TAP: tap, Policy: live, Resolver: h, Dialer: h, Record: j.record})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })

	// connect is a blocking connect of this thread: Go's own dialer might use another thread, in another namespace.
	connect := func(to netip.AddrPort, kind int) (*os.File, error) {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
			if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &unix.Timeval{Sec: int64(patience / time.Second)}); err != nil {
				return nil, errors.Join(err, unix.Close(fd))
			}
		}
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
			return nil, errors.Join(err, unix.Close(fd))
		}
		return os.NewFile(uintptr(fd), "socket"), nil
	}
	in(func() {
		_, err := connect(netip.MustParseAddrPort("192.0.2.1:443"), unix.SOCK_STREAM)
		require.ErrorIs(t, err, unix.ECONNREFUSED)
		_, err = connect(netip.MustParseAddrPort("198.19.255.77:443"), unix.SOCK_STREAM)
		require.ErrorIs(t, err, unix.ECONNREFUSED)

		quic, err := connect(netip.MustParseAddrPort("192.0.2.1:443"), unix.SOCK_DGRAM)
		require.NoError(t, err)
		defer quic.Close()
		_, err = quic.Write([]byte("hello?"))
		require.NoError(t, err)
		_, err = quic.Read(make([]byte, 1))
		require.ErrorIs(t, err, unix.ECONNREFUSED)

		addr, ok := g.names.assign("example.com", true)
		require.True(t, ok)
		conn, err := connect(netip.AddrPortFrom(addr, 7000), unix.SOCK_STREAM)
		require.NoError(t, err)
		defer conn.Close()
		got := make([]byte, 5)
		_, err = io.ReadFull(conn, got)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
	})
	require.NoError(t, context.Cause(g.ctx))
	j.wait(t, "UDP refusal", func(e Event) bool { return e.Reason == policy.ReasonUDP })
}
