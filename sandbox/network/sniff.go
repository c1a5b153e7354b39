package network

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"patio/sandbox/network/policy"
)

// speech is what the first bytes of a connection show.
type speech int

const (
	speechUnclear speech = iota // more bytes are needed
	speechTLS
	speechHTTP
	speechHTTP2 // its plain-text form
	speechOldTLS
	speechOther
)

const (
	// maxRequestLine bounds how far the end of a request line is looked for; servers take lines of 8 KiB.
	maxRequestLine = 16 << 10
	// recordHandshake and sslClientHello mark TLS records (RFC 8446, 5.1) and the SSL 2.0 form of a ClientHello (RFC 5246, E.2).
	recordHandshake = 0x16
	sslClientHello  = 0x01
	// extensionECH is encrypted_client_hello (RFC 9849).
	extensionECH = 0xfe0d
)

var http2Preface = []byte("PRI * HTTP/2")

// classify looks at the first bytes a client sent. Whatever a lenient server might take for an HTTP request is called
// HTTP, so that the strict parser that follows is what refuses it.
func classify(b []byte) speech {
	if len(b) == 0 {
		return speechUnclear
	}
	switch {
	case b[0] == recordHandshake:
		if len(b) < 2 {
			return speechUnclear
		}
		if b[1] == 3 {
			return speechTLS
		}
		return speechOther
	case b[0]&0x80 != 0:
		if len(b) < 4 {
			return speechUnclear
		}
		if b[2] == sslClientHello && (b[3] == 3 || b[3] == 0 || b[3] == 2) {
			return speechOldTLS
		}
		return speechOther
	}
	line := bytes.TrimLeft(b, "\r\n\t ")
	line, _, whole := bytes.Cut(line, []byte("\n"))
	if bytes.HasPrefix(line, http2Preface) {
		return speechHTTP2
	}
	method, _, _ := bytes.Cut(line, []byte(" "))
	if bytes.IndexByte(line, 0) >= 0 || slices.ContainsFunc(method, notMethod) {
		return speechOther
	}
	switch request := bytes.Contains(bytes.ToUpper(line), []byte("HTTP/")); {
	case whole && request:
		return speechHTTP
	case whole:
		return speechOther
	}
	return speechUnclear
}

// notMethod tells whether a byte can't be in a request's method, by RFC 9110 or to a lenient server.
func notMethod(c byte) bool { return c < 0x20 && c != '\t' && c != '\r' || c >= 0x7f }

// errSeen ends a handshake that only serves to read the ClientHello.
var errSeen = errors.New("the ClientHello was seen")

// readHello reads the ClientHello from r with the standard library's parser, and gives what was read of r as well.
func readHello(r net.Conn) (*tls.ClientHelloInfo, []byte, error) {
	var hello *tls.ClientHelloInfo
	tap := &helloConn{Conn: r}
	err := tls.Server(tap, &tls.Config{ //nolint:gosec // G402: only the ClientHello is read, nothing is agreed on
		MinVersion: tls.VersionTLS10, // the version is the destination's choice, not ours
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			seen := *info
			hello = &seen
			return nil, errSeen
		},
	}).Handshake()
	if hello == nil {
		if err == nil {
			err = errors.New("no ClientHello")
		}
		return nil, tap.read.Bytes(), err
	}
	return hello, tap.read.Bytes(), nil
}

// helloConn keeps what is read and swallows what is written (alerts), so that the client never hears of it.
type helloConn struct {
	net.Conn
	read bytes.Buffer
}

func (c *helloConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Write(b[:n])
	return n, err
}

func (c *helloConn) Write(b []byte) (int, error) { return len(b), nil }

func (c *helloConn) SetWriteDeadline(time.Time) error { return nil }

func (c *helloConn) Close() error { return nil }

// checkHello judges a ClientHello on a connection to host. The reason is "" when it may pass.
func checkHello(hello *tls.ClientHelloInfo, host string, d policy.Decision) policy.Reason {
	if slices.Contains(hello.Extensions, extensionECH) {
		return policy.ReasonECH
	}
	if d.Address.IsValid() {
		return "" // the rule names an address, which has no name to compare
	}
	if hello.ServerName == "" {
		return policy.ReasonSNIMissing
	}
	if name, err := policy.NormalizeName(hello.ServerName); err != nil || name != host {
		return policy.ReasonSNIMismatch
	}
	return ""
}

// sniff reads until the first bytes show what they are, and puts them back. It gives io.EOF only when nothing came.
func (c *guestConn) sniff(first, whole time.Duration) (speech, error) {
	buf := make([]byte, 0, 4<<10)
	defer func() {
		c.putBack(buf)
		_ = c.SetReadDeadline(time.Time{}) // the stack's connections never fail at this
	}()
	if err := c.SetReadDeadline(deadline(first)); err != nil {
		return speechUnclear, err
	}
	for {
		buf = slices.Grow(buf, 1<<10)
		n, err := c.Read(buf[len(buf):cap(buf)])
		if len(buf) == 0 && n > 0 {
			if err := c.SetReadDeadline(deadline(whole)); err != nil {
				return speechUnclear, err
			}
		}
		buf = buf[:len(buf)+n]
		if found := classify(buf); found != speechUnclear {
			return found, nil
		}
		switch {
		case errors.Is(err, io.EOF) && len(buf) > 0:
			return speechOther, nil // no more will come to make it a request
		case err != nil:
			return speechUnclear, err
		case len(buf) > maxRequestLine:
			return speechUnclear, errTooLong
		}
	}
}

var errTooLong = errors.New("no end of the first line")

func deadline(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}
