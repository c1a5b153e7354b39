package network

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"patio/sandbox/network/policy"
)

const (
	// serverFirstWait is how long a client may be silent before the server is asked to speak first. Clients of
	// protocols in which the client speaks first do so within milliseconds.
	serverFirstWait = 300 * time.Millisecond
	// firstByteWait is how long a client of a protocol in which it must speak first may be silent: browsers and HTTP
	// agents open connections ahead of use.
	firstByteWait = 2 * time.Minute
	// wholeWait is how long the first message may take once it began.
	wholeWait = 15 * time.Second
)

// carry serves a connection to the outside.
func (c *connection) carry() {
	serverFirst := c.decision.Exact && c.port != 80 && c.port != 443
	first := firstByteWait
	if serverFirst {
		first = serverFirstWait
	}
	found, err := c.guest.sniff(first, wholeWait)
	switch {
	case err == nil:
		c.carryAs(found)
	case errors.Is(err, errTooLong):
		c.refuse(policy.TCP, policy.Refuse(policy.ReasonNoProtocol))
	case isTimeout(err) && len(c.guest.ahead) > 0:
		c.refuse(policy.TCP, policy.Refuse(policy.ReasonNoProtocol))
	case isTimeout(err) && serverFirst:
		c.carryServerFirst()
	case isTimeout(err):
		c.refuse(policy.TCP, policy.Refuse(policy.ReasonIdle))
	default:
		// The sandbox hung up without a word, as a probe of the port does. It was allowed, and nothing left.
		c.start(policy.TCP, c.decision)
	}
}

func (c *connection) carryAs(found speech) {
	switch found {
	case speechTLS:
		if c.checkTLS() {
			c.pass(policy.TLS)
		}
	case speechHTTP:
		c.start(policy.HTTP, c.decision)
		c.g.web.serve(c, c.guest)
	case speechHTTP2:
		c.refuse(policy.HTTP, policy.Refuse(policy.ReasonHTTP2))
	case speechOldTLS:
		c.refuse(policy.TLS, policy.Refuse(policy.ReasonBadTLS))
	case speechOther:
		switch {
		case c.port == 80:
			c.refuse(policy.TCP, policy.Refuse(policy.ReasonNotHTTP))
		case !c.decision.Exact:
			c.refuse(policy.TCP, policy.Refuse(policy.ReasonNeedsExact))
		default:
			c.pass(policy.TCP)
		}
	default:
		c.refuse(policy.TCP, policy.Refuse(policy.ReasonNoProtocol))
	}
}

// checkTLS reads the ClientHello and refuses the connection when it is not for this host.
func (c *connection) checkTLS() bool {
	reason := policy.ReasonBadTLS
	if err := c.guest.SetReadDeadline(time.Now().Add(wholeWait)); err == nil {
		hello, read, err := readHello(c.guest)
		c.guest.putBack(read)
		if err == nil {
			reason = checkHello(hello, c.host, c.decision)
		}
	}
	if reason == "" {
		if err := c.guest.SetReadDeadline(time.Time{}); err == nil {
			return true
		}
		reason = policy.ReasonBadTLS
	}
	c.refuse(policy.TLS, policy.Refuse(reason))
	return false
}

// pass connects to the host and copies both ways.
func (c *connection) pass(protocol policy.Protocol) {
	up, ok := c.open(protocol)
	if !ok {
		return
	}
	defer func() { _ = up.Close() }()
	down := make(chan struct{})
	go func() {
		defer close(down)
		c.download(up, nil)
	}()
	c.upload(up)
	<-down
}

// open makes the connection to the outside, or resets the sandbox's. The caller closes what it gets; when the
// connection is aborted, it is closed before.
func (c *connection) open(protocol policy.Protocol) (*upstream, bool) {
	conn, err := c.reach(c.ctx, c.decision, func() { c.start(protocol, c.decision) })
	if err != nil {
		d := outcome(err)
		if d.Allowed() && !c.isStarted() {
			c.start(protocol, c.decision) // allowed, but the name could not be resolved
		}
		c.g.log.Debug("no connection to the outside", "host", c.host, "port", c.port, "reason", d.Reason, "err", err)
		c.refuse(protocol, d)
		return nil, false
	}
	return newUpstream(c.ctx, conn), true
}

// upload copies from the sandbox to the outside until either ends.
func (c *connection) upload(up *upstream) {
	if err := copyHalf(up, c.guest); err != nil {
		up.abort()
		c.guest.Abort()
	}
}

// download copies from the outside to the sandbox until either ends. spoke is set when something came; once *spoke is
// ignored (nil) nothing looks at it.
func (c *connection) download(up *upstream, first *firstWord) {
	src := io.Reader(up)
	if first != nil {
		src = &wordReader{Reader: up, first: first}
	}
	if err := copyHalf(c.guest, src); err != nil && (first == nil || !first.handedOver.Load()) {
		up.abort()
		c.guest.Abort()
	}
}

// firstWord is shared between the two directions while it is open who speaks first.
type firstWord struct {
	server     atomic.Bool // the server spoke
	handedOver atomic.Bool // the client spoke HTTP first: the sandbox's side has another owner now
}

type wordReader struct {
	io.Reader
	first *firstWord
}

func (r *wordReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if r.first.handedOver.Load() {
		return 0, net.ErrClosed
	}
	if n > 0 {
		r.first.server.Store(true)
	}
	return n, err
}

// carryServerFirst serves a connection whose client waits for the server. The client's first bytes are checked all the
// same when they come: being late must not be a way around the checks.
func (c *connection) carryServerFirst() {
	up, ok := c.open(policy.TCP)
	if !ok {
		return
	}
	defer func() { _ = up.Close() }()
	var word firstWord
	down := make(chan struct{})
	go func() {
		defer close(down)
		c.download(up, &word)
	}()
	defer func() { <-down }()
	found, err := c.guest.sniff(0, wholeWait)
	switch {
	case err == nil && found == speechTLS:
		if !c.checkTLS() {
			up.abort()
			return
		}
		c.mu.Lock()
		c.protocol = policy.TLS
		c.mu.Unlock()
	case err == nil && found == speechHTTP && !word.server.Load():
		// The client was only slow. The connection that was made early is dropped.
		word.handedOver.Store(true)
		up.abort()
		<-down
		if word.server.Load() {
			c.refuse(policy.HTTP, policy.Refuse(policy.ReasonLateHTTP))
			return
		}
		c.mu.Lock()
		c.protocol = policy.HTTP
		c.mu.Unlock()
		c.g.web.serve(c, c.guest)
		return
	case err == nil && found == speechHTTP:
		up.abort()
		c.refuse(policy.HTTP, policy.Refuse(policy.ReasonLateHTTP))
		return
	case err == nil && found == speechHTTP2:
		up.abort()
		c.refuse(policy.HTTP, policy.Refuse(policy.ReasonHTTP2))
		return
	case err == nil && found == speechOldTLS:
		up.abort()
		c.refuse(policy.TLS, policy.Refuse(policy.ReasonBadTLS))
		return
	case (errors.Is(err, errTooLong) || isTimeout(err)) && !word.server.Load():
		up.abort()
		c.refuse(policy.TCP, policy.Refuse(policy.ReasonNoProtocol))
		return
	}
	c.upload(up)
}

func (c *connection) isStarted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// isTimeout tells whether a read ended at its deadline.
func isTimeout(err error) bool {
	var t net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// upstream is a connection to the outside that ends with the sandbox's.
type upstream struct {
	net.Conn
	stop func() bool
}

func newUpstream(ctx context.Context, conn net.Conn) *upstream {
	u := &upstream{Conn: conn}
	u.stop = context.AfterFunc(ctx, u.abort)
	return u
}

// CloseWrite says that nothing more comes. A connection that has no half-closed state just stays open.
func (u *upstream) CloseWrite() error {
	if h, ok := u.Conn.(halfCloser); ok {
		return h.CloseWrite()
	}
	return nil
}

// Close ends the connection in order.
func (u *upstream) Close() error {
	u.stop()
	return u.Conn.Close()
}

// abort resets the connection, as far as its kind can. Errors are of no interest: it is closed in any case.
func (u *upstream) abort() {
	if t, ok := u.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = u.Conn.Close()
}
