package network

import (
	"net"
	"net/netip"
)

// The sandbox's network, the same in every sandbox: each has a network namespace of its own, so they never meet. All of
// it lies in 198.18.0.0/15, the range for benchmarks, which no network routes.
var (
	// GatewayAddress is the gateway's address, the default route and the DNS server of the sandbox.
	GatewayAddress = netip.MustParseAddr("198.19.255.1")
	// SandboxAddress is the sandbox's address with its prefix length.
	SandboxAddress = netip.MustParsePrefix("198.19.255.2/24")
	// NameRange holds the addresses that stand for names.
	NameRange = netip.MustParsePrefix("198.18.0.0/16")
	// GatewayMAC is the gateway's link address: locally administered, so that it is nobody else's.
	GatewayMAC = net.HardwareAddr{0x02, 0x70, 0x61, 0x74, 0x69, 0x01}
	// SandboxMAC is the link address Configure gives the TAP, so that it is no mark of the machine.
	SandboxMAC = net.HardwareAddr{0x02, 0x70, 0x61, 0x74, 0x69, 0x02}
)

const (
	// GatewayName is the name that the gateway's address has in reverse lookups.
	GatewayName = "gateway.patio.internal"
	// DefaultMTU is the largest that fits an IPv4 packet with the link header into 65535 bytes, rounded to 16: large
	// packets cost the fewest system calls, which are what limits a userspace stack.
	DefaultMTU = 65520
	minMTU     = 576 // RFC 791: every host must take packets of this size
	dnsPort    = 53
)
