package policy

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckAddress(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("10.5.5.5"), netip.MustParseAddr("2620:fe::9")}
	for _, c := range []struct {
		address string
		reason  Reason // for an ordinary rule
		private Reason // for a private one
	}{
		{"1.2.3.4", ReasonRule, ReasonRule},
		{"::ffff:1.2.3.4", ReasonRule, ReasonRule},
		{"2606:4700::1111", ReasonRule, ReasonRule},
		{"64:ff9b::1.2.3.4", ReasonRule, ReasonRule},
		{"172.15.255.255", ReasonRule, ReasonRule},
		{"172.32.0.0", ReasonRule, ReasonRule},
		{"100.63.255.255", ReasonRule, ReasonRule},
		{"100.128.0.0", ReasonRule, ReasonRule},

		{"0.0.0.0", ReasonUnspecified, ReasonUnspecified},
		{"0.1.2.3", ReasonReserved, ReasonReserved},
		{"127.0.0.1", ReasonLoopback, ReasonRule},
		{"127.255.255.254", ReasonLoopback, ReasonRule},
		{"10.0.0.1", ReasonPrivate, ReasonRule},
		{"172.16.0.1", ReasonPrivate, ReasonRule},
		{"172.31.255.255", ReasonPrivate, ReasonRule},
		{"192.168.0.1", ReasonPrivate, ReasonRule},
		{"100.64.0.1", ReasonShared, ReasonRule},
		{"169.254.1.1", ReasonLinkLocal, ReasonLinkLocal},
		{"169.254.169.254", ReasonMetadata, ReasonMetadata},
		{"169.254.170.2", ReasonMetadata, ReasonMetadata},
		{"100.100.100.200", ReasonMetadata, ReasonMetadata},
		{"168.63.129.16", ReasonMetadata, ReasonMetadata},
		{"192.0.0.192", ReasonMetadata, ReasonMetadata},
		{"192.0.0.1", ReasonReserved, ReasonReserved},
		{"192.0.2.1", ReasonDocs, ReasonDocs},
		{"198.51.100.1", ReasonDocs, ReasonDocs},
		{"203.0.113.1", ReasonDocs, ReasonDocs},
		{"192.88.99.1", ReasonTransition, ReasonTransition},
		{"198.18.0.1", ReasonGatewayRange, ReasonGatewayRange},
		{"198.19.255.1", ReasonGatewayRange, ReasonGatewayRange},
		{"224.0.0.1", ReasonMulticast, ReasonMulticast},
		{"240.0.0.1", ReasonReserved, ReasonReserved},
		{"255.255.255.255", ReasonReserved, ReasonReserved},
		{"9.9.9.9", ReasonOwnAddress, ReasonRule},
		{"::ffff:9.9.9.9", ReasonOwnAddress, ReasonRule},
		{"64:ff9b::9.9.9.9", ReasonOwnAddress, ReasonRule},
		{"2620:fe::9", ReasonOwnAddress, ReasonRule},

		{"::", ReasonUnspecified, ReasonUnspecified},
		{"::1", ReasonLoopback, ReasonRule},
		{"fe80::1", ReasonLinkLocal, ReasonLinkLocal},
		{"fec0::1", ReasonPrivate, ReasonRule},
		{"fd00::1", ReasonPrivate, ReasonRule},
		{"fd00:ec2::254", ReasonMetadata, ReasonMetadata},
		{"fd20:ce::254", ReasonMetadata, ReasonMetadata},
		{"ff02::1", ReasonMulticast, ReasonMulticast},
		{"2001:db8::1", ReasonDocs, ReasonDocs},
		{"3fff::1", ReasonDocs, ReasonDocs},
		{"100::1", ReasonReserved, ReasonReserved},
		{"2001:2::1", ReasonReserved, ReasonReserved},
		{"4000::1", ReasonReserved, ReasonReserved},

		{"::ffff:127.0.0.1", ReasonLoopback, ReasonRule},
		{"::ffff:169.254.169.254", ReasonMetadata, ReasonMetadata},
		{"::127.0.0.1", ReasonLoopback, ReasonRule},
		{"::1.2.3.4", ReasonTransition, ReasonTransition},
		{"64:ff9b::10.0.0.1", ReasonPrivate, ReasonRule},
		{"64:ff9b::169.254.169.254", ReasonMetadata, ReasonMetadata},
		{"64:ff9b:1::1.2.3.4", ReasonPrivate, ReasonRule},
		{"2002:a00:1::1", ReasonPrivate, ReasonRule},
		{"2002:a9fe:a9fe::", ReasonMetadata, ReasonMetadata},
		{"2002:102:304::1", ReasonTransition, ReasonTransition},
		{"2001:0:7f00:1::", ReasonLoopback, ReasonRule},                         // Teredo: the server
		{"2001:0:102:304:0:0:5601:5601", ReasonMetadata, ReasonMetadata},        // Teredo: the client, inverted
		{"2001:0:102:304:0:0:fefd:fcfb", ReasonTransition, ReasonTransition},    // Teredo of public addresses
		{"2606:4700::5efe:10.0.0.1", ReasonPrivate, ReasonRule},                 // ISATAP
		{"2606:4700::200:5efe:169.254.169.254", ReasonMetadata, ReasonMetadata}, // ISATAP, universal bit
		{"2606:4700::5efe:1.2.3.4", ReasonTransition, ReasonTransition},         // ISATAP of a public address
		{"2606:4700::1%eth0", ReasonBadAddress, ReasonBadAddress},
	} {
		a := netip.MustParseAddr(c.address)
		require.Equal(t, c.reason, CheckAddress(a, Decision{Verdict: Allow, Reason: ReasonRule}, own).Reason, c.address)
		require.Equal(t, c.private, CheckAddress(a, Decision{Verdict: Allow, Reason: ReasonRule, Private: true}, own).Reason, c.address+", private rule")
	}
	require.Equal(t, ReasonBadAddress, CheckAddress(netip.Addr{}, Decision{Verdict: Allow}, nil).Reason)
	refused := Refuse(ReasonNoRule)
	require.Equal(t, refused, CheckAddress(netip.MustParseAddr("1.2.3.4"), refused, nil))
	named := Decision{Verdict: Allow, Reason: ReasonRule, Private: true, Address: netip.MustParseAddr("10.0.0.1")}
	require.True(t, CheckAddress(netip.MustParseAddr("10.0.0.1"), named, nil).Allowed())
	require.Equal(t, ReasonMismatch, CheckAddress(netip.MustParseAddr("10.0.0.2"), named, nil).Reason)
}
