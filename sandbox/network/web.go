package network

import (
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"time"

	"patio/sandbox/network/policy"
)

const (
	// headerWait bounds how long a request's header may take.
	headerWait = 30 * time.Second
	// keepWait is how long a connection may be idle between two requests, on both sides.
	keepWait = 5 * time.Minute
	// maxHeader is more than the 16 KiB that servers usually take.
	maxHeader = 256 << 10
)

// web serves plain HTTP: to the services, to the outside, and to explain refusals. The standard library's server parses
// the requests and its reverse proxy writes them anew, so that client and destination can't read a request differently.
type web struct {
	g        *Gateway
	server   *http.Server
	listener *handListener
	serving  sync.WaitGroup
}

// webConn is a connection that the server owns until done is closed.
type webConn struct {
	net.Conn
	connection *connection
	proxy      *httputil.ReverseProxy
	transport  *http.Transport
	hijacked   bool // set by the server's goroutine for this connection, read by the handler it runs
	once       sync.Once
	done       chan struct{}
}

func (w *webConn) finish() { w.once.Do(func() { close(w.done) }) }

type webConnKey struct{}

func newWeb(g *Gateway) *web {
	w := &web{g: g, listener: newHandListener()}
	w.server = &http.Server{
		Handler:           w,
		ReadHeaderTimeout: headerWait,
		IdleTimeout:       keepWait,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(slogWriter{g.log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return g.ctx },
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, webConnKey{}, conn)
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			wc, ok := conn.(*webConn)
			if !ok {
				return
			}
			switch state {
			case http.StateClosed:
				wc.finish()
			case http.StateHijacked:
				wc.hijacked = true
			default: // the connection goes on
			}
		},
	}
	w.serving.Go(func() {
		// Serve always ends with an error, when close closes the listener.
		_ = w.server.Serve(w.listener)
	})
	return w
}

// serve lets the server have a connection, and returns when it is done with it.
func (w *web) serve(c *connection, conn net.Conn) {
	wc := &webConn{Conn: conn, connection: c, done: make(chan struct{})}
	wc.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			up, err := c.reach(ctx, c.decision, func() {})
			if err != nil {
				return nil, err
			}
			return newUpstream(c.ctx, up), nil
		},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     keepWait,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
	}
	wc.proxy = &httputil.ReverseProxy{
		Rewrite:       wc.rewrite,
		Transport:     wc.transport,
		FlushInterval: -1, // at once: models and MCP servers stream
		BufferPool:    bufferPool{},
		ErrorLog:      w.server.ErrorLog,
		ErrorHandler:  wc.proxyFailed,
	}
	defer wc.transport.CloseIdleConnections()
	if !w.listener.hand(wc) {
		return
	}
	<-wc.done
}

// close ends the server and its connections. Whoever called serve then returns, when the handler has.
func (w *web) close() {
	_ = w.server.Close() // the listener's Close has no error
	w.serving.Wait()
}

// ServeHTTP answers one request, on whatever connection it came.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	wc, ok := r.Context().Value(webConnKey{}).(*webConn)
	if !ok {
		http.Error(rw, "no connection", http.StatusInternalServerError)
		return
	}
	defer func() {
		if wc.hijacked {
			wc.finish()
		}
	}()
	c := wc.connection
	c.requests.Add(1)
	if d := w.judge(c, r); !d.Allowed() {
		c.denyRequest(rw, r, d)
		return
	}
	if s, ok := w.g.services[c.host]; ok {
		s.Handler.ServeHTTP(rw, r)
		return
	}
	keepUpgrade(r)
	// A present but empty entry keeps the server from adding what the destination did not send.
	rw.Header()["Content-Type"], rw.Header()["Date"] = nil, nil
	wc.proxy.ServeHTTP(rw, r)
}

// judge decides on one request. The policy is asked again: it may have changed since the connection was made.
func (w *web) judge(c *connection, r *http.Request) policy.Decision {
	switch {
	case r.Method == http.MethodConnect:
		return policy.Refuse(policy.ReasonConnect)
	case r.URL.Host != "" || r.URL.Scheme != "":
		return policy.Refuse(policy.ReasonAbsoluteForm)
	case !hostMatches(r.Host, c.host, c.port):
		return policy.Refuse(policy.ReasonHostMismatch)
	}
	return w.g.decide(policy.HTTP, c.host, c.port)
}

// keepUpgrade leaves only the upgrade to WebSocket, which stays with the host that was checked. After one to HTTP/2 (h2c) or
// to TLS, requests for other hosts could follow unseen. A server may always ignore the wish, so it is taken out silently:
// some clients make it with every request.
func keepUpgrade(r *http.Request) {
	for _, wish := range r.Header.Values("Upgrade") {
		if !strings.EqualFold(strings.TrimSpace(wish), "websocket") {
			r.Header.Del("Upgrade")
			r.Header.Del("Http2-Settings")
			return
		}
	}
}

// rewrite turns the sandbox's request into the one that goes out: the same, but for the hop-by-hop headers.
func (w *webConn) rewrite(p *httputil.ProxyRequest) {
	c := w.connection
	p.Out.URL.Scheme = "http"
	p.Out.URL.Host = hostPort(c.host, c.port)
	p.Out.Host = p.In.Host
	if c.host == policy.HostAlias {
		// The alias means nothing to the server, and many answer only to the address they listen on.
		p.Out.Host = hostPort(c.decision.Address.String(), c.port)
	}
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok {
			p.Out.Header[name] = values
		}
	}
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if a, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String()); err == nil && !c.address().IsValid() {
			c.setAddress(a)
		}
	}}
	p.Out = p.Out.WithContext(httptrace.WithClientTrace(p.Out.Context(), trace))
}

// proxyFailed answers a request whose destination was refused or did not work.
func (w *webConn) proxyFailed(rw http.ResponseWriter, r *http.Request, err error) {
	c := w.connection
	d := outcome(err)
	c.g.log.Debug("request failed", "host", c.host, "port", c.port, "reason", d.Reason, "err", err)
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the sandbox hung up, or the connection was ended: the server's way to give no answer
	}
	if !d.Allowed() {
		c.denyRequest(rw, r, d)
		return
	}
	c.mu.Lock()
	c.fail(d)
	c.mu.Unlock()
	writeRefusal(rw, http.StatusBadGateway, refusedRequest{
		Code: "egress_failed", Host: c.host, Port: c.port, Rule: c.decision.Rule, Reason: d.Reason,
		Message: "allowed by the policy, but " + d.Message,
	})
}

// explain answers every request of a connection that is refused with the reason.
func (c *connection) explain() {
	found, err := c.guest.sniff(firstByteWait, wholeWait)
	if err != nil || found != speechHTTP {
		c.refuse(policy.TCP, c.decision)
		return
	}
	c.g.web.serve(c, c.guest)
}

type refusedRequest struct {
	Code    string        `json:"code"`
	Host    string        `json:"host"`
	Port    uint16        `json:"port"`
	Rule    string        `json:"rule"`
	Reason  policy.Reason `json:"reason"`
	Message string        `json:"message"`
}

// denyRequest answers 403 and records it.
func (c *connection) denyRequest(rw http.ResponseWriter, r *http.Request, d policy.Decision) {
	host := c.host
	if d.Reason == policy.ReasonHostMismatch || d.Reason == policy.ReasonAbsoluteForm || d.Reason == policy.ReasonConnect {
		host = clip(r.Host)
	}
	c.g.recorder.repeat(Event{
		Kind: KindRequest, ID: c.id, Host: host, Port: c.port, Protocol: policy.HTTP,
		Rule: d.Rule, Reason: d.Reason, Message: d.Message,
	})
	writeRefusal(rw, http.StatusForbidden, refusedRequest{
		Code: "egress_denied", Host: host, Port: c.port, Rule: d.Rule, Reason: d.Reason,
		Message: "refused by the sandbox's network policy: do not retry: " + d.Message,
	})
}

func writeRefusal(rw http.ResponseWriter, status int, body refusedRequest) {
	h := rw.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	delete(h, "Date") // lets the server set it
	rw.WriteHeader(status)
	// When this fails, the sandbox has hung up.
	_ = json.NewEncoder(rw).Encode(map[string]refusedRequest{"error": body})
}

// clip bounds a name that the sandbox chose, for the record.
func clip(name string) string {
	const most = 253
	if len(name) > most {
		return name[:most]
	}
	return name
}

// slogWriter takes the standard library's log lines, which tell of broken connections and malformed requests.
type slogWriter struct{ log *slog.Logger }

func (w slogWriter) Write(line []byte) (int, error) {
	w.log.Debug("http", "err", string(line))
	return len(line), nil
}
