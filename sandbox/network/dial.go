package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"patio/sandbox/network/policy"
)

const (
	// resolveTimeout and dialTimeout are shorter than the patience of the clients inside, which then get the reason, as far as
	// their protocol can carry one.
	resolveTimeout = 10 * time.Second
	dialTimeout    = 20 * time.Second
	// attemptTimeout bounds one address when there are others to try.
	attemptTimeout = 5 * time.Second
)

// outcomeError is a destination that was refused or could not be reached.
type outcomeError struct {
	decision policy.Decision
	err      error // what the host said, when it was asked
}

func (e *outcomeError) Error() string {
	if e.err != nil {
		return fmt.Sprintf("%s: %v", e.decision.Message, e.err)
	}
	return e.decision.Message
}

func (e *outcomeError) Unwrap() error { return e.err }

// failed is the outcome of an allowed connection that did not work.
func failed(reason policy.Reason, err error) *outcomeError {
	return &outcomeError{decision: policy.Decision{Verdict: policy.Allow, Reason: reason, Message: reason.Message()}, err: err}
}

// reach makes the connection to the outside: it resolves the host once, checks every address, and dials those that
// passed. ready is called after the checks, before the first packet goes out.
func (c *connection) reach(ctx context.Context, d policy.Decision, ready func()) (net.Conn, error) {
	release, ok := c.g.admission.dial()
	if !ok {
		return nil, &outcomeError{decision: policy.Refuse(policy.ReasonTooManyDialing)}
	}
	defer release()
	addrs, err := c.g.resolve(ctx, c.host, d)
	if err != nil {
		return nil, err
	}
	ready()
	conn, addr, err := c.g.dialAny(ctx, addrs, c.port)
	if err != nil {
		return nil, err
	}
	c.setAddress(addr)
	return conn, nil
}

// resolve gives the addresses of an allowed host that may be dialed, at least one.
func (g *Gateway) resolve(ctx context.Context, host string, d policy.Decision) ([]netip.Addr, error) {
	found := []netip.Addr{d.Address}
	if !d.Address.IsValid() {
		ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		// The final dot keeps the host's search domains out of it: the rule names this host. A private rule may be meant
		// for a short name that only a search domain completes.
		query := host + "."
		if d.Private {
			query = host
		}
		var err error
		if found, err = g.resolver.LookupNetIP(ctx, "ip", query); err != nil {
			return nil, failed(policy.ReasonResolveFailed, err)
		}
	}
	own, err := g.own()
	if err != nil {
		return nil, failed(policy.ReasonDialFailed, fmt.Errorf("list own addresses: %w", err))
	}
	var usable []netip.Addr
	refused := policy.Decision{}
	for _, a := range found {
		switch checked := policy.CheckAddress(a, d, own); {
		case checked.Allowed():
			usable = append(usable, a.Unmap())
		case refused.Reason == "":
			refused = checked
		}
	}
	switch {
	case len(usable) > 0:
		return usable, nil
	case refused.Reason != "":
		return nil, &outcomeError{decision: refused}
	}
	return nil, failed(policy.ReasonResolveFailed, errors.New("the name has no addresses"))
}

// dialAny connects to the first of the addresses that answers.
func (g *Gateway) dialAny(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var failures []error
	for i, a := range addrs {
		target := netip.AddrPortFrom(a, port)
		attempt, stop := ctx, context.CancelFunc(func() {})
		if i < len(addrs)-1 {
			attempt, stop = context.WithTimeout(ctx, attemptTimeout)
		}
		conn, err := g.dialer.DialContext(attempt, "tcp", target.String())
		stop()
		if err == nil {
			return conn, target, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, netip.AddrPort{}, failed(dialReason(failures), errors.Join(failures...))
}

// dialReason sums up why no address could be reached: refused only when every one refused.
func dialReason(failures []error) policy.Reason {
	reason := policy.Reason("")
	for _, err := range failures {
		var timeout net.Error
		one := policy.ReasonDialFailed
		switch {
		case errors.Is(err, unix.ECONNREFUSED):
			one = policy.ReasonDialRefused
		case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
			one = policy.ReasonDialTimeout
		}
		if reason != "" && reason != one {
			return policy.ReasonDialFailed
		}
		reason = one
	}
	return reason
}

// outcome gives the decision inside an error of reach.
func outcome(err error) policy.Decision {
	var o *outcomeError
	if errors.As(err, &o) {
		return o.decision
	}
	return failed(policy.ReasonDialFailed, err).decision
}

// hostPort writes a host and its port as a Host header has them.
func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// hostMatches tells whether a Host header, with or without a port, means this connection's host.
func hostMatches(header, host string, port uint16) bool {
	name, portText := header, ""
	if h, p, err := net.SplitHostPort(header); err == nil {
		name, portText = h, p
	} else if strings.HasPrefix(header, "[") {
		name = strings.Trim(header, "[]")
	}
	if portText != "" && portText != strconv.Itoa(int(port)) {
		return false
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap().String() == host
	}
	normal, err := policy.NormalizeName(name)
	return err == nil && normal == host
}
