package network

import (
	"sync"

	"golang.org/x/time/rate"

	"patio/sandbox/network/policy"
)

// Limits keep one sandbox from exhausting its host. A zero field means its default.
type Limits struct {
	// Connections is how many TCP connections may be open at once.
	Connections int
	// HalfOpen is how many connections may be in their handshake with the sandbox at once, and how many may be being
	// resolved or dialed by the host.
	HalfOpen int
	// ConnectionsPerSecond is the rate of new connections; four times as many may come at once.
	ConnectionsPerSecond int
	// DNSPerSecond is the rate of DNS queries; four times as many may come at once.
	DNSPerSecond int
	// Names is how many names may get an address through wildcard rules in one session.
	Names int
}

// The defaults leave room for a package manager that opens dozens of connections and asks hundreds of names at once,
// and keep a port scan from costing the host more than a few file descriptors.
var defaultLimits = Limits{Connections: 1024, HalfOpen: 256, ConnectionsPerSecond: 200, DNSPerSecond: 250, Names: 16384}

const burstFactor = 4

func (l Limits) withDefaults() Limits {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Connections, defaultLimits.Connections)
	set(&l.HalfOpen, defaultLimits.HalfOpen)
	set(&l.ConnectionsPerSecond, defaultLimits.ConnectionsPerSecond)
	set(&l.DNSPerSecond, defaultLimits.DNSPerSecond)
	set(&l.Names, defaultLimits.Names)
	return l
}

func newRate(perSecond int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), burstFactor*perSecond)
}

// admission counts what is open against the limits.
type admission struct {
	limits Limits
	rate   *rate.Limiter

	mu         sync.Mutex
	handshakes int
	open       int
	dialing    int
}

func newAdmission(l Limits) *admission {
	return &admission{limits: l, rate: newRate(l.ConnectionsPerSecond)}
}

// enter takes a place for a new connection, still in its handshake. The reason is "" when there was one.
func (a *admission) enter() policy.Reason {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.handshakes >= a.limits.HalfOpen:
		return policy.ReasonTooManyDialing
	case a.open >= a.limits.Connections:
		return policy.ReasonTooManyConnections
	case !a.rate.Allow():
		return policy.ReasonConnectionRate
	}
	a.handshakes++
	a.open++
	return ""
}

// halfOpenLeft tells whether enter would find a place among the handshakes.
func (a *admission) halfOpenLeft() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handshakes < a.limits.HalfOpen
}

func (a *admission) handshakeDone() {
	a.mu.Lock()
	a.handshakes--
	a.mu.Unlock()
}

func (a *admission) leave() {
	a.mu.Lock()
	a.open--
	a.mu.Unlock()
}

// dial takes a place among the connections that are being made to the outside; release gives it back.
func (a *admission) dial() (release func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dialing >= a.limits.HalfOpen {
		return nil, false
	}
	a.dialing++
	var once sync.Once
	return func() {
		once.Do(func() {
			a.mu.Lock()
			a.dialing--
			a.mu.Unlock()
		})
	}, true
}

func (a *admission) counts() (open, dialing int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open, a.dialing
}
