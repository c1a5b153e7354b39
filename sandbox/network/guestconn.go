package network

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/waiter"
)

// guestConn is the sandbox's side of a connection: it counts what goes through it, can give bytes back that were only
// looked at, and can be reset.
type guestConn struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
	ahead    []byte // read already, to be read again; used by the reading goroutine only

	received, sent atomic.Int64 // from the sandbox, to it
	once           sync.Once
}

var _ net.Conn = (*guestConn)(nil)

func newGuestConn(wq *waiter.Queue, ep tcpip.Endpoint) *guestConn {
	return &guestConn{TCPConn: gonet.NewTCPConn(wq, ep), endpoint: ep}
}

// Read gives the bytes that were put back, then those that come.
func (c *guestConn) Read(b []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(b, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	n, err := c.TCPConn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

// putBack makes the next Reads give b first.
func (c *guestConn) putBack(b []byte) { c.ahead = append(b, c.ahead...) }

func (c *guestConn) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// Close ends the connection in order. After Abort it does nothing.
func (c *guestConn) Close() error {
	var err error
	c.once.Do(func() { err = c.TCPConn.Close() })
	return err
}

// Abort resets the connection: the sandbox sees at once that it failed, and reads and writes here return.
func (c *guestConn) Abort() {
	c.once.Do(c.endpoint.Abort)
}

// halfCloser is a connection whose sending side can be closed by itself.
type halfCloser interface {
	io.Writer
	CloseWrite() error
}
