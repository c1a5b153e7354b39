package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"patio/sandbox/network/policy"
)

// patience is how long a test waits for what must happen; nothing that passes takes a noticeable part of it.
const patience = 20 * time.Second

// guest is a second TCP/IP stack, wired to a gateway as a sandbox is.
type guest struct {
	stack *stack.Stack
}

// newWire makes an Ethernet wire: two ends that keep frames whole.
func newWire(t testing.TB) (gateway *os.File, sandbox int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	for _, fd := range fds {
		require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20))
	}
	return os.NewFile(uintptr(fds[0]), "wire"), fds[1]
}

func newGuest(t testing.TB, fd, mtu int) *guest {
	t.Helper()
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	link, err := fdbased.New(&fdbased.Options{
		FDs: []int{fd}, MTU: uint32(mtu), EthernetHeader: true, Address: tcpip.LinkAddress(SandboxMAC),
		RXChecksumOffload: true, ProcessorsPerChannel: 1,
	})
	require.NoError(t, err)
	require.Nil(t, s.CreateNIC(1, link))
	require.Nil(t, s.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{
			Address: toTCPIP(SandboxAddress.Addr()), PrefixLen: SandboxAddress.Bits(),
		},
	}, stack.AddressProperties{}))
	local, err := tcpip.NewSubnet(toTCPIP(SandboxAddress.Masked().Addr()), tcpip.MaskFromBytes(net.CIDRMask(SandboxAddress.Bits(), 32)))
	require.NoError(t, err)
	s.SetRouteTable([]tcpip.Route{
		{Destination: local, NIC: 1},
		{Destination: header.IPv4EmptySubnet, Gateway: toTCPIP(GatewayAddress), NIC: 1},
	})
	sack := tcpip.TCPSACKEnabled(true)
	require.Nil(t, s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack))
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	require.Nil(t, s.SetTransportProtocolOption(tcp.ProtocolNumber, &moderate))
	t.Cleanup(func() {
		// The stack may not be waited for while a packet is still coming in: it holds the lock
		// that the answer to the packet needs.
		link.Attach(nil)
		s.Destroy()
		_ = unix.Close(fd)
	})
	return &guest{stack: s}
}

// dial connects to an address, as a program inside that uses no name.
func (g *guest) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	return gonet.DialContextTCP(ctx, g.stack, tcpip.FullAddress{Addr: toTCPIP(addr.Addr()), Port: addr.Port()}, ipv4.ProtocolNumber)
}

func (g *guest) udp(addr netip.AddrPort) (*gonet.UDPConn, error) {
	return gonet.DialUDP(g.stack, nil, &tcpip.FullAddress{Addr: toTCPIP(addr.Addr()), Port: addr.Port()}, ipv4.ProtocolNumber)
}

// resolver is Go's own, asking the gateway.
func (g *guest) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr := netip.AddrPortFrom(GatewayAddress, dnsPort)
		if network == "tcp" {
			return g.dial(ctx, addr)
		}
		return g.udp(addr)
	}}
}

// dialName connects to host:port as programs do: look the name up, then connect.
func (g *guest) dialName(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var number uint16
	if _, err := fmt.Sscan(port, &number); err != nil {
		return nil, err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return g.dial(ctx, netip.AddrPortFrom(a, number))
	}
	addrs, err := g.resolver().LookupNetIP(ctx, "ip4", host+".")
	if err != nil {
		return nil, err
	}
	return g.dial(ctx, netip.AddrPortFrom(addrs[0].Unmap(), number))
}

func (g *guest) transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{DialContext: g.dialName, TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true}
}

// hosts is the outside: names with their addresses, and what listens there.
type hosts struct {
	mu        sync.Mutex
	names     map[string][]netip.Addr
	listeners map[string]string // "address:port" to where it really listens
	lookups   []string
	dials     []string
	block     chan struct{} // when set, dials wait for it
}

func newHosts() *hosts {
	return &hosts{names: map[string][]netip.Addr{}, listeners: map[string]string{}}
}

func (h *hosts) name(name string, addrs ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range addrs {
		h.names[name] = append(h.names[name], netip.MustParseAddr(a))
	}
}

func (h *hosts) listen(address, real string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[address] = real
}

func (h *hosts) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lookups = append(h.lookups, host)
	name, _ := policy.NormalizeName(host)
	addrs, ok := h.names[name]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return slices.Clone(addrs), nil
}

func (h *hosts) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	h.mu.Lock()
	h.dials = append(h.dials, address)
	real, ok := h.listeners[address]
	block := h.block
	h.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", unix.ECONNREFUSED)}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", real)
}

func (h *hosts) dialed() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.dials)
}

func (h *hosts) lookedUp() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lookups)
}

// journal keeps the events.
type journal struct {
	mu     sync.Mutex
	events []Event
	more   chan struct{}
}

func newJournal() *journal { return &journal{more: make(chan struct{}, 1)} }

func (j *journal) record(e Event) {
	j.mu.Lock()
	j.events = append(j.events, e)
	j.mu.Unlock()
	select {
	case j.more <- struct{}{}:
	default:
	}
}

func (j *journal) all() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// wait gives the first event that matches, now or soon.
func (j *journal) wait(t testing.TB, what string, match func(Event) bool) Event {
	t.Helper()
	limit := time.After(patience)
	for {
		for _, e := range j.all() {
			if match(e) {
				return e
			}
		}
		select {
		case <-j.more:
		case <-limit:
			require.FailNow(t, "no such event", "%s; events: %+v", what, j.all())
		}
	}
}

// world is a gateway with a guest on one side and made-up hosts on the other.
type world struct {
	gateway *Gateway
	guest   *guest
	hosts   *hosts
	journal *journal
	policy  *policy.Live
}

type option func(*Config)

func newWorld(t testing.TB, rules []string, options ...option) *world {
	t.Helper()
	w := &world{hosts: newHosts(), journal: newJournal()}
	var parsed []policy.Rule
	for _, text := range rules {
		r, err := policy.ParseRule(text)
		require.NoError(t, err)
		parsed = append(parsed, r)
	}
	live, err := policy.NewLive(parsed...)
	require.NoError(t, err)
	w.policy = live
	tap, fd := newWire(t)
	cfg := Config{
		TAP: tap, Policy: live, Resolver: w.hosts, Dialer: w.hosts, Record: w.journal.record,
		OwnAddresses: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("9.9.9.9")}, nil },
	}
	for _, o := range options {
		o(&cfg)
	}
	mtu := cfg.MTU
	if mtu == 0 {
		mtu = DefaultMTU
	}
	w.gateway, err = New(cfg)
	require.NoError(t, err)
	w.guest = newGuest(t, fd, mtu)
	// Cleanups run last in, first out: the gateway is closed under a guest that is still there, as in life.
	t.Cleanup(func() { require.NoError(t, w.gateway.Close()) })
	return w
}

func (w *world) context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// echo listens on a real loopback port and sends back what it gets; greeting is sent first.
func echo(t testing.TB, greeting string) string {
	return serveTCP(t, func(c net.Conn) {
		if _, err := io.WriteString(c, greeting); err != nil {
			return
		}
		_, _ = io.Copy(c, c)
	})
}

func serveTCP(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]struct{}{}
	work.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			mu.Lock()
			open[c] = struct{}{}
			mu.Unlock()
			work.Go(func() {
				defer c.Close()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return l.Addr().String()
}
