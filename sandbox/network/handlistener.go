package network

import (
	"net"
	"sync"
)

// handListener is a listener whose connections are handed to it.
type handListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHandListener() *handListener {
	return &handListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// hand passes a connection on. It is false when the listener is closed; the connection then stays the caller's.
func (l *handListener) hand(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.closed:
		return false
	}
}

// Accept gives the next connection.
func (l *handListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *handListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr gives the gateway's address.
func (l *handListener) Addr() net.Addr {
	return &net.TCPAddr{IP: GatewayAddress.AsSlice()}
}
