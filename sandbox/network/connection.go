package network

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"patio/sandbox/network/policy"
)

// connection is one TCP connection of the sandbox, from its handshake on.
type connection struct {
	g        *Gateway
	id       string
	host     string
	port     uint16
	decision policy.Decision // the one at the handshake
	guest    *guestConn
	ctx      context.Context
	cancel   context.CancelFunc
	opened   time.Time

	requests atomic.Int64

	mu       sync.Mutex
	started  bool // an allowing event was recorded, an end must follow
	protocol policy.Protocol
	dialed   netip.AddrPort
	failure  policy.Decision
}

// startTCP lets the stack ask about every connection attempt.
func (g *Gateway) startTCP() {
	// The forwarder silently ignores what is beyond its own limit, so it must never be the one that is reached.
	const spare = 2
	forwarder := tcp.NewForwarder(g.stack, bufferSize, spare*g.admission.limits.HalfOpen, g.accept)
	g.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, func(id stack.TransportEndpointID, pkt *stack.PacketBuffer) bool {
		if isAttempt(pkt) && !g.admits(id) {
			return false // the stack answers with a reset
		}
		return forwarder.HandlePacket(id, pkt)
	})
}

// isAttempt tells whether a segment asks for a connection.
func isAttempt(pkt *stack.PacketBuffer) bool {
	segment := header.TCP(pkt.TransportHeader().Slice())
	if len(segment) < header.TCPMinimumSize {
		return false
	}
	return segment.Flags()&(header.TCPFlagSyn|header.TCPFlagAck|header.TCPFlagRst) == header.TCPFlagSyn
}

// admits decides on a connection attempt before anything is kept of it.
func (g *Gateway) admits(id stack.TransportEndpointID) bool {
	host, d := g.target(fromTCPIP(id.LocalAddress), id.LocalPort)
	if d.Allowed() || g.explains(host, id.LocalPort, d) {
		if g.admission.halfOpenLeft() {
			return true
		}
		d = policy.Refuse(policy.ReasonTooManyDialing)
	}
	g.refuseConnection(host, id.LocalPort, policy.TCP, d)
	return false
}

// explains tells whether a refused connection is let in all the same, to answer its HTTP requests with the reason.
func (g *Gateway) explains(host string, port uint16, d policy.Decision) bool {
	if port != 80 || d.Reason != policy.ReasonPort && d.Reason != policy.ReasonRuleDenied && d.Reason != policy.ReasonNoRule {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err != nil
}

func (g *Gateway) refuseConnection(host string, port uint16, protocol policy.Protocol, d policy.Decision) {
	g.tallies.deniedConnections.Add(1)
	g.recorder.repeat(Event{
		Kind: KindConnection, Host: host, Port: port, Protocol: protocol, Rule: d.Rule, Reason: d.Reason, Message: d.Message,
	})
}

// accept carries one connection from its first packet to its end. The stack calls it on a goroutine of its own.
func (g *Gateway) accept(r *tcp.ForwarderRequest) {
	if !g.begin() {
		r.Complete(false)
		return
	}
	defer g.work.Done()
	id := r.ID()
	host, d := g.target(fromTCPIP(id.LocalAddress), id.LocalPort)
	if !d.Allowed() && !g.explains(host, id.LocalPort, d) {
		g.refuseConnection(host, id.LocalPort, policy.TCP, d)
		r.Complete(true)
		return
	}
	if reason := g.admission.enter(); reason != "" {
		g.refuseConnection(host, id.LocalPort, policy.TCP, policy.Refuse(reason))
		r.Complete(true)
		return
	}
	defer g.admission.leave()
	var wq waiter.Queue
	ep, err := r.CreateEndpoint(&wq)
	g.admission.handshakeDone()
	if err != nil {
		g.refuseConnection(host, id.LocalPort, policy.TCP, policy.Refuse(policy.ReasonHandshake))
		r.Complete(true)
		return
	}
	r.Complete(false)
	g.serve(newGuestConn(&wq, ep), host, id.LocalPort, d)
}

// begin counts a goroutine as the gateway's work, unless it is closing.
func (g *Gateway) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return false
	}
	g.work.Add(1)
	return true
}

func (g *Gateway) serve(guest *guestConn, host string, port uint16, d policy.Decision) {
	c := &connection{g: g, host: host, port: port, decision: d, guest: guest, opened: g.now(), protocol: policy.TCP}
	c.ctx, c.cancel = context.WithCancel(g.ctx)
	defer c.cancel()
	g.mu.Lock()
	g.nextID++
	c.id = "c" + strconv.FormatUint(g.nextID, 10)
	closing := g.closing
	if d.Allowed() && d.Reason != policy.ReasonGateway {
		g.open[c] = struct{}{}
	}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.open, c)
		g.mu.Unlock()
	}()
	stop := context.AfterFunc(g.ctx, guest.Abort)
	defer stop()
	defer func() { _ = guest.Close() }()
	if closing {
		guest.Abort()
		return
	}
	switch _, service := g.services[host]; {
	case d.Reason == policy.ReasonGateway:
		g.serveDNS(c.ctx, guest)
	case !d.Allowed():
		c.explain()
	case service:
		c.start(policy.HTTP, d)
		g.web.serve(c, guest)
	default:
		c.carry()
	}
	c.end()
}

// start records that the connection was allowed.
func (c *connection) start(protocol policy.Protocol, d policy.Decision) {
	c.mu.Lock()
	c.protocol, c.started = protocol, true
	c.mu.Unlock()
	c.g.tallies.connections.Add(1)
	c.g.recorder.emit(Event{
		Kind: KindConnection, ID: c.id, Verdict: policy.Allow, Host: c.host, Port: c.port, Protocol: protocol,
		Rule: d.Rule, Reason: d.Reason, Message: d.Message, Address: c.address(),
	})
}

// refuse resets the connection. Before start it is a refused connection, afterwards an allowed one that ended so.
func (c *connection) refuse(protocol policy.Protocol, d policy.Decision) {
	c.guest.Abort()
	c.mu.Lock()
	if c.started {
		c.fail(d)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.g.refuseConnection(c.host, c.port, protocol, d)
}

// fail keeps the first reason for which an allowed connection did not end by itself. The caller holds c.mu.
func (c *connection) fail(d policy.Decision) {
	if c.failure.Reason == "" {
		c.failure = d
	}
}

// abort ends the connection from outside.
func (c *connection) abort(reason policy.Reason) {
	c.mu.Lock()
	c.fail(policy.Refuse(reason))
	c.mu.Unlock()
	c.cancel()
	c.guest.Abort()
}

func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		return
	}
	e := Event{
		Kind: KindEnd, ID: c.id, Verdict: policy.Allow, Host: c.host, Port: c.port, Protocol: c.protocol,
		Rule: c.decision.Rule, Address: c.dialed,
		BytesIn: c.guest.sent.Load(), BytesOut: c.guest.received.Load(),
		Duration: c.g.now().Sub(c.opened), Count: c.requests.Load(),
	}
	if c.failure.Reason != "" {
		e.Verdict, e.Reason, e.Message = c.failure.Verdict, c.failure.Reason, c.failure.Message
	}
	c.g.recorder.emit(e)
}

func (c *connection) address() netip.AddrPort {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialed
}

func (c *connection) setAddress(a netip.AddrPort) {
	c.mu.Lock()
	c.dialed = a
	c.mu.Unlock()
}
