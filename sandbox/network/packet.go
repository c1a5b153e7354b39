package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"patio/sandbox/network/policy"
)

// refusal is a packet that is not let in, and why.
type refusal struct {
	protocol policy.Protocol
	address  netip.Addr
	port     uint16
	reason   policy.Reason
}

// finding is what inspecting a packet led to: pass it to the stack, ignore it as the housekeeping of a network stack,
// or refuse it, with an answer where one makes the sender give up at once.
type finding struct {
	pass, ignore bool
	refusal      refusal
	answer       func() []byte
}

func malformed() refusal { return refusal{protocol: "ip", reason: policy.ReasonMalformed} }

const protocolIGMP = 2

// inspect4 judges an IPv4 packet.
func inspect4(p []byte) finding {
	ip := header.IPv4(p)
	if !ip.IsValid(len(p)) {
		return finding{refusal: malformed()}
	}
	dst := netip.AddrFrom4(ip.DestinationAddress().As4())
	payload := p[ip.HeaderLength():ip.TotalLength()]
	refused := refusal{address: dst, protocol: protocolName(ip.Protocol())}
	unicast := !dst.IsMulticast() && dst.As4()[0] < 240
	refuse := func(reason policy.Reason, answer header.ICMPv4Code) finding {
		refused.reason = reason
		f := finding{refusal: refused}
		if unicast {
			f.answer = func() []byte { return unreachable(ip, answer) }
		}
		return f
	}
	if len(payload) >= 4 && (ip.Protocol() == uint8(header.TCPProtocolNumber) || ip.Protocol() == uint8(header.UDPProtocolNumber)) {
		refused.port = binary.BigEndian.Uint16(payload[2:])
	}
	switch {
	case netip.AddrFrom4(ip.SourceAddress().As4()) != SandboxAddress.Addr():
		refused.reason = policy.ReasonForeignSource
		return finding{refusal: refused} // an answer would go nowhere
	case ip.More() || ip.FragmentOffset() != 0:
		// Nothing the gateway serves needs fragments, and putting them together is where stacks break.
		refused.port, refused.reason = 0, policy.ReasonFragment
		return finding{refusal: refused}
	}
	switch ip.Protocol() {
	case uint8(header.TCPProtocolNumber):
		if len(payload) < header.TCPMinimumSize {
			return finding{refusal: malformed()}
		}
		if !unicast {
			return refuse(policy.ReasonProtocol, 0)
		}
		return finding{pass: true}
	case uint8(header.UDPProtocolNumber):
		if len(payload) < header.UDPMinimumSize {
			return finding{refusal: malformed()}
		}
		if refused.port != dnsPort {
			return refuse(policy.ReasonUDP, header.ICMPv4PortUnreachable)
		}
		if dst != GatewayAddress {
			return refuse(policy.ReasonOtherDNS, header.ICMPv4PortUnreachable)
		}
		return finding{pass: true}
	case uint8(header.ICMPv4ProtocolNumber):
		if len(payload) < header.ICMPv4MinimumSize {
			return finding{refusal: malformed()}
		}
		if header.ICMPv4(payload).Type() != header.ICMPv4Echo {
			return finding{ignore: true} // errors about what we sent; they may not be answered (RFC 1122, 3.2.2)
		}
		return refuse(policy.ReasonICMP, header.ICMPv4AdminProhibited)
	case protocolIGMP:
		return finding{ignore: true}
	}
	return refuse(policy.ReasonProtocol, header.ICMPv4ProtoUnreachable)
}

// inspect6 judges an IPv6 packet: none is let in. The sandbox has no IPv6 address, so an answer would find no one.
func inspect6(p []byte) finding {
	ip := header.IPv6(p)
	if !ip.IsValid(len(p)) {
		return finding{refusal: malformed()}
	}
	dst := netip.AddrFrom16(ip.DestinationAddress().As16())
	housekeeping := ip.NextHeader() == uint8(header.ICMPv6ProtocolNumber) || ip.NextHeader() == uint8(header.IPv6HopByHopOptionsExtHdrIdentifier)
	if dst.IsMulticast() && housekeeping {
		return finding{ignore: true} // neighbour discovery and multicast reports of an idle interface
	}
	r := refusal{protocol: policy.IPv6, address: dst, reason: policy.ReasonIPv6}
	payload := p[header.IPv6MinimumSize:]
	if next := ip.NextHeader(); len(payload) >= 4 && (next == uint8(header.TCPProtocolNumber) || next == uint8(header.UDPProtocolNumber)) {
		r.port = binary.BigEndian.Uint16(payload[2:])
	}
	return finding{refusal: r}
}

func protocolName(number uint8) policy.Protocol {
	switch number {
	case uint8(header.TCPProtocolNumber):
		return policy.TCP
	case uint8(header.UDPProtocolNumber):
		return policy.UDP
	case uint8(header.ICMPv4ProtocolNumber):
		return policy.ICMP
	}
	return policy.Protocol(fmt.Sprintf("ip-%d", number))
}

// unreachable makes the gateway's ICMP answer to a refused packet.
func unreachable(ip header.IPv4, code header.ICMPv4Code) []byte {
	const quoted = 8 // RFC 792: the header and the first eight bytes, enough to find the socket
	quote := ip[:min(int(ip.TotalLength()), int(ip.HeaderLength())+quoted)]
	packet := make([]byte, header.IPv4MinimumSize+header.ICMPv4MinimumSize+len(quote))
	header.IPv4(packet).Encode(&header.IPv4Fields{
		TotalLength: uint16(len(packet)),
		TTL:         64,
		Protocol:    uint8(header.ICMPv4ProtocolNumber),
		SrcAddr:     tcpip.AddrFrom4(GatewayAddress.As4()),
		DstAddr:     ip.SourceAddress(),
	})
	out := header.IPv4(packet)
	out.SetChecksum(^out.CalculateChecksum())
	icmp := header.ICMPv4(packet[header.IPv4MinimumSize:])
	icmp.SetType(header.ICMPv4DstUnreachable)
	icmp.SetCode(code)
	copy(icmp[header.ICMPv4MinimumSize:], quote)
	icmp.SetChecksum(^checksum.Checksum(icmp, 0))
	return packet
}
