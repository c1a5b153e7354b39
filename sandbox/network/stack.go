package network

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"patio/sandbox/network/policy"
)

const (
	nicID = 1
	// A connection's buffers start at bufferSize and grow to bufferMax: the link has no latency to speak of, so that a
	// few large packets in flight fill it.
	bufferSize = 256 << 10
	bufferMax  = 4 << 20
	// lingering is how long the remains of a closed connection are kept. On a link that can't reorder or delay packets
	// they serve no purpose, and a busy client would pile up thousands.
	lingering = 5 * time.Second
	// synRetries bounds how long a handshake that the sandbox does not finish holds its place: some seconds.
	synRetries = 3
)

// start attaches the TCP/IP stack to the device and begins to serve.
func (g *Gateway) start(d device, mtu int) error {
	if mtu == 0 {
		mtu = DefaultMTU
	}
	g.link = newLink(d, mtu, g.refusePacket)
	s, err := newStack(g.link)
	if err != nil {
		return fmt.Errorf("set up TCP/IP stack: %w", errors.Join(err, d.Close()))
	}
	g.stack = s
	if err := g.startDNS(); err != nil {
		s.Destroy()
		return fmt.Errorf("serve DNS: %w", errors.Join(err, d.Close()))
	}
	g.startTCP()
	g.work.Go(g.watchPolicy)
	g.link.run(func(err error) {
		g.log.Error("the sandbox's network failed", "err", err)
		g.finish(err)
	})
	return nil
}

func newStack(l *link) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	err := configureStack(s, l)
	if err != nil {
		s.Destroy()
		return nil, err
	}
	return s, nil
}

func configureStack(s *stack.Stack, l *link) error {
	if err := s.CreateNIC(nicID, l); err != nil {
		return fmt.Errorf("create interface: %s", err)
	}
	address := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: toTCPIP(GatewayAddress), PrefixLen: SandboxAddress.Bits()},
	}
	if err := s.AddProtocolAddress(nicID, address, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("set address: %s", err)
	}
	// The stack takes packets for any address, and answers from it.
	if err := s.SetPromiscuousMode(nicID, true); err != nil {
		return fmt.Errorf("accept all addresses: %s", err)
	}
	if err := s.SetSpoofing(nicID, true); err != nil {
		return fmt.Errorf("answer from all addresses: %s", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID}})

	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	wait, linger := tcpip.TCPTimeWaitTimeoutOption(lingering), tcpip.TCPLingerTimeoutOption(lingering)
	retries := tcpip.TCPSynRetriesOption(synRetries)
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&sack, &moderate, &wait, &linger, &retries,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: bufferSize, Max: bufferMax},
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: bufferSize, Max: bufferMax},
	} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("set TCP option %T: %s", option, err)
		}
	}
	return nil
}

func toTCPIP(a netip.Addr) tcpip.Address { return tcpip.AddrFrom4(a.As4()) }

func fromTCPIP(a tcpip.Address) netip.Addr {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return addr.Unmap()
}

// refusePacket records a packet that the link refused.
func (g *Gateway) refusePacket(r refusal) {
	g.tallies.deniedPackets.Add(1)
	e := Event{Kind: KindPacket, Port: r.port, Protocol: r.protocol, Reason: r.reason, Message: r.reason.Message()}
	if r.address.IsValid() {
		e.Host = r.address.String()
		if name, ok := g.names.name(r.address); ok {
			e.Host = name
		}
	}
	g.recorder.repeat(e)
}

// watchPolicy closes connections whose rule was withdrawn.
func (g *Gateway) watchPolicy() {
	for {
		changed := g.policy.Changed()
		g.mu.Lock()
		for c := range g.open {
			if !g.decide(policy.TCP, c.host, c.port).Allowed() {
				c.abort(policy.ReasonRuleGone)
			}
		}
		g.mu.Unlock()
		select {
		case <-g.ctx.Done():
			return
		case <-changed:
		}
	}
}

// abortAll resets every open connection.
func (g *Gateway) abortAll(reason policy.Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		c.abort(reason)
	}
}

// decide asks the policy about a name, or an address in text form. The gateway's own services need no rule.
func (g *Gateway) decide(protocol policy.Protocol, host string, port uint16) policy.Decision {
	s, ok := g.services[host]
	if !ok {
		return g.policy.Decide(policy.Request{Protocol: protocol, Host: host, Port: port})
	}
	if protocol == policy.DNS {
		port = s.Port
	}
	if port != s.Port {
		return policy.Refuse(policy.ReasonPort)
	}
	if d := g.policy.Decide(policy.Request{Protocol: policy.TCP, Host: host, Port: port}); d.Reason == policy.ReasonRuleDenied {
		return d
	}
	return policy.Decision{
		Verdict: policy.Allow, Rule: "service:" + host, Reason: policy.ReasonService,
		Message: policy.ReasonService.Message(), Exact: true,
	}
}

// target tells what a TCP connection to an address of the sandbox's view means: the host, and the decision on it.
func (g *Gateway) target(addr netip.Addr, port uint16) (string, policy.Decision) {
	switch {
	case addr == GatewayAddress && port == dnsPort:
		return GatewayName, policy.Decision{
			Verdict: policy.Allow, Reason: policy.ReasonGateway, Message: policy.ReasonGateway.Message(), Exact: true,
		}
	case NameRange.Contains(addr):
		name, ok := g.names.name(addr)
		if !ok {
			return addr.String(), policy.Refuse(policy.ReasonUnassigned)
		}
		return name, g.decide(policy.TCP, name, port)
	}
	return addr.String(), g.policy.Decide(policy.Request{Protocol: policy.TCP, Port: port, Address: addr})
}
