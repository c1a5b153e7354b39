package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"patio/sandbox/network/policy"
)

// Resolver finds the addresses of a name on the host; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer connects to an address that was checked; *net.Dialer is one. It only ever gets an IP address and a port.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Service is an HTTP server inside the gateway, under a name of its own. It is reached over plain HTTP, on Port (80
// when zero), without any connection on the host. It needs no rule: naming it in Config.Services allows it, events
// carry the rule "service:NAME". A deny rule for the name still beats it.
type Service struct {
	Port    uint16
	Handler http.Handler
}

// Config says what a Gateway serves. TAP and Policy are required.
type Config struct {
	// TAP is the open TAP device, without packet information and virtio headers. The gateway owns it from the call of New
	// on, also when New fails.
	TAP *os.File
	// MTU is the TAP's; DefaultMTU when zero.
	MTU int
	// Policy may change at any time: a connection whose rule is withdrawn is closed.
	Policy *policy.Live
	// Services are served in-process, by name.
	Services map[string]Service
	// Record gets every event, one at a time and in order, from a goroutine of its own. It may block: events wait in a
	// bounded queue, what does not fit is counted and reported as KindDropped. Nil: events are only counted.
	Record func(Event)
	// Resolver, Dialer and OwnAddresses stand for the host; nil means the real ones.
	Resolver     Resolver
	Dialer       Dialer
	OwnAddresses func() ([]netip.Addr, error)
	Limits       Limits
	Log          *slog.Logger
	Now          func() time.Time
}

// Counters is what went through a gateway so far. Received came from the sandbox, sent went to it.
type Counters struct {
	ReceivedBytes     int64 `json:"received_bytes"`
	ReceivedPackets   int64 `json:"received_packets"`
	SentBytes         int64 `json:"sent_bytes"`
	SentPackets       int64 `json:"sent_packets"`
	UnsentPackets     int64 `json:"unsent_packets"`
	IgnoredPackets    int64 `json:"ignored_packets"`
	OpenConnections   int   `json:"open_connections"`
	Dialing           int   `json:"dialing"`
	Connections       int64 `json:"connections"`
	DeniedConnections int64 `json:"denied_connections"`
	DNSQueries        int64 `json:"dns_queries"`
	DeniedDNSQueries  int64 `json:"denied_dns_queries"`
	DeniedPackets     int64 `json:"denied_packets"`
	DroppedEvents     int64 `json:"dropped_events"`
	Names             int   `json:"names"`
}

// Gateway serves one sandbox's network.
type Gateway struct {
	policy   *policy.Live
	services map[string]Service
	resolver Resolver
	dialer   Dialer
	own      func() ([]netip.Addr, error)
	log      *slog.Logger
	now      func() time.Time

	link      *link
	stack     *stack.Stack
	names     *names
	recorder  *recorder
	admission *admission
	dnsRate   *rate.Limiter
	web       *web
	tallies   tallies

	ctx    context.Context // ends with the gateway
	cancel context.CancelFunc
	work   sync.WaitGroup // every goroutine but the link's and the recorder's

	mu      sync.Mutex
	closing bool
	open    map[*connection]struct{}
	nextID  uint64

	closeOnce sync.Once
	closeErr  error
	done      chan struct{}
	doneOnce  sync.Once
	doneErr   error
}

// New starts a gateway on cfg.TAP. It is ready when New returns.
func New(cfg Config) (*Gateway, error) {
	if cfg.TAP == nil {
		return nil, errors.New("start gateway: the TAP is missing")
	}
	g, err := newGateway(cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start gateway: %w", err), cfg.TAP.Close())
	}
	tap, err := ownTAP(cfg.TAP)
	if err != nil {
		g.abandon()
		return nil, fmt.Errorf("start gateway: %w", err)
	}
	if err := g.start(tap, cfg.MTU); err != nil {
		g.abandon()
		return nil, fmt.Errorf("start gateway: %w", err)
	}
	return g, nil
}

func newGateway(cfg Config) (*Gateway, error) {
	if cfg.Policy == nil {
		return nil, errors.New("the policy is missing: pass one, an empty one denies everything")
	}
	if cfg.MTU == 0 {
		cfg.MTU = DefaultMTU
	}
	if cfg.MTU < minMTU || cfg.MTU > DefaultMTU {
		return nil, fmt.Errorf("the MTU %d is not between %d and %d", cfg.MTU, minMTU, DefaultMTU)
	}
	services, err := checkServices(cfg.Services)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		policy: cfg.Policy, services: services, resolver: cfg.Resolver, dialer: cfg.Dialer, own: cfg.OwnAddresses,
		log: cfg.Log, now: cfg.Now,
		open: make(map[*connection]struct{}), done: make(chan struct{}),
	}
	if g.resolver == nil {
		g.resolver = net.DefaultResolver
	}
	if g.dialer == nil {
		g.dialer = &net.Dialer{}
	}
	if g.own == nil {
		g.own = ownAddresses
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.now == nil {
		g.now = time.Now
	}
	limits := cfg.Limits.withDefaults()
	g.admission = newAdmission(limits)
	g.dnsRate = newRate(limits.DNSPerSecond)
	g.names = newNames(NameRange, limits.Names)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.recorder = newRecorder(cfg.Record, g.now)
	g.web = newWeb(g)
	return g, nil
}

func checkServices(services map[string]Service) (map[string]Service, error) {
	checked := make(map[string]Service, len(services))
	for name, s := range services {
		normal, err := policy.NormalizeName(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("service %q: %w", name, err)
		case normal == policy.HostAlias || normal == GatewayName:
			return nil, fmt.Errorf("service %q: the name is taken", name)
		case s.Handler == nil:
			return nil, fmt.Errorf("service %q: the handler is missing", name)
		}
		if s.Port == 0 {
			s.Port = 80
		}
		checked[normal] = s
	}
	return checked, nil
}

// Done is closed when the gateway no longer serves: after Close, or when the TAP failed. Then nothing passes any more.
func (g *Gateway) Done() <-chan struct{} { return g.done }

// Err tells why the gateway is done: nil while it runs and after Close.
func (g *Gateway) Err() error {
	select {
	case <-g.done:
		return g.doneErr
	default:
		return nil
	}
}

func (g *Gateway) finish(err error) {
	g.doneOnce.Do(func() {
		g.doneErr = err
		close(g.done)
	})
}

// Counters gives the totals so far. It may be called at any time, after Close as well.
func (g *Gateway) Counters() Counters {
	c := g.tallies.counters()
	g.link.count(&c)
	c.OpenConnections, c.Dialing = g.admission.counts()
	c.DroppedEvents = g.recorder.dropped.Load()
	c.Names = g.names.len()
	return c
}

// abandon undoes newGateway when the rest of the start failed.
func (g *Gateway) abandon() {
	g.cancel()
	g.web.close()
	g.recorder.close()
	g.finish(nil)
}

// Close ends every connection, closes the TAP and waits for everything the gateway started, and until Record got the last
// event. It is idempotent; every call returns the same error.
func (g *Gateway) Close() error {
	g.closeOnce.Do(func() {
		g.finish(nil)
		g.mu.Lock()
		g.closing = true
		g.mu.Unlock()
		g.cancel()
		// The stack may not be waited for while a packet is still coming in.
		err := g.link.stop()
		g.web.close()
		g.abortAll(policy.ReasonClosing)
		g.stack.Close()
		g.work.Wait()
		g.stack.Wait()
		g.recorder.close()
		if err != nil {
			g.closeErr = fmt.Errorf("close gateway: %w", err)
		}
	})
	return g.closeErr
}

func ownAddresses() ([]netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr())
		}
	}
	return own, nil
}
