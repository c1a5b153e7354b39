package network

import (
	"errors"
	"io"
	"sync"
)

// copySize is the copy buffer: two packets of the largest size. More does not go faster, and each open connection
// holds two buffers.
const copySize = 128 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, copySize); return &b }}

// copyHalf copies until src ends, then closes dst's sending side. The error is that of either side. It does not use
// io.Copy: that would let the connections bring their own, smaller buffers.
func copyHalf(dst halfCloser, src io.Reader) error {
	buf, _ := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := src.Read(*buf)
		if n > 0 {
			if _, err := dst.Write((*buf)[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return dst.CloseWrite()
		case err != nil:
			return err
		}
	}
}

// bufferPool lends the copy buffers to the HTTP proxy.
type bufferPool struct{}

func (bufferPool) Get() []byte {
	buf, _ := buffers.Get().(*[]byte)
	return *buf
}

func (bufferPool) Put(b []byte) { buffers.Put(&b) }
