package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"patio/sandbox/network/policy"
)

// query asks the gateway's DNS over UDP.
func (w *world) query(t testing.TB, m *dns.Msg) *dns.Msg {
	t.Helper()
	conn, err := w.guest.udp(netip.AddrPortFrom(GatewayAddress, dnsPort))
	require.NoError(t, err)
	defer conn.Close()
	reply, _, err := (&dns.Client{Timeout: patience}).ExchangeWithConn(m, &dns.Conn{Conn: conn, UDPSize: dns.MaxMsgSize})
	require.NoError(t, err)
	return reply
}

func question(name string, kind uint16) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
}

func TestDNS(t *testing.T) {
	w := newWorld(t, []string{"example.com", "*.example.org", "example.net:22", "127.0.0.1:8080"})
	first := NameRange.Addr().Next()
	for _, c := range []struct {
		name   string
		kind   uint16
		rcode  int
		answer string
		reason policy.Reason
	}{
		{"example.com", dns.TypeA, dns.RcodeSuccess, first.String(), policy.ReasonRule},
		{"EXAMPLE.com", dns.TypeA, dns.RcodeSuccess, first.String(), policy.ReasonRule},
		{"example.com", dns.TypeAAAA, dns.RcodeSuccess, "", policy.ReasonRule},
		{"example.com", dns.TypeHTTPS, dns.RcodeSuccess, "", policy.ReasonRule},
		{"example.com", dns.TypeTXT, dns.RcodeSuccess, "", policy.ReasonRule},
		{"a.example.org", dns.TypeA, dns.RcodeSuccess, "198.18.0.2", policy.ReasonRule},
		{"a.b.example.org", dns.TypeA, dns.RcodeSuccess, "198.18.0.3", policy.ReasonRule},
		{"example.net", dns.TypeA, dns.RcodeSuccess, "198.18.0.4", policy.ReasonRule},
		{policy.HostAlias, dns.TypeA, dns.RcodeSuccess, "198.18.0.5", policy.ReasonRule},
		{GatewayName, dns.TypeA, dns.RcodeSuccess, "198.19.255.1", ""},
		{"1.255.19.198.in-addr.arpa", dns.TypePTR, dns.RcodeSuccess, GatewayName + ".", ""},
		{"1.0.18.198.in-addr.arpa", dns.TypePTR, dns.RcodeSuccess, "example.com.", ""},
		{"example.org", dns.TypeA, dns.RcodeNameError, "", policy.ReasonNoRule},
		{"notexample.com", dns.TypeTXT, dns.RcodeNameError, "", policy.ReasonNoRule},
		{"www.example.com", dns.TypeAAAA, dns.RcodeNameError, "", policy.ReasonNoRule},
		{"8.8.8.8.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, "", policy.ReasonNoRule},
		{"under_score.example.org", dns.TypeA, dns.RcodeNameError, "", policy.ReasonInvalidName},
		{"192.0.2.1", dns.TypeA, dns.RcodeNameError, "", policy.ReasonInvalidName},
		{".", dns.TypeNS, dns.RcodeNameError, "", policy.ReasonInvalidName},
	} {
		reply := w.query(t, question(c.name, c.kind))
		require.Equal(t, dns.RcodeToString[c.rcode], dns.RcodeToString[reply.Rcode], c.name)
		if c.answer == "" {
			require.Empty(t, reply.Answer, c.name)
		} else {
			require.Len(t, reply.Answer, 1, c.name)
			require.True(t, strings.HasSuffix(reply.Answer[0].String(), "\t"+c.answer), reply.Answer[0])
		}
		if c.reason != "" {
			name := strings.ToLower(c.name)
			e := w.journal.wait(t, c.name, func(e Event) bool { return e.Kind == KindDNS && e.Host == name })
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, c.rcode == dns.RcodeSuccess, e.Verdict == policy.Allow)
		}
	}
	require.Empty(t, w.hosts.lookedUp())
}

func TestDNSOddQueries(t *testing.T) {
	w := newWorld(t, []string{"example.com"})
	chaos := question("version.bind", dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	two := question("example.com", dns.TypeA)
	two.Question = append(two.Question, two.Question[0])
	update := question("example.com", dns.TypeSOA)
	update.Opcode = dns.OpcodeUpdate
	for name, c := range map[string]struct {
		m     *dns.Msg
		rcode int
	}{
		"another class": {chaos, dns.RcodeRefused},
		"two questions": {two, dns.RcodeFormatError},
		"an update":     {update, dns.RcodeNotImplemented},
	} {
		require.Equal(t, c.rcode, w.query(t, c.m).Rcode, name)
	}
	require.Nil(t, w.gateway.answerDNS([]byte{1, 2, 3}, plainLimit))
	answer := new(dns.Msg).SetReply(question("example.com", dns.TypeA))
	packed, err := answer.Pack()
	require.NoError(t, err)
	require.Nil(t, w.gateway.answerDNS(packed, plainLimit))
	damaged, err := question("example.com", dns.TypeA).Pack()
	require.NoError(t, err)
	var reply dns.Msg
	require.NoError(t, reply.Unpack(w.gateway.answerDNS(damaged[:20], plainLimit)))
	require.Equal(t, dns.RcodeFormatError, reply.Rcode)
	require.Equal(t, uint16(damaged[0])<<8|uint16(damaged[1]), reply.Id)
}

func TestDNSExplainsRefusal(t *testing.T) {
	w := newWorld(t, []string{"example.com"})
	m := question("example.net", dns.TypeA)
	m.SetEdns0(4096, false)
	reply := w.query(t, m)
	require.Equal(t, dns.RcodeNameError, reply.Rcode)
	opt := reply.IsEdns0()
	require.NotNil(t, opt)
	require.Len(t, opt.Option, 1)
	ede, ok := opt.Option[0].(*dns.EDNS0_EDE)
	require.True(t, ok)
	require.Equal(t, dns.ExtendedErrorCodeProhibited, ede.InfoCode)
	require.Contains(t, ede.ExtraText, string(policy.ReasonNoRule))
}

func TestDNSOverTCP(t *testing.T) {
	w := newWorld(t, []string{"example.com"})
	conn, err := w.guest.dial(w.context(t), netip.AddrPortFrom(GatewayAddress, dnsPort))
	require.NoError(t, err)
	defer conn.Close()
	client := &dns.Client{Net: "tcp", Timeout: patience}
	for range 2 { // on one connection
		reply, _, err := client.ExchangeWithConn(question("example.com", dns.TypeA), &dns.Conn{Conn: conn})
		require.NoError(t, err)
		require.Len(t, reply.Answer, 1)
	}
}

func TestDNSRate(t *testing.T) {
	w := newWorld(t, []string{"example.com"}, func(c *Config) { c.Limits.DNSPerSecond = 1 })
	refused := false
	for range 20 * burstFactor {
		if w.query(t, question("example.com", dns.TypeA)).Rcode == dns.RcodeRefused {
			refused = true
			break
		}
	}
	require.True(t, refused)
	w.journal.wait(t, "refusal", func(e Event) bool { return e.Reason == policy.ReasonDNSRate })
}

func TestDenyRuleOnOnePortLeavesTheName(t *testing.T) {
	w := newWorld(t, []string{"example.com:80", "example.com:443"})
	for _, text := range []string{"example.com:80", "example.com:443"} {
		require.Equal(t, dns.RcodeSuccess, w.query(t, question("example.com", dns.TypeA)).Rcode)
		deny, err := policy.ParseDeny(text)
		require.NoError(t, err)
		require.NoError(t, w.policy.Add(deny))
	}
	require.Equal(t, dns.RcodeNameError, w.query(t, question("example.com", dns.TypeA)).Rcode)
}

func TestAddressNeverMeansTwoNames(t *testing.T) {
	n := newNames(netip.MustParsePrefix("198.18.0.0/29"), 2)
	seen := map[netip.Addr]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		addr, ok := n.assign(name, true)
		if !ok {
			break
		}
		require.NotContains(t, seen, addr)
		seen[addr] = name
		again, _ := n.assign(name, false)
		require.Equal(t, addr, again)
		back, ok := n.name(addr)
		require.True(t, ok)
		require.Equal(t, name, back)
	}
	require.Len(t, seen, 7)
	_, ok := n.assign("z", true)
	require.False(t, ok)
}
