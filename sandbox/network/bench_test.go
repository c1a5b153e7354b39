package network

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// chunk is what the benchmarks move in one operation.
const chunk = 8 << 20

// pour sends chunk bytes for every byte it gets.
func pour(c net.Conn) {
	block := make([]byte, 256<<10)
	one := make([]byte, 1)
	for {
		if _, err := io.ReadFull(c, one); err != nil {
			return
		}
		for range chunk / len(block) {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	}
}

// drain takes chunk bytes and answers with one, over and over.
func drain(c net.Conn) {
	for {
		if _, err := io.CopyN(io.Discard, c, chunk); err != nil {
			return
		}
		if _, err := c.Write([]byte{1}); err != nil {
			return
		}
	}
}

func download(b *testing.B, c net.Conn) {
	buf := make([]byte, 256<<10)
	b.SetBytes(chunk)
	for b.Loop() {
		_, err := c.Write([]byte{1})
		require.NoError(b, err)
		for left := chunk; left > 0; {
			n, err := c.Read(buf[:min(len(buf), left)])
			require.NoError(b, err)
			left -= n
		}
	}
}

func upload(b *testing.B, c net.Conn) {
	block := make([]byte, 256<<10)
	one := make([]byte, 1)
	b.SetBytes(chunk)
	for b.Loop() {
		for range chunk / len(block) {
			_, err := c.Write(block)
			require.NoError(b, err)
		}
		_, err := io.ReadFull(c, one)
		require.NoError(b, err)
	}
}

// BenchmarkThroughput compares a stream through the gateway with one over the host's loopback. The gateway's figure
// includes the guest's TCP/IP stack, which runs in the same process here.
func BenchmarkThroughput(b *testing.B) {
	directions := []struct {
		name   string
		server func(net.Conn)
		client func(*testing.B, net.Conn)
	}{{"download", pour, download}, {"upload", drain, upload}}
	for _, d := range directions {
		b.Run("loopback/"+d.name, func(b *testing.B) {
			conn, err := net.Dial("tcp", serveTCP(b, d.server))
			require.NoError(b, err)
			defer conn.Close()
			d.client(b, conn)
		})
		for _, mtu := range []struct {
			name string
			size int
		}{{"mtu1500", 1500}, {"mtu65520", DefaultMTU}} {
			b.Run("gateway/"+d.name+"/"+mtu.name, func(b *testing.B) {
				w := newWorld(b, []string{"example.com:7000"}, func(c *Config) { c.MTU = mtu.size })
				w.hosts.name("example.com", "1.2.3.4")
				w.hosts.listen("1.2.3.4:7000", serveTCP(b, d.server))
				conn, err := w.guest.dialName(context.Background(), "tcp", "example.com:7000")
				require.NoError(b, err)
				defer conn.Close()
				d.client(b, conn)
			})
		}
	}
}
