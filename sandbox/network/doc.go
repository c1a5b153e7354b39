// Package network is a sandbox's only way out: it serves the sandbox's TAP with a userspace TCP/IP stack, answers its
// DNS, and carries the connections that the policy allows; it must not route, bridge or filter anything on the host.
//
// What the sandbox sees: one Ethernet link with the gateway at GatewayAddress, which is also its DNS server. An allowed
// name gets an address from NameRange that means this name for the rest of the session and never leaves the host. A TCP
// connection to such an address is judged by the policy, its first bytes are checked (the server name of a TLS
// ClientHello, the Host of every plain HTTP request), then the host resolves the name, checks every address and dials
// the checked one. Everything else is refused at once, with an answer that makes programs fail instead of wait, and
// recorded.
//
// What can't be seen: what travels inside TLS. A server that answers for several names behind one certificate can be
// asked for another of them by an encrypted Host header.
package network
