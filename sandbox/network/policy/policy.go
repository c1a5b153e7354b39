// Package policy decides which network destinations a sandbox may reach; it is pure: it resolves no name, dials nothing, records nothing.
package policy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// HostAlias is the name under which a sandbox reaches a loopback address of the host. A sandbox's own 127.0.0.1 never
// leaves it, so an allow rule for 127.0.0.1:8080 is used from inside as HostAlias:8080.
const HostAlias = "host.patio.internal"

// Verdict is the outcome of a decision. The zero value denies.
type Verdict uint8

// The two verdicts.
const (
	Deny Verdict = iota
	Allow
)

// String gives "allow" or "deny".
func (v Verdict) String() string {
	if v == Allow {
		return "allow"
	}
	return "deny"
}

// MarshalText writes the verdict as "allow" or "deny".
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads "allow" or "deny".
func (v *Verdict) UnmarshalText(text []byte) error {
	switch string(text) {
	case "allow":
		*v = Allow
	case "deny":
		*v = Deny
	default:
		return fmt.Errorf("read verdict: %q is neither allow nor deny", text)
	}
	return nil
}

// Protocol says how a destination was asked for.
type Protocol string

// The protocols a Request may carry. DNS asks about a name on any port; TLS and HTTP are what the first bytes of a TCP
// connection showed. Everything that is not in this list is refused.
const (
	DNS  Protocol = "dns"
	TCP  Protocol = "tcp"
	TLS  Protocol = "tls"
	HTTP Protocol = "http"
	UDP  Protocol = "udp"
	ICMP Protocol = "icmp"
	IPv6 Protocol = "ipv6"
)

// Request is one attempt to reach something. Host is the name that was asked for; it is empty when the sandbox used a
// bare address, which Address then holds. Port is ignored for DNS.
type Request struct {
	Protocol Protocol
	Host     string
	Port     uint16
	Address  netip.Addr
}

// Decision is the answer to a Request. Rule is the text of the rule that decided ("" when none did), Reason is stable
// and for machines, Message is for people. The other fields are set for allowed requests only: Private and Address tell
// the dialer what CheckAddress may let through, Exact whether the rule names exactly one host.
type Decision struct {
	Verdict Verdict    `json:"verdict"`
	Rule    string     `json:"rule,omitempty"`
	Reason  Reason     `json:"reason"`
	Message string     `json:"message"`
	Exact   bool       `json:"exact,omitempty"`
	Private bool       `json:"private,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
}

// Allowed tells whether the verdict is Allow.
func (d Decision) Allowed() bool { return d.Verdict == Allow }

// Policy is an immutable set of rules. The zero value and a nil *Policy deny everything.
type Policy struct {
	rules    []Rule
	exact    map[string][]Rule // by host
	wildcard map[string][]Rule // by suffix, without the "*."
	loopback []Rule            // allow rules for loopback addresses, reachable as HostAlias
}

// New makes a policy of rules. A rule that is not well formed is an error, so that a damaged list never becomes a
// shorter one: the caller then has no policy, and no policy denies everything.
func New(rules ...Rule) (*Policy, error) {
	p := &Policy{exact: make(map[string][]Rule), wildcard: make(map[string][]Rule)}
	for _, r := range rules {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(p.rules, r.same) {
			continue
		}
		p.rules = append(p.rules, r)
		if suffix, ok := strings.CutPrefix(r.Host, "*."); ok {
			p.wildcard[suffix] = append(p.wildcard[suffix], r)
			continue
		}
		p.exact[r.Host] = append(p.exact[r.Host], r)
		if a, ok := r.Literal(); ok && a.IsLoopback() && r.Action == ActionAllow {
			p.loopback = append(p.loopback, r)
		}
	}
	return p, nil
}

// Rules gives a copy of the rules, in the order they were given.
func (p *Policy) Rules() []Rule {
	if p == nil {
		return nil
	}
	return slices.Clone(p.rules)
}

// Decide answers a request. It never fails: what it can't understand, it denies.
func (p *Policy) Decide(req Request) Decision {
	switch req.Protocol {
	case UDP:
		return deny(ReasonUDP, "")
	case ICMP:
		return deny(ReasonICMP, "")
	case IPv6:
		return deny(ReasonIPv6, "")
	case DNS, TCP, TLS, HTTP:
	default:
		return deny(ReasonProtocol, "")
	}
	host := req.Host
	if host == "" {
		if !req.Address.IsValid() {
			return deny(ReasonInvalidName, "")
		}
		return p.decideLiteral(req.Address, req.Port)
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if req.Protocol == DNS {
			return deny(ReasonInvalidName, "")
		}
		return p.decideLiteral(a, req.Port)
	}
	name, err := NormalizeName(host)
	if err != nil {
		return deny(ReasonInvalidName, "")
	}
	if p == nil || len(p.rules) == 0 {
		return deny(ReasonEmptyPolicy, "")
	}
	if req.Protocol == DNS {
		return p.decideName(name)
	}
	return p.decidePort(name, req.Port)
}

// decideName allows a name when it can be reached on at least one port.
func (p *Policy) decideName(name string) Decision {
	var refused Decision
	known := false
	for _, r := range p.matching(name) {
		if r.Action != ActionAllow {
			if !known {
				refused, known = denyBy(r), true
			}
			continue
		}
		d := p.decidePort(name, r.Port)
		if d.Allowed() {
			return d
		}
		refused, known = d, true
	}
	if known {
		return refused
	}
	return deny(ReasonNoRule, "")
}

func (p *Policy) decidePort(name string, port uint16) Decision {
	rules := p.matching(name)
	for _, r := range rules {
		if r.Action == ActionDeny && r.covers(port) {
			return denyBy(r)
		}
	}
	named := false
	for _, r := range rules {
		if r.Action != ActionAllow {
			continue
		}
		named = true
		if r.covers(port) {
			return allowBy(r)
		}
	}
	if named {
		return deny(ReasonPort, "")
	}
	return deny(ReasonNoRule, "")
}

// decideLiteral allows a bare address only by a rule that names exactly it: an address says nothing about who answers.
func (p *Policy) decideLiteral(a netip.Addr, port uint16) Decision {
	a = a.Unmap()
	if p != nil {
		rules := p.exact[a.String()]
		for _, r := range rules {
			if r.Action == ActionDeny && r.covers(port) {
				return denyBy(r)
			}
		}
		for _, r := range rules {
			if r.Action == ActionAllow && r.covers(port) {
				return allowBy(r)
			}
		}
	}
	if a.Is6() {
		return deny(ReasonIPv6, "")
	}
	return deny(ReasonLiteral, "")
}

// matching gives every rule that names name, the most specific first.
func (p *Policy) matching(name string) []Rule {
	var found []Rule
	if name == HostAlias {
		for _, r := range p.loopback {
			// A deny rule for the address holds for its alias as well.
			if p.decideLiteral(mustLiteral(r), r.Port).Allowed() {
				found = append(found, r)
			}
		}
	}
	found = append(found, p.exact[name]...)
	for rest := name; ; {
		_, suffix, ok := strings.Cut(rest, ".")
		if !ok {
			return found
		}
		found = append(found, p.wildcard[suffix]...)
		rest = suffix
	}
}

func mustLiteral(r Rule) netip.Addr {
	a, _ := r.Literal()
	return a
}

func allowBy(r Rule) Decision {
	d := Decision{
		Verdict: Allow, Rule: r.String(), Reason: ReasonRule, Private: r.Private,
		Exact: !strings.HasPrefix(r.Host, "*."),
	}
	d.Address, _ = r.Literal()
	d.Message = ReasonRule.Message()
	return d
}

func denyBy(r Rule) Decision { return deny(ReasonRuleDenied, r.String()) }

func deny(reason Reason, rule string) Decision {
	return Decision{Verdict: Deny, Rule: rule, Reason: reason, Message: reason.Message()}
}

// Refuse makes a denial for a reason that was found outside the rules, such as a ClientHello without a name.
func Refuse(reason Reason) Decision { return deny(reason, "") }

// MarshalJSON writes the rules as a list.
func (p *Policy) MarshalJSON() ([]byte, error) {
	rules := p.Rules()
	if rules == nil {
		rules = []Rule{}
	}
	return json.Marshal(rules)
}

func joinHostPort(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == AnyPort {
		return host + ":*"
	}
	return host + ":" + strconv.Itoa(int(port))
}
