package network

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"patio/sandbox/network/policy"
)

// nowhere is a device that gives nothing and takes everything, so that fuzzing puts frames in by hand.
type nowhere struct{ closed chan struct{} }

func (n nowhere) Read([]byte) (int, error) {
	<-n.closed
	return 0, os.ErrClosed
}

func (n nowhere) WriteFrame([][]byte) error { return nil }

func (n nowhere) Close() error {
	close(n.closed)
	return nil
}

func newFuzzed(f *testing.F) *Gateway {
	f.Helper()
	rules := []policy.Rule{mustRule(f, "example.com"), mustRule(f, "*.example.org:80"), mustRule(f, "127.0.0.1:8080")}
	live, err := policy.NewLive(rules...)
	require.NoError(f, err)
	h := newHosts()
	g, err := newGateway(Config{Policy: live, Resolver: h, Dialer: h})
	require.NoError(f, err)
	require.NoError(f, g.start(nowhere{make(chan struct{})}, 1500))
	f.Cleanup(func() { require.NoError(f, g.Close()) })
	return g
}

func FuzzDNS(f *testing.F) {
	g := newFuzzed(f)
	for _, name := range []string{"example.com.", "a.example.org.", "no.example.", "1.255.19.198.in-addr.arpa.", "."} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypePTR, dns.TypeANY} {
			m := new(dns.Msg).SetQuestion(name, kind)
			m.SetEdns0(1232, true)
			packed, err := m.Pack()
			require.NoError(f, err)
			f.Add(packed)
		}
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		answer := g.answerDNS(query, plainLimit)
		if answer == nil {
			return
		}
		require.GreaterOrEqual(t, len(answer), 12)
		require.Equal(t, query[:2], answer[:2])
		require.NotZero(t, answer[2]&0x80, "an answer is marked as one")
		require.LessOrEqual(t, len(answer), ednsLimit)
		var m dns.Msg
		require.NoError(t, m.Unpack(answer))
		for _, rr := range m.Answer {
			if a, ok := rr.(*dns.A); ok {
				addr, _ := netip.AddrFromSlice(a.A)
				require.True(t, NameRange.Contains(addr.Unmap()) || addr.Unmap() == GatewayAddress)
			}
		}
	})
}

// FuzzFrames puts frames into a whole gateway; whatever they are, it must go on and still refuse properly.
func FuzzFrames(f *testing.F) {
	g := newFuzzed(f)
	sandbox := SandboxAddress.Addr()
	f.Add(syn(netip.MustParseAddr("192.0.2.1"), 443), []byte{})
	f.Add(syn(NameRange.Addr().Next(), 443), []byte{})
	f.Add(ethernet(header.IPv4ProtocolNumber, ip4(sandbox, GatewayAddress, header.UDPProtocolNumber, udp4(53, "0123456789ab"))), []byte{})
	f.Add(ethernet(header.IPv4ProtocolNumber, ip4(sandbox, sandbox, header.ICMPv4ProtocolNumber, echoRequest())), []byte{1})
	f.Add(ethernet(header.IPv6ProtocolNumber, ip6("2001:db8::1", 17, make([]byte, 8))), []byte{2})
	f.Add(ethernet(header.ARPProtocolNumber, make([]byte, header.ARPSize)), []byte{3})
	f.Fuzz(func(_ *testing.T, frame, tail []byte) {
		g.link.receive(frame)
		// Once more with the fields made right that a random change never gets right, so that the stack sees it.
		if len(frame) > 34+len(tail) && frame[14]>>4 == 4 {
			fixed := bytes.Clone(frame)
			copy(fixed[len(fixed)-len(tail):], tail)
			header.Ethernet(fixed).Encode(&header.EthernetFields{DstAddr: gatewayLink, Type: header.IPv4ProtocolNumber})
			fixed[14] = 0x45
			binary.BigEndian.PutUint16(fixed[16:], uint16(len(fixed)-14))
			src := sandbox.As4()
			copy(fixed[26:], src[:])
			fixed[20], fixed[21] = 0, 0
			g.link.receive(fixed)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(helloBytes(f, &tls.Config{ServerName: "example.com"}))
	f.Add(helloBytes(f, &tls.Config{InsecureSkipVerify: true}))
	f.Add(helloBytes(f, &tls.Config{ServerName: "example.com", MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2"}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		hello, read, err := readHello(readerConn{r: bytes.NewReader(raw)})
		require.True(t, bytes.HasPrefix(raw, read))
		if err != nil {
			return
		}
		if checkHello(hello, "example.com", policy.Decision{}) == "" {
			require.Equal(t, "example.com", hello.ServerName)
			require.NotContains(t, hello.Extensions, uint16(extensionECH))
		}
	})
}

// What the standard library reads as a request must have been called one: otherwise its Host would not be checked.
func FuzzClassify(f *testing.F) {
	for _, s := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nGET / HTTP/1.0\n\n", "X\tY HTTP/1.1\n", "SSH-2.0-x\r\n", "PRI * HTTP/2.0\r\n\r\n", "\x16\x03\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		found := classify(raw)
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err == nil {
			require.Contains(t, []speech{speechHTTP, speechHTTP2}, found)
			_, _ = io.Copy(io.Discard, req.Body)
		}
		if found == speechUnclear {
			return
		}
		// More bytes never change what was found.
		require.Equal(t, found, classify(append(bytes.Clone(raw), "GET / HTTP/1.1\r\n\r\n"...)))
	})
}

func FuzzHostMatches(f *testing.F) {
	f.Add("example.com")
	f.Add("EXAMPLE.com.:80")
	f.Add("[::1]:80")
	f.Fuzz(func(t *testing.T, host string) {
		if hostMatches(host, "example.com", 80) {
			require.True(t, strings.HasPrefix(strings.ToLower(host), "example.com") || !isASCII(host), host)
		}
	})
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 }
