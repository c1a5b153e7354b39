package network

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"

	"patio/sandbox/network/policy"
)

const (
	// nameTTL is short only so that no cache inside makes a withdrawn name look allowed for long: the address itself
	// stays valid for the whole session.
	nameTTL = 30
	// dnsIdle is how long a DNS connection over TCP may be silent (RFC 7766 asks for seconds).
	dnsIdle = 10 * time.Second
	// plainLimit is the largest answer over UDP without EDNS (RFC 1035), ednsLimit the one we offer with it.
	plainLimit = 512
	ednsLimit  = 1232
	maxQuery   = 4096
)

// startDNS serves DNS over UDP on the gateway's address. Over TCP it is served by accept.
func (g *Gateway) startDNS() error {
	conn, err := gonet.DialUDP(g.stack, &tcpip.FullAddress{NIC: nicID, Addr: toTCPIP(GatewayAddress), Port: dnsPort}, nil, ipv4.ProtocolNumber)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(g.ctx, func() {
		// Close does not end a read of this kind of connection, its deadline does.
		_ = conn.SetReadDeadline(time.Unix(0, 1))
	})
	g.work.Go(func() {
		defer func() { _ = conn.Close() }()
		defer stop()
		buf := make([]byte, maxQuery)
		for {
			n, from, err := conn.ReadFrom(buf)
			if g.ctx.Err() != nil {
				return
			}
			if err != nil {
				g.log.Warn("read DNS query", "err", err)
				return
			}
			if answer := g.answerDNS(buf[:n], plainLimit); answer != nil {
				// An answer that can't be sent is asked for again.
				_, _ = conn.WriteTo(answer, from)
			}
		}
	})
	return nil
}

// serveDNS answers queries over TCP.
func (g *Gateway) serveDNS(ctx context.Context, conn net.Conn) {
	var size [2]byte
	for ctx.Err() == nil {
		if conn.SetDeadline(time.Now().Add(dnsIdle)) != nil {
			return
		}
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer := g.answerDNS(query, dns.MaxMsgSize)
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answerDNS answers one query, nil when it deserves none. Nothing is ever asked of another server: allowed names get
// an address of ours here, and are resolved by the host when a connection to it is made.
//
// A refused name is answered with NXDOMAIN. REFUSED would be truer, but resolvers take it for a broken server: they try
// the next one, ask again and finally report a temporary failure, which programs retry. After NXDOMAIN they give up
// at once. The reason goes into an extended error (RFC 8914) for those who ask with EDNS.
func (g *Gateway) answerDNS(query []byte, limit int) []byte {
	g.tallies.dnsQueries.Add(1)
	if len(query) < 12 {
		g.refuseQuery("", 0, policy.Refuse(policy.ReasonMalformed))
		return nil
	}
	var q dns.Msg
	if err := q.Unpack(query); err != nil {
		if query[2]&0x80 != 0 {
			return nil // not a query: answering it could make a loop
		}
		g.refuseQuery("", 0, policy.Refuse(policy.ReasonMalformed))
		return formatError(query)
	}
	if q.Response {
		return nil
	}
	reply := new(dns.Msg).SetReply(&q)
	reply.Authoritative, reply.RecursionAvailable = true, true
	refuse := func(rcode int, name string, d policy.Decision) {
		reply.Rcode = rcode
		explainDNS(&q, reply, d)
		g.refuseQuery(name, 0, d)
	}
	switch {
	case !g.dnsRate.Allow():
		refuse(dns.RcodeRefused, "", policy.Refuse(policy.ReasonDNSRate))
	case q.Opcode != dns.OpcodeQuery:
		refuse(dns.RcodeNotImplemented, "", policy.Refuse(policy.ReasonProtocol))
	case len(q.Question) != 1:
		refuse(dns.RcodeFormatError, "", policy.Refuse(policy.ReasonMalformed))
	case q.Question[0].Qclass != dns.ClassINET:
		refuse(dns.RcodeRefused, questionName(q.Question[0]), policy.Refuse(policy.ReasonProtocol))
	default:
		g.answerQuestion(q.Question[0], reply, refuse)
	}
	if e := q.IsEdns0(); e != nil {
		if reply.IsEdns0() == nil {
			reply.SetEdns0(ednsLimit, false)
		}
		if limit == plainLimit {
			limit = min(max(int(e.UDPSize()), plainLimit), ednsLimit)
		}
	}
	reply.Truncate(limit)
	packed, err := reply.Pack()
	if err != nil {
		g.log.Debug("pack DNS answer", "err", err)
		return formatError(query)
	}
	return packed
}

func (g *Gateway) answerQuestion(q dns.Question, reply *dns.Msg, refuse func(int, string, policy.Decision)) {
	asked := questionName(q)
	if addr, ok := reverseAddress(asked); ok {
		if name, ok := g.reverseName(addr); ok {
			if q.Qtype == dns.TypePTR {
				reply.Answer = []dns.RR{&dns.PTR{Hdr: rrHeader(q, dns.TypePTR), Ptr: dns.Fqdn(name)}}
			}
			return
		}
	}
	name, err := policy.NormalizeName(asked)
	if err != nil {
		refuse(dns.RcodeNameError, asked, policy.Refuse(policy.ReasonInvalidName))
		return
	}
	addr := GatewayAddress
	if name != GatewayName {
		d := g.decide(policy.DNS, name, 0)
		if !d.Allowed() {
			refuse(dns.RcodeNameError, name, d)
			return
		}
		var ok bool
		if addr, ok = g.names.assign(name, d.Exact); !ok {
			refuse(dns.RcodeServerFailure, name, policy.Refuse(policy.ReasonNamesFull))
			return
		}
		g.recorder.repeat(Event{
			Kind: KindDNS, Verdict: policy.Allow, Host: name, Port: dnsPort, Protocol: policy.DNS, Rule: d.Rule, Reason: d.Reason, Message: d.Message,
		})
	}
	// Other types, AAAA among them, have no records: an empty answer says that the name exists nevertheless. That there
	// are no HTTPS records also keeps clients from encrypting their ClientHello.
	if q.Qtype == dns.TypeA {
		reply.Answer = []dns.RR{&dns.A{Hdr: rrHeader(q, dns.TypeA), A: addr.AsSlice()}}
	}
}

func (g *Gateway) refuseQuery(name string, port uint16, d policy.Decision) {
	g.tallies.deniedDNS.Add(1)
	if port == 0 {
		port = dnsPort
	}
	g.recorder.repeat(Event{
		Kind: KindDNS, Host: clip(name), Port: port, Protocol: policy.DNS, Rule: d.Rule, Reason: d.Reason, Message: d.Message,
	})
}

func (g *Gateway) reverseName(addr netip.Addr) (string, bool) {
	if addr == GatewayAddress {
		return GatewayName, true
	}
	return g.names.name(addr)
}

// reverseAddress reads a name like 1.255.19.198.in-addr.arpa.
func reverseAddress(name string) (netip.Addr, bool) {
	digits, ok := strings.CutSuffix(strings.ToLower(name), ".in-addr.arpa")
	if !ok {
		return netip.Addr{}, false
	}
	parts := strings.Split(digits, ".")
	if len(parts) != 4 {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
	return addr, err == nil
}

func questionName(q dns.Question) string {
	if q.Name == "." {
		return q.Name
	}
	return strings.TrimSuffix(q.Name, ".")
}

func rrHeader(q dns.Question, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: q.Name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: nameTTL}
}

// explainDNS adds the reason to a refusal when the query has EDNS.
func explainDNS(q, reply *dns.Msg, d policy.Decision) {
	if q.IsEdns0() == nil {
		return
	}
	reply.SetEdns0(ednsLimit, false)
	opt := reply.IsEdns0()
	opt.Option = append(opt.Option, &dns.EDNS0_EDE{
		InfoCode:  dns.ExtendedErrorCodeProhibited,
		ExtraText: fmt.Sprintf("%s: %s; policy: do not retry", d.Reason, d.Message),
	})
}

// formatError makes an answer out of nothing but the query's header.
func formatError(query []byte) []byte {
	reply := make([]byte, 12)
	copy(reply, query[:2])
	reply[2] = query[2]&0x79 | 0x80 // the operation and the wish for recursion, as an answer
	reply[3] = dns.RcodeFormatError
	return reply
}
