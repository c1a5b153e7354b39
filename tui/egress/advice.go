package egress

import (
	"net/netip"
	"strconv"
	"strings"
)

// advice is what can be done about a refusal: a command that allows it in a session that
// starts then, or why there is none.
type advice struct {
	rule string // for --allow; empty when no rule helps
	why  string
}

// suggest tells how a refused attempt could be allowed. A host name comes from the
// sandbox: it is suggested only when it is one that needs no quoting in a shell.
func suggest(d *decision) advice {
	switch d.reason {
	case "no_rule", "empty_policy", "port_not_allowed", "rule_withdrawn":
		if rule := ruleFor(d, ""); rule != "" {
			if d.kind == kindDNS {
				return advice{rule, "A name is looked up only when a rule names it. Without a port the rule means 443; write another after a colon."}
			}
			return advice{rule, "The rule names exactly this host and port."}
		}
		return advice{"", "This is no host name that a rule can have."}
	case "private_address", "carrier_nat_address", "loopback_address", "host_address":
		if rule := ruleFor(d, "private:"); rule != "" {
			return advice{rule, "The name leads into a private network, so the rule has to say that this is meant."}
		}
		return advice{"", "This is no host name that a rule can have."}
	case "protocol_needs_exact_rule":
		if rule := ruleFor(d, ""); rule != "" {
			return advice{rule, "A rule with a * doesn't do for this protocol."}
		}
	case "ip_literal":
		if a, err := netip.ParseAddr(d.host); err == nil && a.Is4() && d.port != 0 {
			return advice{d.host + ":" + strconv.Itoa(int(d.port)), "Better is the host's name: then what a connection carries can be checked against it."}
		}
		return advice{"", "A program inside has to use the host's name, not its address."}
	case "rule_denied":
		return advice{"", "A deny rule covers it, and deny beats allow: the rule has to go first."}
	case "metadata_address":
		return advice{"", "Cloud metadata addresses give credentials away. No rule allows them."}
	case "udp_refused", "icmp_refused", "ipv6_refused", "protocol_refused", "fragment", "foreign_source", "malformed", "other_dns_server":
		return advice{"", "Only TCP over IPv4 to a host that a rule names leaves the sandbox. No rule allows this."}
	case "unassigned_address":
		return advice{"", "The program used an address that it never looked up. It has to ask for the name first."}
	case "too_many_connections", "connection_rate", "too_many_half_open", "dns_rate", "name_table_full":
		return advice{"", "This is a bound on how much at once, no rule. It passes when there is less."}
	case "resolve_failed", "dial_failed", "dial_timeout", "dial_refused":
		return advice{"", "The rules allow it; the host or the way there failed. Try the same from this machine."}
	case "tls_sni_missing", "tls_sni_mismatch", "tls_ech", "tls_malformed", "http_host_mismatch", "http_absolute_form", "http_connect",
		"http2_plaintext", "http_after_server", "not_http", "unrecognized_protocol", "no_first_byte":
		return advice{"", "The host is allowed, but what the connection carried can't be held against the rule. Another rule doesn't change that."}
	}
	return advice{"", "No rule is known to allow this."}
}

// ruleFor is an allow rule for the decision's host and port, empty when it can't be one.
func ruleFor(d *decision, prefix string) string {
	if !plainName(d.host) {
		return ""
	}
	if d.kind == kindDNS || d.port == 0 || d.port == 53 && d.protocol == kindDNS {
		return prefix + d.host
	}
	return prefix + d.host + ":" + strconv.Itoa(int(d.port))
}

// plainName reports whether s is a name of letters, digits, hyphens and dots only.
func plainName(s string) bool {
	if s == "" || len(s) > 253 || s[0] == '-' || s[0] == '.' || !strings.Contains(s, ".") {
		return false
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' {
			continue
		}
		return false
	}
	return true
}
