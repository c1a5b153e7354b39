package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"

	"patio/sandbox/network/policy"
)

func closeWrite(t testing.TB, conn net.Conn) {
	t.Helper()
	c, ok := conn.(*gonet.TCPConn)
	require.True(t, ok)
	require.NoError(t, c.CloseWrite())
}

func TestServerSpeaksFirst(t *testing.T) {
	w := newWorld(t, []string{"example.com:22"})
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:22", echo(t, "SSH-2.0-test\r\n"))
	conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:22")
	require.NoError(t, err)
	defer conn.Close()
	greeting := make([]byte, 14)
	_, err = io.ReadFull(conn, greeting)
	require.NoError(t, err)
	require.Equal(t, "SSH-2.0-test\r\n", string(greeting))
	_, err = io.WriteString(conn, "SSH-2.0-guest\r\nmore")
	require.NoError(t, err)
	closeWrite(t, conn)
	rest, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "SSH-2.0-guest\r\nmore", string(rest))
	require.NoError(t, conn.Close())
	end := w.journal.wait(t, "end", func(e Event) bool { return e.Kind == KindEnd })
	require.EqualValues(t, 19, end.BytesOut)
	require.EqualValues(t, 14+19, end.BytesIn)
	require.Equal(t, policy.TCP, end.Protocol)
	require.Equal(t, policy.Allow, end.Verdict)
}

func TestClientSpeaksFirst(t *testing.T) {
	for _, c := range []struct {
		name, rule, address, first string
		reason                     policy.Reason // "" when it passes
	}{
		{"git", "example.com:9418", "example.com:9418", "0032git-upload-pack /x\x00host=example.com\x00", ""},
		{"ssh on the TLS port", "example.com", "example.com:443", "SSH-2.0-guest\r\n", ""},
		{"text line", "example.com:6379", "example.com:6379", "PING\r\n", ""},
		{"binary", "example.com:5432", "example.com:5432", "\x00\x00\x00\x08\x04\xd2\x16\x2f", ""},
		{"other protocol by wildcard", "*.example.com:9418", "a.example.com:9418", "0032git-upload-pack /x\x00", policy.ReasonNeedsExact},
		{"other protocol on port 80", "example.com:80", "example.com:80", "SSH-2.0-guest\r\n", policy.ReasonNotHTTP},
		{"HTTP/2 in plain text", "example.com:8080", "example.com:8080", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", policy.ReasonHTTP2},
		{"SSL 2.0 hello", "example.com", "example.com:443", "\x80\x2e\x01\x03\x01\x00\x15", policy.ReasonBadTLS},
		{"damaged hello", "example.com", "example.com:443", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", policy.ReasonBadTLS},
		{"endless first line", "example.com", "example.com:443", string(bytes.Repeat([]byte("A"), maxRequestLine+1)), policy.ReasonNoProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, []string{c.rule})
			host, port, err := net.SplitHostPort(c.address)
			require.NoError(t, err)
			w.hosts.name(host, "1.2.3.4")
			w.hosts.listen("1.2.3.4:"+port, echo(t, ""))
			conn, err := w.guest.dialName(w.context(t), "tcp", c.address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, c.first)
			require.NoError(t, err)
			got := make([]byte, len(c.first))
			_, err = io.ReadFull(conn, got)
			if c.reason == "" {
				require.NoError(t, err)
				require.Equal(t, c.first, string(got))
				return
			}
			require.Error(t, err)
			e := w.journal.wait(t, "refusal", func(e Event) bool { return e.Kind == KindConnection && e.Verdict == policy.Deny })
			require.Equal(t, c.reason, e.Reason)
			require.Empty(t, w.hosts.dialed())
		})
	}
}

// A client that waits long enough for the server to be dialed is still checked when it speaks.
func TestLateClientIsChecked(t *testing.T) {
	t.Run("TLS for another name", func(t *testing.T) {
		w := newWorld(t, []string{"example.com:8443"})
		got := make(chan []byte, 1)
		w.hosts.name("example.com", "1.2.3.4")
		w.hosts.listen("1.2.3.4:8443", serveTCP(t, func(c net.Conn) {
			b, _ := io.ReadAll(c)
			got <- b
		}))
		conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:8443")
		require.NoError(t, err)
		defer conn.Close()
		w.journal.wait(t, "start", func(e Event) bool { return e.Kind == KindConnection })
		require.Error(t, tls.Client(conn, &tls.Config{ServerName: "other.example.com", InsecureSkipVerify: true}).Handshake())
		e := w.journal.wait(t, "end", func(e Event) bool { return e.Kind == KindEnd })
		require.Equal(t, policy.ReasonSNIMismatch, e.Reason)
		require.Equal(t, policy.Deny, e.Verdict)
		require.Empty(t, <-got)
	})
	t.Run("TLS for this name", func(t *testing.T) {
		w := newWorld(t, []string{"example.com:8443"})
		real, roots := secure(t, http.NotFoundHandler())
		w.hosts.name("example.com", "1.2.3.4")
		w.hosts.listen("1.2.3.4:8443", real)
		conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:8443")
		require.NoError(t, err)
		defer conn.Close()
		w.journal.wait(t, "start", func(e Event) bool { return e.Kind == KindConnection })
		require.NoError(t, tls.Client(conn, &tls.Config{ServerName: "example.com", RootCAs: roots}).Handshake())
	})
	t.Run("HTTP", func(t *testing.T) {
		w := newWorld(t, []string{"example.com:8080"})
		w.hosts.name("example.com", "1.2.3.4")
		w.hosts.listen("1.2.3.4:8080", plain(t))
		tr := w.guest.transport(nil)
		t.Cleanup(tr.CloseIdleConnections)
		dial := tr.DialContext
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			w.journal.wait(t, "start", func(e Event) bool { return e.Kind == KindConnection })
			return conn, err
		}
		client := &http.Client{Transport: tr, Timeout: patience}
		for _, c := range []struct {
			host   string
			status int
		}{{"example.com:8080", 200}, {"other.example.com", 403}} {
			req, err := http.NewRequest(http.MethodGet, "http://example.com:8080/", nil)
			require.NoError(t, err)
			req.Host = c.host
			resp, err := client.Do(req)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, c.status, resp.StatusCode)
		}
	})
	t.Run("HTTP after the server", func(t *testing.T) {
		w := newWorld(t, []string{"example.com:8080"})
		w.hosts.name("example.com", "1.2.3.4")
		w.hosts.listen("1.2.3.4:8080", echo(t, "hello\n"))
		conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:8080")
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.ReadFull(conn, make([]byte, 6))
		require.NoError(t, err)
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n")
		require.NoError(t, err)
		e := w.journal.wait(t, "end", func(e Event) bool { return e.Kind == KindEnd })
		require.Equal(t, policy.ReasonLateHTTP, e.Reason)
	})
}

func TestFailedDialResets(t *testing.T) {
	for _, c := range []struct {
		name, address string
		verdict       policy.Verdict
		reason        policy.Reason
		kind          Kind
	}{
		{"nobody listens", "1.2.3.4", policy.Allow, policy.ReasonDialRefused, KindEnd},
		{"unknown to the host", "", policy.Allow, policy.ReasonResolveFailed, KindEnd},
		{"private address", "192.168.0.1", policy.Deny, policy.ReasonPrivate, KindConnection},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, []string{"example.com:22"})
			if c.address != "" {
				w.hosts.name("example.com", c.address)
			}
			conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:22")
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "SSH-2.0-guest\r\n")
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorContains(t, err, "reset")
			e := w.journal.wait(t, "outcome", func(e Event) bool { return e.Kind == c.kind })
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, c.verdict, e.Verdict)
		})
	}
}

func TestOnlyGoodAddressesAreDialed(t *testing.T) {
	w := newWorld(t, []string{"example.com:22", "private:git.corp.example:22"})
	w.hosts.name("example.com", "10.0.0.1", "1.2.3.4", "127.0.0.1")
	w.hosts.listen("1.2.3.4:22", echo(t, "hi"))
	w.hosts.name("git.corp.example", "10.0.0.1")
	w.hosts.listen("10.0.0.1:22", echo(t, "yo"))
	for address, greeting := range map[string]string{"example.com:22": "hi", "git.corp.example:22": "yo"} {
		conn, err := w.guest.dialName(w.context(t), "tcp", address)
		require.NoError(t, err)
		got := make([]byte, 2)
		_, err = io.ReadFull(conn, got)
		require.NoError(t, err)
		require.Equal(t, greeting, string(got))
		require.NoError(t, conn.Close())
	}
	require.ElementsMatch(t, []string{"1.2.3.4:22", "10.0.0.1:22"}, w.hosts.dialed())
}

func TestPrivateAddressRule(t *testing.T) {
	w := newWorld(t, []string{"10.0.0.1:22"})
	w.hosts.listen("10.0.0.1:22", echo(t, "yo"))
	conn, err := w.guest.dial(w.context(t), netip.MustParseAddrPort("10.0.0.1:22"))
	require.NoError(t, err)
	defer conn.Close()
	got := make([]byte, 2)
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	_, err = w.guest.dial(w.context(t), netip.MustParseAddrPort("10.0.0.1:23"))
	require.ErrorContains(t, err, "connection was refused")
}

func TestWithdrawnRuleEndsConnection(t *testing.T) {
	w := newWorld(t, []string{"example.com:22"})
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:22", echo(t, "hi"))
	conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:22")
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.ReadFull(conn, make([]byte, 2))
	require.NoError(t, err)
	require.NoError(t, w.policy.Remove(w.policy.Snapshot()[0]))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "reset")
	e := w.journal.wait(t, "end", func(e Event) bool { return e.Kind == KindEnd })
	require.Equal(t, policy.ReasonRuleGone, e.Reason)
	_, err = w.guest.dialName(w.context(t), "tcp", "example.com:22")
	require.ErrorContains(t, err, "no such host")
}

func TestManyConnections(t *testing.T) {
	const many, size = 200, 64 << 10
	w := newWorld(t, []string{"example.com:7000"})
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:7000", echo(t, ""))
	ctx := w.context(t)
	errs := make(chan error, many)
	for i := range many {
		go func() {
			errs <- func() error {
				conn, err := w.guest.dialName(ctx, "tcp", "example.com:7000")
				if err != nil {
					return err
				}
				defer conn.Close()
				sent := bytes.Repeat([]byte{0, byte(i)}, size/2)
				go func() { _, _ = conn.Write(sent) }()
				got := make([]byte, size)
				if _, err := io.ReadFull(conn, got); err != nil {
					return err
				}
				if !bytes.Equal(sent, got) {
					return fmt.Errorf("connection %d got other bytes than it sent", i)
				}
				return nil
			}()
		}()
	}
	for range many {
		require.NoError(t, <-errs)
	}
	require.NoError(t, w.gateway.Close())
	ends := 0
	for _, e := range w.journal.all() {
		if e.Kind == KindEnd {
			ends++
			require.EqualValues(t, size, e.BytesOut)
			require.EqualValues(t, size, e.BytesIn)
		}
	}
	require.Equal(t, many, ends)
	counters := w.gateway.Counters()
	require.EqualValues(t, many, counters.Connections)
	require.Zero(t, counters.OpenConnections)
	require.Greater(t, counters.SentBytes, int64(many*size))
	require.Greater(t, counters.ReceivedBytes, int64(many*size))
}

func TestLimits(t *testing.T) {
	open := func(t *testing.T, w *world) (net.Conn, error) {
		return w.guest.dialName(w.context(t), "tcp", "example.com:7000")
	}
	limited := func(t *testing.T, l Limits) *world {
		w := newWorld(t, []string{"example.com:7000"}, func(c *Config) { c.Limits = l })
		w.hosts.name("example.com", "1.2.3.4")
		w.hosts.listen("1.2.3.4:7000", echo(t, "x"))
		return w
	}
	denied := func(t *testing.T, w *world, reason policy.Reason) {
		w.journal.wait(t, string(reason), func(e Event) bool { return e.Reason == reason && e.Verdict == policy.Deny })
	}
	t.Run("open connections", func(t *testing.T) {
		w := limited(t, Limits{Connections: 2})
		for range 2 {
			conn, err := open(t, w)
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1))
			require.NoError(t, err)
		}
		_, err := open(t, w)
		require.ErrorContains(t, err, "connection was refused")
		denied(t, w, policy.ReasonTooManyConnections)
	})
	t.Run("rate", func(t *testing.T) {
		w := limited(t, Limits{ConnectionsPerSecond: 1})
		var err error
		for range 20 * burstFactor {
			var conn net.Conn
			if conn, err = open(t, w); err != nil {
				break
			}
			require.NoError(t, conn.Close())
		}
		require.ErrorContains(t, err, "connection was refused")
		denied(t, w, policy.ReasonConnectionRate)
	})
	t.Run("dialing", func(t *testing.T) {
		w := limited(t, Limits{HalfOpen: 1})
		w.hosts.mu.Lock()
		w.hosts.block = make(chan struct{})
		w.hosts.mu.Unlock()
		first, err := open(t, w)
		require.NoError(t, err)
		defer first.Close()
		_, err = first.Write([]byte{0})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(w.hosts.dialed()) == 1 }, patience, time.Millisecond)
		second, err := open(t, w)
		require.NoError(t, err)
		defer second.Close()
		_, err = second.Write([]byte{0})
		require.NoError(t, err)
		_, err = second.Read(make([]byte, 1))
		require.ErrorContains(t, err, "reset")
		denied(t, w, policy.ReasonTooManyDialing)
	})
	t.Run("names", func(t *testing.T) {
		w := newWorld(t, []string{"*.example.com", "exact.example.org"}, func(c *Config) { c.Limits.Names = 3 })
		var err error
		for i := range 4 {
			require.NoError(t, err)
			_, err = w.guest.resolver().LookupNetIP(w.context(t), "ip4", fmt.Sprintf("n%d.example.com.", i))
		}
		require.Error(t, err)
		denied(t, w, policy.ReasonNamesFull)
		_, err = w.guest.resolver().LookupNetIP(w.context(t), "ip4", "exact.example.org.")
		require.NoError(t, err)
	})
}

func TestCloseWhileBusy(t *testing.T) {
	w := newWorld(t, []string{"example.com:7000", "example.com:80", "example.com:7001"}, func(c *Config) {
		c.Services = map[string]Service{"wait.patio.internal": {Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		})}}
	})
	block := make(chan struct{})
	defer close(block)
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:7000", serveTCP(t, pour))
	ctx := w.context(t)
	var work sync.WaitGroup
	defer work.Wait()
	for range 8 { // connections with data under way
		conn, err := w.guest.dialName(ctx, "tcp", "example.com:7000")
		require.NoError(t, err)
		_, err = conn.Write([]byte{1, 1, 1, 1, 1, 1, 1, 1})
		require.NoError(t, err)
		_, err = io.ReadFull(conn, make([]byte, 1<<20))
		require.NoError(t, err)
		work.Go(func() {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		})
	}
	w.hosts.mu.Lock()
	w.hosts.block = block
	w.hosts.mu.Unlock()
	dialing, err := w.guest.dialName(ctx, "tcp", "example.com:7001") // waits for its dial
	require.NoError(t, err)
	defer dialing.Close()
	_, err = dialing.Write([]byte{0})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.gateway.Counters().Dialing == 1 }, patience, time.Millisecond)
	silent, err := w.guest.dialName(ctx, "tcp", "example.com:80") // waits for its first byte
	require.NoError(t, err)
	defer silent.Close()
	serviced, err := w.guest.dialName(ctx, "tcp", "wait.patio.internal:80") // waits in a handler
	require.NoError(t, err)
	defer serviced.Close()
	_, err = io.WriteString(serviced, "GET / HTTP/1.1\r\nHost: wait.patio.internal\r\n\r\n")
	require.NoError(t, err)
	dnsConn, err := w.guest.dial(ctx, netip.AddrPortFrom(GatewayAddress, dnsPort)) // waits for a query
	require.NoError(t, err)
	defer dnsConn.Close()

	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- w.gateway.Close() }()
	}
	for range 2 {
		select {
		case err := <-closed:
			require.NoError(t, err)
		case <-ctx.Done():
			t.Fatal("Close hangs")
		}
	}
	require.Zero(t, w.gateway.Counters().OpenConnections)
	<-w.gateway.Done()
	require.NoError(t, w.gateway.Err())
	w.guest.stack.Close() // the guest's readers wait for a gateway that is gone
}

func TestUnfinishedHandshakeDoesNotHoldUpClose(t *testing.T) {
	tap, fd := newWire(t)
	live, err := policy.NewLive(mustRule(t, "10.0.0.1:22"))
	require.NoError(t, err)
	j := newJournal()
	g, err := New(Config{TAP: tap, Policy: live, Record: j.record})
	require.NoError(t, err)
	w := &wire{t: t, fd: fd}
	defer w.close()
	w.send(syn(netip.MustParseAddr("10.0.0.1"), 22))
	reply := w.tcp() // a SYN-ACK that is never acknowledged
	require.Equal(t, uint8(0x12), reply.flags)
	require.NoError(t, g.Close())
	require.NotEmpty(t, j.all())
}

func mustRule(t testing.TB, text string) policy.Rule {
	t.Helper()
	r, err := policy.ParseRule(text)
	require.NoError(t, err)
	return r
}
