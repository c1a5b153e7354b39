package network

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"patio/sandbox/network/policy"
)

// wire is the sandbox's end of the link, for frames written by hand.
type wire struct {
	t  testing.TB
	fd int
}

func (w *wire) close() { _ = unix.Close(w.fd) }

func (w *wire) send(frame []byte) {
	w.t.Helper()
	_, err := unix.Write(w.fd, frame)
	require.NoError(w.t, err)
}

// next gives the next frame that match accepts.
func (w *wire) next(match func(frame []byte) bool) []byte {
	w.t.Helper()
	require.NoError(w.t, unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)}))
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(w.fd, buf)
		require.NoError(w.t, err)
		if match(buf[:n]) {
			return buf[:n]
		}
	}
}

type tcpReply struct {
	from  netip.AddrPort
	flags uint8
}

func (w *wire) tcp() tcpReply {
	w.t.Helper()
	frame := w.next(func(f []byte) bool {
		return len(f) >= 54 && header.Ethernet(f).Type() == header.IPv4ProtocolNumber && header.IPv4(f[14:]).Protocol() == uint8(header.TCPProtocolNumber)
	})
	ip := header.IPv4(frame[14:])
	seg := header.TCP(frame[14+ip.HeaderLength():])
	return tcpReply{netip.AddrPortFrom(fromTCPIP(ip.SourceAddress()), seg.SourcePort()), uint8(seg.Flags())}
}

// icmp gives the type and code of the next ICMP answer, and the address it is about.
func (w *wire) icmp() (header.ICMPv4Type, header.ICMPv4Code, netip.Addr) {
	w.t.Helper()
	frame := w.next(func(f []byte) bool {
		return len(f) >= 42 && header.Ethernet(f).Type() == header.IPv4ProtocolNumber && header.IPv4(f[14:]).Protocol() == uint8(header.ICMPv4ProtocolNumber)
	})
	ip := header.IPv4(frame[14:])
	require.True(w.t, ip.IsChecksumValid())
	require.Equal(w.t, GatewayAddress, fromTCPIP(ip.SourceAddress()))
	icmp := header.ICMPv4(ip.Payload())
	require.Equal(w.t, uint16(0xffff), checksum.Checksum(icmp, 0))
	return icmp.Type(), icmp.Code(), fromTCPIP(header.IPv4(icmp.Payload()).DestinationAddress())
}

func ethernet(protocol tcpip.NetworkProtocolNumber, payload []byte) []byte {
	frame := make([]byte, header.EthernetMinimumSize, header.EthernetMinimumSize+len(payload))
	header.Ethernet(frame).Encode(&header.EthernetFields{SrcAddr: tcpip.LinkAddress(SandboxMAC), DstAddr: gatewayLink, Type: protocol})
	return append(frame, payload...)
}

func ip4(src, dst netip.Addr, protocol tcpip.TransportProtocolNumber, payload []byte) []byte {
	p := make([]byte, header.IPv4MinimumSize, header.IPv4MinimumSize+len(payload))
	header.IPv4(p).Encode(&header.IPv4Fields{
		TotalLength: uint16(header.IPv4MinimumSize + len(payload)), TTL: 64, Protocol: uint8(protocol),
		SrcAddr: toTCPIP(src), DstAddr: toTCPIP(dst),
	})
	header.IPv4(p).SetChecksum(^header.IPv4(p).CalculateChecksum())
	return append(p, payload...)
}

func udp4(port uint16, payload string) []byte {
	p := make([]byte, header.UDPMinimumSize, header.UDPMinimumSize+len(payload))
	header.UDP(p).Encode(&header.UDPFields{SrcPort: 40000, DstPort: port, Length: uint16(header.UDPMinimumSize + len(payload))})
	return append(p, payload...)
}

func syn(dst netip.Addr, port uint16) []byte {
	seg := make([]byte, header.TCPMinimumSize)
	header.TCP(seg).Encode(&header.TCPFields{
		SrcPort: 40000, DstPort: port, SeqNum: 1, DataOffset: header.TCPMinimumSize, Flags: header.TCPFlagSyn, WindowSize: 65535,
	})
	return ethernet(header.IPv4ProtocolNumber, ip4(SandboxAddress.Addr(), dst, header.TCPProtocolNumber, seg))
}

func echoRequest() []byte {
	p := make([]byte, header.ICMPv4MinimumSize)
	header.ICMPv4(p).SetType(header.ICMPv4Echo)
	header.ICMPv4(p).SetChecksum(^checksum.Checksum(p, 0))
	return p
}

func ip6(dst string, next uint8, payload []byte) []byte {
	p := make([]byte, header.IPv6MinimumSize, header.IPv6MinimumSize+len(payload))
	p[0], p[5], p[6], p[7] = 0x60, byte(len(payload)), next, 64
	to := netip.MustParseAddr(dst).As16()
	copy(p[24:], to[:])
	return append(p, payload...)
}

func newFrames(t testing.TB, rules ...policy.Rule) (*wire, *journal, *Gateway) {
	t.Helper()
	tap, fd := newWire(t)
	live, err := policy.NewLive(rules...)
	require.NoError(t, err)
	j := newJournal()
	g, err := New(Config{TAP: tap, Policy: live, Record: j.record})
	require.NoError(t, err)
	w := &wire{t: t, fd: fd}
	t.Cleanup(func() {
		require.NoError(t, g.Close())
		w.close()
	})
	return w, j, g
}

func TestRefusedPackets(t *testing.T) {
	sandbox, outside := SandboxAddress.Addr(), netip.MustParseAddr("192.0.2.1")
	const silent = header.ICMPv4Code(255)
	for _, c := range []struct {
		name   string
		frame  []byte
		want   Event
		answer header.ICMPv4Code
	}{
		{
			"UDP", ethernet(header.IPv4ProtocolNumber, ip4(sandbox, outside, header.UDPProtocolNumber, udp4(443, "quic"))),
			Event{Host: "192.0.2.1", Port: 443, Protocol: policy.UDP, Reason: policy.ReasonUDP}, header.ICMPv4PortUnreachable,
		},
		{
			"UDP to the gateway", ethernet(header.IPv4ProtocolNumber, ip4(sandbox, GatewayAddress, header.UDPProtocolNumber, udp4(123, ""))),
			Event{Host: "198.19.255.1", Port: 123, Protocol: policy.UDP, Reason: policy.ReasonUDP}, header.ICMPv4PortUnreachable,
		},
		{
			"another DNS server", ethernet(header.IPv4ProtocolNumber, ip4(sandbox, outside, header.UDPProtocolNumber, udp4(53, "query"))),
			Event{Host: "192.0.2.1", Port: 53, Protocol: policy.UDP, Reason: policy.ReasonOtherDNS}, header.ICMPv4PortUnreachable,
		},
		{
			"ping", ethernet(header.IPv4ProtocolNumber, ip4(sandbox, outside, header.ICMPv4ProtocolNumber, echoRequest())),
			Event{Host: "192.0.2.1", Protocol: policy.ICMP, Reason: policy.ReasonICMP}, header.ICMPv4AdminProhibited,
		},
		{
			"GRE", ethernet(header.IPv4ProtocolNumber, ip4(sandbox, outside, 47, []byte("tunnel"))),
			Event{Host: "192.0.2.1", Protocol: "ip-47", Reason: policy.ReasonProtocol}, header.ICMPv4ProtoUnreachable,
		},
		{
			"UDP to a multicast group", ethernet(header.IPv4ProtocolNumber, ip4(sandbox, netip.MustParseAddr("224.0.0.251"), header.UDPProtocolNumber, udp4(5353, ""))),
			Event{Host: "224.0.0.251", Port: 5353, Protocol: policy.UDP, Reason: policy.ReasonUDP}, silent,
		},
		{
			"another source", ethernet(header.IPv4ProtocolNumber, ip4(netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("255.255.255.255"), header.UDPProtocolNumber, udp4(67, ""))),
			Event{Host: "255.255.255.255", Port: 67, Protocol: policy.UDP, Reason: policy.ReasonForeignSource}, silent,
		},
		{
			"IPv6", ethernet(header.IPv6ProtocolNumber, ip6("2001:db8::1", uint8(header.TCPProtocolNumber), make([]byte, 20))),
			Event{Host: "2001:db8::1", Protocol: policy.IPv6, Reason: policy.ReasonIPv6}, silent,
		},
		{"short frame", []byte{1, 2, 3}, Event{Protocol: "ip", Reason: policy.ReasonMalformed}, silent},
		{"short packet", ethernet(header.IPv4ProtocolNumber, []byte{0x45, 0, 0}), Event{Protocol: "ip", Reason: policy.ReasonMalformed}, silent},
		{
			"short segment", ethernet(header.IPv4ProtocolNumber, ip4(sandbox, outside, header.TCPProtocolNumber, []byte{1, 2})),
			Event{Protocol: "ip", Reason: policy.ReasonMalformed}, silent,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, j, g := newFrames(t)
			w.send(c.frame)
			got := j.wait(t, "packet", func(e Event) bool { return e.Kind == KindPacket })
			require.Equal(t, c.want.Host, got.Host)
			require.Equal(t, c.want.Port, got.Port)
			require.Equal(t, c.want.Protocol, got.Protocol)
			require.Equal(t, c.want.Reason, got.Reason)
			require.Equal(t, policy.Deny, got.Verdict)
			require.EqualValues(t, 1, g.Counters().DeniedPackets)
			if c.answer != silent {
				kind, code, about := w.icmp()
				require.Equal(t, header.ICMPv4DstUnreachable, kind)
				require.Equal(t, c.answer, code)
				require.Equal(t, netip.MustParseAddr(c.want.Host), about)
			} else {
				require.Zero(t, g.Counters().SentPackets)
			}
		})
	}
}

func TestFragmentsAreRefused(t *testing.T) {
	w, j, _ := newFrames(t)
	p := ip4(SandboxAddress.Addr(), GatewayAddress, header.UDPProtocolNumber, udp4(53, "query"))
	header.IPv4(p).SetFlagsFragmentOffset(header.IPv4FlagMoreFragments, 0)
	w.send(ethernet(header.IPv4ProtocolNumber, p))
	e := j.wait(t, "packet", func(e Event) bool { return e.Kind == KindPacket })
	require.Equal(t, policy.ReasonFragment, e.Reason)
}

// Frames that the usual endpoints stop at must not stop the link.
func TestLinkSurvivesOddFrames(t *testing.T) {
	w, _, g := newFrames(t)
	toOther := ethernet(header.IPv4ProtocolNumber, ip4(SandboxAddress.Addr(), GatewayAddress, header.UDPProtocolNumber, udp4(9, "")))
	copy(toOther, []byte{0x02, 9, 9, 9, 9, 9})
	w.send([]byte{0})
	w.send(toOther)
	w.send(ethernet(0x88cc, []byte("lldp")))
	w.send(ethernet(header.ARPProtocolNumber, []byte{1}))
	w.send(ethernet(header.IPv6ProtocolNumber, ip6("ff02::2", uint8(header.ICMPv6ProtocolNumber), make([]byte, 8))))
	w.send(syn(netip.MustParseAddr("192.0.2.1"), 443))
	reply := w.tcp()
	require.Equal(t, netip.MustParseAddrPort("192.0.2.1:443"), reply.from)
	require.NotZero(t, reply.flags&uint8(header.TCPFlagRst))
	require.EqualValues(t, 4, g.Counters().IgnoredPackets)
}

func TestARPAnswersForEveryAddressButTheSandboxs(t *testing.T) {
	w, _, _ := newFrames(t)
	ask := func(target netip.Addr) {
		p := header.ARP(make([]byte, header.ARPSize))
		p.SetIPv4OverEthernet()
		p.SetOp(header.ARPRequest)
		copy(p.HardwareAddressSender(), SandboxMAC)
		to, from := target.As4(), SandboxAddress.Addr().As4()
		copy(p.ProtocolAddressSender(), from[:])
		copy(p.ProtocolAddressTarget(), to[:])
		w.send(ethernet(header.ARPProtocolNumber, p))
	}
	ask(SandboxAddress.Addr())
	ask(netip.MustParseAddr("198.19.255.77"))
	frame := w.next(func(f []byte) bool { return header.Ethernet(f).Type() == header.ARPProtocolNumber })
	reply := header.ARP(frame[14:])
	require.Equal(t, header.ARPReply, reply.Op())
	require.Equal(t, []byte(GatewayMAC), reply.HardwareAddressSender())
	require.Equal(t, []byte{198, 19, 255, 77}, reply.ProtocolAddressSender())
}

func TestRepeatedPacketsAreOneEvent(t *testing.T) {
	w, j, g := newFrames(t)
	const many = 50
	frame := ethernet(header.IPv4ProtocolNumber, ip4(SandboxAddress.Addr(), netip.MustParseAddr("192.0.2.1"), header.UDPProtocolNumber, udp4(443, "")))
	for range many {
		w.send(frame)
		w.icmp()
	}
	require.NoError(t, g.Close())
	total, events := int64(0), j.all()
	for _, e := range events {
		total += e.Count
	}
	require.EqualValues(t, many, total)
	require.Less(t, len(events), many/2)
}

func TestDeadTAPIsReported(t *testing.T) {
	tap, fd := newWire(t)
	live, err := policy.NewLive()
	require.NoError(t, err)
	g, err := New(Config{TAP: tap, Policy: live})
	require.NoError(t, err)
	require.NoError(t, g.Err())
	require.NoError(t, unix.Close(fd))
	select {
	case <-g.Done():
	case <-time.After(patience):
		t.Fatal("the gateway did not notice")
	}
	require.ErrorContains(t, g.Err(), "read from TAP")
	require.NoError(t, g.Close())
	require.ErrorContains(t, g.Err(), "read from TAP")
}
