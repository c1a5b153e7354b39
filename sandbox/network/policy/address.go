package policy

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// special lists address ranges that are not part of the public internet, the narrower ranges first. Sources: the IANA
// special-purpose address registries, and the cloud providers' documentation for the metadata addresses.
var special = []struct {
	prefix netip.Prefix
	reason Reason
}{
	// Metadata: AWS, GCP, Azure, OpenStack and others; ECS; Alibaba; Oracle; Azure's wire server; the IPv6 ones of AWS and GCP.
	{netip.MustParsePrefix("169.254.169.254/32"), ReasonMetadata},
	{netip.MustParsePrefix("169.254.169.253/32"), ReasonMetadata},
	{netip.MustParsePrefix("169.254.170.2/32"), ReasonMetadata},
	{netip.MustParsePrefix("169.254.170.23/32"), ReasonMetadata},
	{netip.MustParsePrefix("169.254.0.23/32"), ReasonMetadata},
	{netip.MustParsePrefix("100.100.100.200/32"), ReasonMetadata},
	{netip.MustParsePrefix("192.0.0.192/32"), ReasonMetadata},
	{netip.MustParsePrefix("168.63.129.16/32"), ReasonMetadata},
	{netip.MustParsePrefix("fd00:ec2::254/128"), ReasonMetadata},
	{netip.MustParsePrefix("fd00:ec2::23/128"), ReasonMetadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), ReasonMetadata},
	{netip.MustParsePrefix("fe80::a9fe:a9fe/128"), ReasonMetadata},

	{netip.MustParsePrefix("0.0.0.0/32"), ReasonUnspecified},
	{netip.MustParsePrefix("0.0.0.0/8"), ReasonReserved},
	{netip.MustParsePrefix("10.0.0.0/8"), ReasonPrivate},
	{netip.MustParsePrefix("100.64.0.0/10"), ReasonShared},
	{netip.MustParsePrefix("127.0.0.0/8"), ReasonLoopback},
	{netip.MustParsePrefix("169.254.0.0/16"), ReasonLinkLocal},
	{netip.MustParsePrefix("172.16.0.0/12"), ReasonPrivate},
	{netip.MustParsePrefix("192.0.2.0/24"), ReasonDocs},
	{netip.MustParsePrefix("192.0.0.0/24"), ReasonReserved},
	{netip.MustParsePrefix("192.88.99.0/24"), ReasonTransition},
	{netip.MustParsePrefix("192.168.0.0/16"), ReasonPrivate},
	{netip.MustParsePrefix("198.18.0.0/15"), ReasonGatewayRange},
	{netip.MustParsePrefix("198.51.100.0/24"), ReasonDocs},
	{netip.MustParsePrefix("203.0.113.0/24"), ReasonDocs},
	{netip.MustParsePrefix("224.0.0.0/4"), ReasonMulticast},
	{netip.MustParsePrefix("240.0.0.0/4"), ReasonReserved},

	{netip.MustParsePrefix("::/128"), ReasonUnspecified},
	{netip.MustParsePrefix("::1/128"), ReasonLoopback},
	{netip.MustParsePrefix("64:ff9b:1::/48"), ReasonPrivate},
	{netip.MustParsePrefix("100::/64"), ReasonReserved},
	{netip.MustParsePrefix("2001:db8::/32"), ReasonDocs},
	{netip.MustParsePrefix("2001::/32"), ReasonTransition},
	{netip.MustParsePrefix("2001::/23"), ReasonReserved},
	{netip.MustParsePrefix("2002::/16"), ReasonTransition},
	{netip.MustParsePrefix("3fff::/20"), ReasonDocs},
	{netip.MustParsePrefix("fc00::/7"), ReasonPrivate},
	{netip.MustParsePrefix("fe80::/10"), ReasonLinkLocal},
	{netip.MustParsePrefix("fec0::/10"), ReasonPrivate},
	{netip.MustParsePrefix("ff00::/8"), ReasonMulticast},
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	global6 = netip.MustParsePrefix("2000::/3")
	sixTo4  = netip.MustParsePrefix("2002::/16")
	teredo  = netip.MustParsePrefix("2001::/32")
	compat  = netip.MustParsePrefix("::/96")
)

// CheckAddress tells whether an address that an allowed host resolved to may be dialed for decision d. own are this
// machine's addresses. The answer is an allowing decision like d, or a denial with d's rule and the reason.
//
// IPv4 addresses that are written into IPv6 ones (mapped, compatible, NAT64, 6to4, Teredo, ISATAP) are judged by the
// IPv4 address as well. A private rule lets private, shared, loopback and own addresses through, nothing else.
func CheckAddress(a netip.Addr, d Decision, own []netip.Addr) Decision {
	if !d.Allowed() {
		return d
	}
	refuse := func(reason Reason) Decision { return deny(reason, d.Rule) }
	if !a.IsValid() || a.Zone() != "" {
		return refuse(ReasonBadAddress)
	}
	plain := a.Unmap()
	if d.Address.IsValid() && plain != d.Address.Unmap() {
		return refuse(ReasonMismatch)
	}
	reason := classify(plain)
	if reason == "" && isOwn(plain, own) {
		reason = ReasonOwnAddress
	}
	if reason == "" || d.Private && nameable(reason) {
		return d
	}
	return refuse(reason)
}

// nameable tells whether a rule that is private on purpose may reach addresses of this kind.
func nameable(reason Reason) bool {
	switch reason {
	case "", ReasonPrivate, ReasonShared, ReasonLoopback, ReasonOwnAddress:
		return true
	default:
		return false
	}
}

func isPublic(a netip.Addr) bool { return classify(a.Unmap()) == "" }

// classify gives the reason an address is not a public one, "" when it is.
func classify(a netip.Addr) Reason {
	a = a.Unmap()
	for _, s := range special {
		if s.prefix.Contains(a) {
			if s.reason != ReasonTransition {
				return s.reason
			}
			break
		}
	}
	if a.Is4() {
		return lookup(a)
	}
	for _, inner := range embedded(a) {
		if reason := lookup(inner); reason != "" {
			return reason
		}
	}
	switch {
	case nat64.Contains(a):
		return "" // a host behind NAT64 reaches the public IPv4 internet this way
	case sixTo4.Contains(a), teredo.Contains(a), compat.Contains(a), isISATAP(a):
		return ReasonTransition
	case !global6.Contains(a):
		return ReasonReserved
	}
	return ""
}

func lookup(a netip.Addr) Reason {
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.reason
		}
	}
	return ""
}

// embedded gives the IPv4 addresses that are written into an IPv6 one.
func embedded(a netip.Addr) []netip.Addr {
	b := a.As16()
	tail := netip.AddrFrom4([4]byte(b[12:]))
	var found []netip.Addr
	switch {
	case nat64.Contains(a), compat.Contains(a):
		found = append(found, tail)
	case sixTo4.Contains(a):
		found = append(found, netip.AddrFrom4([4]byte(b[2:6])))
	case teredo.Contains(a):
		server := netip.AddrFrom4([4]byte(b[4:8]))
		client := netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
		found = append(found, server, client)
	}
	if isISATAP(a) {
		found = append(found, tail)
	}
	return found
}

// isISATAP looks for the interface identifiers of RFC 5214, with the universal bit or without it.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	id := binary.BigEndian.Uint32(b[8:12])
	return id == 0x00005efe || id == 0x02005efe
}

func isOwn(a netip.Addr, own []netip.Addr) bool {
	same := func(o netip.Addr) bool { return o.Unmap().WithZone("") == a }
	if slices.ContainsFunc(own, same) {
		return true
	}
	if a.Is4() {
		return false
	}
	for _, inner := range embedded(a) {
		if isOwn(inner, own) {
			return true
		}
	}
	return false
}

// literalMessage is Message for an address that a rule names itself.
func (r Reason) literalMessage() string {
	switch r {
	case ReasonMetadata:
		return "it serves cloud metadata, with credentials in it"
	case ReasonGatewayRange:
		return "it is in the sandbox's own address range"
	case "":
		return "it is public"
	default:
		return "it is a " + string(r)
	}
}
