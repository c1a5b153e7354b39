package network

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/sandbox/network/policy"
)

// plain starts an HTTP server that tells what it was asked for.
func plain(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(rw, "%s %s %s %s", r.Method, r.Host, r.RequestURI, body)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// ask writes a request as it is and reads the answer.
func ask(t testing.TB, conn net.Conn, r *bufio.Reader, request string) (*http.Response, string) {
	t.Helper()
	_, err := io.WriteString(conn, request)
	require.NoError(t, err)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func refusalIn(t testing.TB, body string) refusedRequest {
	t.Helper()
	var wire map[string]refusedRequest
	require.NoError(t, json.Unmarshal([]byte(body), &wire))
	return wire["error"]
}

func TestHTTPHostOnKeptConnection(t *testing.T) {
	w := newWorld(t, []string{"example.com:80"})
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:80", plain(t))
	conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:80")
	require.NoError(t, err)
	defer conn.Close()
	r := bufio.NewReader(conn)

	resp, body := ask(t, conn, r, "GET /a//b?x=1;2 HTTP/1.1\r\nHost: Example.com\r\n\r\n")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "GET Example.com /a//b?x=1;2 ", body)

	resp, body = ask(t, conn, r, "GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n")
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	refused := refusalIn(t, body)
	require.Equal(t, "egress_denied", refused.Code)
	require.Equal(t, "other.example.com", refused.Host)
	require.Equal(t, policy.ReasonHostMismatch, refused.Reason)
	require.Contains(t, refused.Message, "policy: do not retry")

	resp, body = ask(t, conn, r, "POST /c HTTP/1.1\r\nHost: example.com:80\r\nContent-Length: 4\r\n\r\nbody")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "POST example.com:80 /c body", body)
	require.NoError(t, conn.Close())

	end := w.journal.wait(t, "end", func(e Event) bool { return e.Kind == KindEnd })
	require.EqualValues(t, 3, end.Count)
	require.Equal(t, netip.MustParseAddrPort("1.2.3.4:80").Port(), end.Port)
	denied := w.journal.wait(t, "refused request", func(e Event) bool { return e.Kind == KindRequest })
	require.Equal(t, end.ID, denied.ID)
	require.Equal(t, policy.Deny, denied.Verdict)
}

func TestHTTPRequestsRefused(t *testing.T) {
	for _, c := range []struct {
		name, request string
		status        int
		reason        policy.Reason
	}{
		{"another host", "GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n", 403, policy.ReasonHostMismatch},
		{"another port", "GET / HTTP/1.1\r\nHost: example.com:8080\r\n\r\n", 403, policy.ReasonHostMismatch},
		{"an address", "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", 403, policy.ReasonHostMismatch},
		{"no host", "GET / HTTP/1.0\r\n\r\n", 403, policy.ReasonHostMismatch},
		{"absolute form", "GET http://other.example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 403, policy.ReasonAbsoluteForm},
		{"absolute form of the same host", "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 403, policy.ReasonAbsoluteForm},
		{"connect", "CONNECT other.example.com:443 HTTP/1.1\r\nHost: other.example.com:443\r\n\r\n", 403, policy.ReasonConnect},
		{"two hosts", "GET / HTTP/1.1\r\nHost: example.com\r\nHost: other.example.com\r\n\r\n", 400, ""},
		{"unknown method", "FROB / HTTP/1.1\r\nHost: other.example.com\r\n\r\n", 403, policy.ReasonHostMismatch},
		{"lower case", "get / HTTP/1.1\r\nHost: other.example.com\r\n\r\n", 403, policy.ReasonHostMismatch},
		{"blank line first", "\r\nGET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n", 400, ""},
		{"length and chunks", "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\nTransfer-Encoding: gzip\r\n\r\nabc", 501, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, []string{"example.com:80"})
			w.hosts.name("example.com", "1.2.3.4")
			conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:80")
			require.NoError(t, err)
			defer conn.Close()
			resp, body := ask(t, conn, bufio.NewReader(conn), c.request)
			require.Equal(t, c.status, resp.StatusCode)
			if c.reason != "" {
				require.Equal(t, c.reason, refusalIn(t, body).Reason)
			}
			require.Empty(t, w.hosts.dialed())
		})
	}
}

func TestHTTPRefusedPortIsExplained(t *testing.T) {
	w := newWorld(t, []string{"example.com:443"})
	conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:80")
	require.NoError(t, err)
	defer conn.Close()
	resp, body := ask(t, conn, bufio.NewReader(conn), "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	refused := refusalIn(t, body)
	require.Equal(t, policy.ReasonPort, refused.Reason)
	require.EqualValues(t, 80, refused.Port)
	require.Empty(t, w.hosts.dialed())

	_, err = w.guest.dialName(w.context(t), "tcp", "example.com:8080")
	require.ErrorContains(t, err, "connection was refused")
}

func TestHTTPFailures(t *testing.T) {
	for _, c := range []struct {
		name, address string
		status        int
		reason        policy.Reason
	}{
		{"nobody listens", "1.2.3.4", http.StatusBadGateway, policy.ReasonDialRefused},
		{"unknown to the host", "", http.StatusBadGateway, policy.ReasonResolveFailed},
		{"private address", "10.1.2.3", http.StatusForbidden, policy.ReasonPrivate},
		{"metadata", "169.254.169.254", http.StatusForbidden, policy.ReasonMetadata},
		{"own address", "9.9.9.9", http.StatusForbidden, policy.ReasonOwnAddress},
		{"mapped loopback", "::ffff:127.0.0.1", http.StatusForbidden, policy.ReasonLoopback},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, []string{"example.com:80"})
			if c.address != "" {
				w.hosts.name("example.com", c.address)
			}
			conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:80")
			require.NoError(t, err)
			defer conn.Close()
			resp, body := ask(t, conn, bufio.NewReader(conn), "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
			require.Equal(t, c.status, resp.StatusCode)
			require.Equal(t, c.reason, refusalIn(t, body).Reason)
			if c.status == http.StatusForbidden {
				require.Empty(t, w.hosts.dialed())
			}
		})
	}
}

func TestHTTPUpgradeStaysWithTheHost(t *testing.T) {
	w := newWorld(t, []string{"example.com:80"})
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		conn, rest, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, rest)
	}))
	t.Cleanup(s.Close)
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:80", s.Listener.Addr().String())
	conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:80")
	require.NoError(t, err)
	defer conn.Close()
	r := bufio.NewReader(conn)
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	// What follows belongs to the upgraded protocol of this host, whatever it looks like.
	const line = "GET / HTTP/1.1 is only text here\n"
	_, err = io.WriteString(conn, line)
	require.NoError(t, err)
	got, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, line, got)
	require.NoError(t, conn.Close())
	w.journal.wait(t, "end", func(e Event) bool { return e.Kind == KindEnd })
}

func TestHTTPUpgradeToHTTP2IsIgnored(t *testing.T) {
	w := newWorld(t, []string{"example.com:80"})
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(rw, "%q %q", r.Header["Upgrade"], r.Header["Http2-Settings"])
	}))
	t.Cleanup(s.Close)
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:80", s.Listener.Addr().String())
	conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:80")
	require.NoError(t, err)
	defer conn.Close()
	resp, body := ask(t, conn, bufio.NewReader(conn),
		"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "[] []", body)
}

func TestServiceStreams(t *testing.T) {
	next := make(chan struct{})
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(rw, "part %d of %s\n", i, r.Host)
			_ = http.NewResponseController(rw).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	w := newWorld(t, nil, func(c *Config) {
		c.Services = map[string]Service{"model.patio.internal": {Handler: handler}}
	})
	tr := w.guest.transport(nil)
	t.Cleanup(tr.CloseIdleConnections)
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Get("http://model.patio.internal/v1")
	require.NoError(t, err)
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for i := range 3 {
		// The handler waits until this line has arrived: it was not held back.
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("part %d of model.patio.internal\n", i), line)
		next <- struct{}{}
	}
	e := w.journal.wait(t, "start", func(e Event) bool { return e.Kind == KindConnection })
	require.Equal(t, "service:model.patio.internal", e.Rule)
	require.Equal(t, policy.ReasonService, e.Reason)
	require.Empty(t, w.hosts.dialed())
	require.Empty(t, w.hosts.lookedUp())
}

func TestServiceIsBeatenByDenyRule(t *testing.T) {
	w := newWorld(t, nil, func(c *Config) {
		c.Services = map[string]Service{"mcp.patio.internal": {Handler: http.NotFoundHandler()}}
	})
	conn, err := w.guest.dialName(w.context(t), "tcp", "mcp.patio.internal:80")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	deny, err := policy.ParseDeny("mcp.patio.internal")
	require.NoError(t, err)
	require.NoError(t, w.policy.Add(deny))
	_, err = w.guest.dialName(w.context(t), "tcp", "mcp.patio.internal:80")
	require.ErrorContains(t, err, "no such host")
}

func TestServiceChecksHost(t *testing.T) {
	w := newWorld(t, nil, func(c *Config) {
		c.Services = map[string]Service{"model.patio.internal": {Port: 8080, Handler: http.NotFoundHandler()}}
	})
	conn, err := w.guest.dialName(w.context(t), "tcp", "model.patio.internal:8080")
	require.NoError(t, err)
	defer conn.Close()
	r := bufio.NewReader(conn)
	resp, _ := ask(t, conn, r, "GET / HTTP/1.1\r\nHost: model.patio.internal:8080\r\n\r\n")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	resp, _ = ask(t, conn, r, "GET / HTTP/1.1\r\nHost: rebound.example.com\r\n\r\n")
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
}

func TestLoopbackRuleByAlias(t *testing.T) {
	real := plain(t)
	w := newWorld(t, []string{"127.0.0.1:8080"})
	w.hosts.listen("127.0.0.1:8080", real)
	tr := w.guest.transport(nil)
	t.Cleanup(tr.CloseIdleConnections)
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Get("http://" + policy.HostAlias + ":8080/v1/models")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "GET 127.0.0.1:8080 /v1/models ", string(body))
	require.Equal(t, []string{"127.0.0.1:8080"}, w.hosts.dialed())
	require.Empty(t, w.hosts.lookedUp())
}

func TestHostMatches(t *testing.T) {
	for _, c := range []struct {
		header, host string
		port         uint16
		want         bool
	}{
		{"example.com", "example.com", 80, true},
		{"EXAMPLE.com.", "example.com", 80, true},
		{"example.com:80", "example.com", 80, true},
		{"example.com:081", "example.com", 81, false},
		{"example.com:81", "example.com", 80, false},
		{"example.com:", "example.com", 80, true},
		{"", "example.com", 80, false},
		{"example.com@evil.example", "example.com", 80, false},
		{"example.com/x", "example.com", 80, false},
		{"192.168.1.5:8080", "192.168.1.5", 8080, true},
		{"[::ffff:192.168.1.5]:8080", "192.168.1.5", 8080, true},
		{"[fd00::5]", "fd00::5", 8080, true},
		{strings.Repeat("a", 5000), "example.com", 80, false},
	} {
		require.Equal(t, c.want, hostMatches(c.header, c.host, c.port), c.header)
	}
}
