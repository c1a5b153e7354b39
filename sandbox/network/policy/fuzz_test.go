package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzNormalizeName(f *testing.F) {
	for _, s := range []string{"example.com", "EXAMPLE.com.", "bücher.example", "xn--bcher-kva", "a..b", "127.1", "0x7f", "\x00", "ⓔxample.com", "a。b", "faß.de", "\u2488com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := NormalizeName(s)
		if err != nil {
			return
		}
		again, err := NormalizeName(name)
		require.NoError(t, err)
		require.Equal(t, name, again, "the normal form is its own normal form")
		require.LessOrEqual(t, len(name), maxName)
		for label := range strings.SplitSeq(name, ".") {
			require.NoError(t, checkLabel(label))
		}
		_, err = netip.ParseAddr(name)
		require.Error(t, err)
	})
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"example.com", "*.example.com:80", "private:a:1", "10.0.0.1:80", "[::1]:80", "[::ffff:1.2.3.4]:1", "*:*", "host.patio.internal:80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, parse := range []func(string) (Rule, error){ParseRule, ParseDeny} {
			r, err := parse(s)
			if err != nil {
				continue
			}
			require.NoError(t, r.Validate())
			again, err := parse(r.String())
			require.NoError(t, err)
			require.Equal(t, r, again)
			p, err := New(r)
			require.NoError(t, err)
			if r.Action == ActionDeny {
				continue
			}
			host := strings.Replace(r.Host, "*", "x", 1)
			if len(host) > maxName {
				continue
			}
			require.True(t, p.Decide(Request{Protocol: TCP, Host: host, Port: r.Port}).Allowed(), host)
			require.False(t, p.Decide(Request{Protocol: TCP, Host: host, Port: r.Port ^ 1}).Allowed())
			if suffix, ok := strings.CutPrefix(r.Host, "*."); ok {
				require.False(t, p.Decide(Request{Protocol: TCP, Host: suffix, Port: r.Port}).Allowed())
			}
		}
	})
}

// No address that carries a private IPv4 address in a known form passes, whatever surrounds it.
func FuzzCheckAddress(f *testing.F) {
	f.Add([]byte{0x20, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte{10, 0, 0, 1})
	f.Add([]byte{0x26, 6, 0x47, 0, 0, 0, 0, 0, 2, 0, 0x5e, 0xfe, 10, 0, 0, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		d := CheckAddress(a, Decision{Verdict: Allow, Reason: ReasonRule}, nil)
		require.NotEmpty(t, d.Reason)
		if !d.Allowed() {
			return
		}
		plain := a.Unmap()
		require.True(t, plain.IsGlobalUnicast())
		require.False(t, plain.IsPrivate() || plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified())
		if plain.Is6() {
			for _, inner := range embedded(plain) {
				require.True(t, CheckAddress(inner, Decision{Verdict: Allow, Reason: ReasonRule}, nil).Allowed())
			}
		}
	})
}
