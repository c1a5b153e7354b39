package network

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"patio/sandbox/network/policy"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// secure starts an HTTPS server whose certificate is for example.com.
func secure(t testing.TB, handler http.Handler) (address string, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.Listener.Addr().String(), roots
}

func TestAllowedTLS(t *testing.T) {
	w := newWorld(t, []string{"example.com"})
	real, roots := secure(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "hello from "+r.Host)
	}))
	w.hosts.name("example.com", "1.2.3.4")
	w.hosts.listen("1.2.3.4:443", real)
	tr := w.guest.transport(roots)
	client := &http.Client{Transport: tr, Timeout: patience}
	resp, err := client.Get("https://example.com/")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "hello from example.com", string(body))
	tr.CloseIdleConnections()

	start := w.journal.wait(t, "start", func(e Event) bool { return e.Kind == KindConnection })
	require.Equal(t, policy.Allow, start.Verdict)
	require.Equal(t, policy.TLS, start.Protocol)
	require.Equal(t, "example.com:443", start.Rule)
	end := w.journal.wait(t, "end", func(e Event) bool { return e.Kind == KindEnd })
	require.Equal(t, start.ID, end.ID)
	require.Equal(t, netip.MustParseAddrPort("1.2.3.4:443"), end.Address)
	require.Positive(t, end.BytesIn)
	require.Positive(t, end.BytesOut)
	require.Equal(t, []string{"example.com."}, w.hosts.lookedUp())
	require.Equal(t, []string{"1.2.3.4:443"}, w.hosts.dialed())
}

func TestRefusedTLS(t *testing.T) {
	for _, c := range []struct {
		name, sni string
		ech       bool
		reason    policy.Reason
	}{
		{"wrong name", "other.example.com", false, policy.ReasonSNIMismatch},
		{"no name", "", false, policy.ReasonSNIMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, []string{"example.com"})
			w.hosts.name("example.com", "1.2.3.4")
			conn, err := w.guest.dialName(w.context(t), "tcp", "example.com:443")
			require.NoError(t, err)
			defer conn.Close()
			began := time.Now()
			err = tls.Client(conn, &tls.Config{ServerName: c.sni, InsecureSkipVerify: true}).Handshake()
			require.Error(t, err)
			require.Less(t, time.Since(began), patience/4)
			e := w.journal.wait(t, "refusal", func(e Event) bool { return e.Kind == KindConnection })
			require.Equal(t, policy.Deny, e.Verdict)
			require.Equal(t, c.reason, e.Reason)
			require.Empty(t, w.hosts.dialed())
			require.Empty(t, w.hosts.lookedUp())
		})
	}
}

func TestRefusedName(t *testing.T) {
	w := newWorld(t, []string{"example.com"})
	began := time.Now()
	_, err := w.guest.dialName(w.context(t), "tcp", "refused.example.com:443")
	var dnsErr *net.DNSError
	require.ErrorAs(t, err, &dnsErr)
	require.True(t, dnsErr.IsNotFound)
	require.Less(t, time.Since(began), patience/4)
	e := w.journal.wait(t, "refusal", func(e Event) bool { return e.Kind == KindDNS })
	require.Equal(t, policy.ReasonNoRule, e.Reason)
	require.Equal(t, "refused.example.com", e.Host)
	require.Empty(t, w.hosts.lookedUp())
}

func TestAddressLiteral(t *testing.T) {
	w := newWorld(t, []string{"example.com"})
	for _, c := range []struct {
		address string
		reason  policy.Reason
	}{
		{"192.0.2.1:443", policy.ReasonLiteral},
		{"169.254.169.254:80", policy.ReasonLiteral},
		{"198.18.7.7:443", policy.ReasonUnassigned},
		{"198.19.255.1:443", policy.ReasonLiteral},
		{"198.19.255.9:22", policy.ReasonLiteral},
	} {
		t.Run(c.address, func(t *testing.T) {
			began := time.Now()
			_, err := w.guest.dial(w.context(t), netip.MustParseAddrPort(c.address))
			require.ErrorContains(t, err, "connection was refused")
			require.Less(t, time.Since(began), patience/4)
			to := netip.MustParseAddrPort(c.address)
			e := w.journal.wait(t, "refusal", func(e Event) bool { return e.Host == to.Addr().String() })
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, to.Port(), e.Port)
		})
	}
	require.Empty(t, w.hosts.dialed())
}
