package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Action is what a rule does with what it matches.
type Action string

// The two actions.
const (
	ActionAllow Action = "allow"
	ActionDeny  Action = "deny"
)

// AnyPort as a rule's port matches every port. Only deny rules may have it.
const AnyPort uint16 = 0

// DefaultPort is the port of an allow rule that names none.
const DefaultPort uint16 = 443

// privatePrefix marks a name whose addresses may be private ones.
const privatePrefix = "private:"

// Rule allows or denies one host, or all names below a suffix, on a port. Source says who set it ("flag", "config",
// "model", "user", "demo", …) and Since when; neither takes part in matching.
type Rule struct {
	// Host is a normalized name, "*." and a normalized suffix, or an address in its canonical form.
	Host string `json:"host"`
	// Port is 1 to 65535, or AnyPort in a deny rule.
	Port   uint16    `json:"port"`
	Action Action    `json:"action"`
	Source string    `json:"source,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Private lets the host resolve to private, loopback or own addresses of the host machine. Metadata and multicast
	// addresses stay refused.
	Private bool `json:"private,omitempty"`
}

// ParseRule reads an allow rule:
//
//	example.com           that name, port 443
//	example.com:8443      that name, that port
//	*.example.com         every name below it, never example.com itself
//	private:git.corp:22   a name that is meant to resolve to a private address
//	192.168.1.5:8080      an address, always with its port; private ones are marked Private by being named
//	127.0.0.1:8080        a service on the host's loopback, reached from inside as host.patio.internal:8080
func ParseRule(text string) (Rule, error) {
	r, hasPort, err := parse(text)
	if err != nil {
		return Rule{}, fmt.Errorf("parse rule %q: %w", text, err)
	}
	r.Action = ActionAllow
	if !hasPort {
		if _, ok := r.Literal(); ok {
			return Rule{}, fmt.Errorf("parse rule %q: an address needs a port: write %s", text, joinHostPort(r.Host, DefaultPort))
		}
		r.Port = DefaultPort
	}
	if err := r.Validate(); err != nil {
		return Rule{}, err
	}
	return r, nil
}

// ParseDeny reads a deny rule, in the same forms as ParseRule. Without a port, or with the port "*", it covers all ports.
func ParseDeny(text string) (Rule, error) {
	r, _, err := parse(text)
	if err != nil {
		return Rule{}, fmt.Errorf("parse deny rule %q: %w", text, err)
	}
	r.Action, r.Private = ActionDeny, false
	if err := r.Validate(); err != nil {
		return Rule{}, err
	}
	return r, nil
}

func parse(text string) (r Rule, hasPort bool, err error) {
	rest, private := strings.CutPrefix(text, privatePrefix)
	host, port, hasPort, err := splitPort(rest)
	if err != nil {
		return Rule{}, false, err
	}
	r = Rule{Port: port, Private: private}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return Rule{}, false, errors.New("an address with a zone can't be a rule: leave out the % and what follows")
		}
		a = a.Unmap()
		r.Host = a.String()
		r.Private = !isPublic(a)
		return r, hasPort, nil
	}
	if suffix, ok := strings.CutPrefix(host, "*."); ok {
		if private {
			return Rule{}, false, errors.New("a private rule needs an exact name: write each host out")
		}
		name, err := NormalizeName(suffix)
		if err != nil {
			return Rule{}, false, err
		}
		r.Host = "*." + name
		return r, hasPort, nil
	}
	if strings.Contains(host, "*") {
		return Rule{}, false, errors.New(`a "*" may only stand for the whole first part: write *.example.com`)
	}
	name, err := NormalizeName(host)
	if err != nil {
		return Rule{}, false, err
	}
	switch {
	case name == HostAlias:
		// The alias is how the sandbox says it, the address is what it means.
		r.Host, r.Private = "127.0.0.1", true
		return r, hasPort, nil
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return Rule{}, false, fmt.Errorf("%s is the sandbox itself: for a service of this machine write 127.0.0.1:PORT, and use it inside as %s:PORT", name, HostAlias)
	}
	r.Host = name
	return r, hasPort, nil
}

// splitPort separates the port. An unbracketed IPv6 address has no port.
func splitPort(text string) (host string, port uint16, hasPort bool, err error) {
	switch {
	case text == "":
		return "", 0, false, errors.New("the host is missing: write host or host:port")
	case strings.Contains(text, "://") || strings.ContainsAny(text, "/@?#"):
		return "", 0, false, errors.New("a rule is host:port, not a URL: leave out the scheme, user and path")
	}
	host = text
	portText := ""
	switch i := strings.LastIndexByte(text, ':'); {
	case strings.HasPrefix(text, "["):
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", 0, false, errors.New(`the "]" after the IPv6 address is missing`)
		}
		host = text[1:end]
		after := text[end+1:]
		if !strings.Contains(host, ":") {
			return "", 0, false, errors.New("only an IPv6 address stands in brackets")
		}
		if after == "" {
			return host, 0, false, nil
		}
		if after[0] != ':' {
			return "", 0, false, errors.New(`after "]" comes a colon and the port`)
		}
		portText = after[1:]
	case i < 0 || strings.Count(text, ":") > 1:
		return host, 0, false, nil
	default:
		host, portText = text[:i], text[i+1:]
	}
	if portText == "*" {
		return host, AnyPort, true, nil
	}
	if portText == "" || strings.Trim(portText, "0123456789") != "" {
		return "", 0, false, fmt.Errorf("the port %q is not a number from 1 to 65535", portText)
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || n == 0 {
		return "", 0, false, fmt.Errorf("the port %q is not a number from 1 to 65535", portText)
	}
	return host, uint16(n), true, nil
}

// Validate tells whether a rule is well formed: rules may come from files and other programs, not only from ParseRule.
func (r Rule) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("check rule %s: %w", r, fmt.Errorf(format, args...))
	}
	if r.Action != ActionAllow && r.Action != ActionDeny {
		return fail("the action %q is neither allow nor deny", string(r.Action))
	}
	if r.Port == AnyPort && r.Action == ActionAllow {
		return fail("an allow rule needs a port: write %s", joinHostPort(r.Host, DefaultPort))
	}
	if a, ok := r.Literal(); ok {
		if a.Unmap().String() != r.Host {
			return fail("the address is not in its usual form %s", a.Unmap())
		}
		if r.Action == ActionDeny {
			return nil
		}
		switch reason := classify(a); {
		case !nameable(reason):
			return fail("this address can't be allowed: %s", reason.literalMessage())
		case reason != "" && !r.Private:
			return fail("%s: mark the rule as private", reason.literalMessage())
		}
		return nil
	}
	name, wild := strings.CutPrefix(r.Host, "*.")
	if wild && r.Private {
		return fail("a private rule needs an exact name")
	}
	normal, err := NormalizeName(name)
	if err != nil {
		return fail("%w", err)
	}
	if normal != name {
		return fail("the name is not in its normal form %s", normal)
	}
	if name == HostAlias {
		return fail("%s stands for the addresses that are allowed by themselves: write 127.0.0.1:PORT", HostAlias)
	}
	if wild && !strings.Contains(name, ".") && r.Action == ActionAllow {
		return fail("*.%s would allow a whole top-level domain: name more of the host", name)
	}
	return nil
}

// Literal gives the address a rule names, if it names one.
func (r Rule) Literal() (netip.Addr, bool) {
	a, err := netip.ParseAddr(r.Host)
	return a, err == nil
}

// String gives the rule in the form that ParseRule or ParseDeny reads.
func (r Rule) String() string {
	text := joinHostPort(r.Host, r.Port)
	if _, literal := r.Literal(); r.Private && !literal {
		text = privatePrefix + text
	}
	return text
}

func (r Rule) covers(port uint16) bool { return r.Port == AnyPort || r.Port == port }

// same tells whether two rules mean the same, whoever set them.
func (r Rule) same(o Rule) bool {
	return r.Host == o.Host && r.Port == o.Port && r.Action == o.Action && r.Private == o.Private
}
