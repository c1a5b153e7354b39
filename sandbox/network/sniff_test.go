package network

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"patio/sandbox/network/policy"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name, first string
		want        speech
	}{
		{"nothing", "", speechUnclear},
		{"TLS", "\x16\x03\x01", speechTLS},
		{"half a TLS header", "\x16", speechUnclear},
		{"not TLS", "\x16\x04", speechOther},
		{"request", "GET / HTTP/1.1\r\n", speechHTTP},
		{"half a request", "GET / HTT", speechUnclear},
		{"blank lines before a request", "\r\n\r\nGET / HTTP/1.1\r\n", speechHTTP},
		{"tab", "GET\t/\tHTTP/1.1\n", speechHTTP},
		{"lower case", "get / http/1.1\n", speechHTTP},
		{"own method", "FROB-IT / HTTP/1.1\n", speechHTTP},
		{"HTTP/2", "PRI * HTTP/2.0\r\n", speechHTTP2},
		{"SSH", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", speechOther},
		{"git", "003agit-upload-pack /a\x00host=b\x00", speechOther},
		{"postgres", "\x00\x00\x00\x08\x04\xd2\x16\x2f", speechOther},
		{"SMTP", "EHLO example.com\r\n", speechOther},
		{"high byte", "\xff\xfb\x18\x00", speechOther},
		{"SSL 2.0", "\x80\x2e\x01\x03", speechOldTLS},
	} {
		require.Equal(t, c.want, classify([]byte(c.first)), c.name)
	}
}

// readerConn is a connection that can only be read.
type readerConn struct {
	net.Conn
	r io.Reader
}

func (c readerConn) Read(b []byte) (int, error)      { return c.r.Read(b) }
func (c readerConn) SetDeadline(time.Time) error     { return nil }
func (c readerConn) SetReadDeadline(time.Time) error { return nil }
func (c readerConn) RemoteAddr() net.Addr            { return &net.TCPAddr{} }
func (c readerConn) LocalAddr() net.Addr             { return &net.TCPAddr{} }

// helloBytes makes the ClientHello that a client with cfg sends.
func helloBytes(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(client, cfg).Handshake()
	}()
	_, hello, err := readHello(server)
	require.NoError(t, err)
	require.NoError(t, server.Close())
	<-done
	require.NoError(t, client.Close())
	return hello
}

func TestReadHello(t *testing.T) {
	hello := helloBytes(t, &tls.Config{ServerName: "example.com"})
	// Byte by byte, and with more behind it: nothing may be lost, and nothing of the rest taken.
	info, read, err := readHello(readerConn{r: iotest.OneByteReader(bytes.NewReader(append(bytes.Clone(hello), "rest"...)))})
	require.NoError(t, err)
	require.Equal(t, "example.com", info.ServerName)
	require.Equal(t, hello, read[:len(hello)])
	require.Empty(t, checkHello(info, "example.com", policy.Decision{}))
	require.Equal(t, policy.ReasonSNIMismatch, checkHello(info, "example.org", policy.Decision{}))
	info.Extensions = append(info.Extensions, extensionECH)
	require.Equal(t, policy.ReasonECH, checkHello(info, "example.com", policy.Decision{}))
}

func TestReadHelloWithECH(t *testing.T) {
	// An outer ClientHello with the encrypted_client_hello extension added by hand (RFC 9849, 5: type outer, a cipher
	// suite, a configuration id, an encapsulated key, a payload).
	hello := helloBytes(t, &tls.Config{ServerName: "example.com"})
	ech := []byte{0xfe, 0x0d, 0, 0, 0, 0, 1, 0, 1, 7, 0, 32}
	ech = append(ech, make([]byte, 32)...)
	ech = append(ech, 0, 16)
	ech = append(ech, make([]byte, 16)...)
	ech[3] = byte(len(ech) - 4)
	withECH := addExtension(hello, ech)
	info, _, err := readHello(readerConn{r: bytes.NewReader(withECH)})
	require.NoError(t, err)
	require.Equal(t, policy.ReasonECH, checkHello(info, "example.com", policy.Decision{}))
}

// addExtension appends an extension to a ClientHello in one record, and corrects the four lengths around it.
func addExtension(hello, extension []byte) []byte {
	out := append(bytes.Clone(hello), extension...)
	add16 := func(at int) {
		n := int(out[at])<<8 | int(out[at+1])
		n += len(extension)
		out[at], out[at+1] = byte(n>>8), byte(n)
	}
	add16(3)     // record
	add16(5 + 2) // handshake, low bytes of three
	at := 5 + 4 + 2 + 32
	at += 1 + int(out[at])                     // session id
	at += 2 + int(out[at])<<8 + int(out[at+1]) // cipher suites
	at += 1 + int(out[at])                     // compression
	add16(at)
	return out
}
