package policy

// Reason is a stable, machine-readable code for why a decision fell as it did. Codes are never renamed.
type Reason string

// Reasons for allowing.
const (
	ReasonRule    Reason = "rule_allowed"
	ReasonService Reason = "service_allowed"
	ReasonGateway Reason = "gateway_dns"
	ReasonAsk     Reason = "ask_allowed"
)

// Reasons that follow from a question to a person.
const (
	ReasonAskDenied  Reason = "ask_denied"
	ReasonAskTimeout Reason = "ask_timeout"
	ReasonAskFull    Reason = "ask_full"
	ReasonPaused     Reason = "paused"
)

// Reasons for refusing a request to the MCP route or to the key broker.
const (
	ReasonMCPPath   Reason = "mcp_path"
	ReasonMCPMethod Reason = "mcp_method"
	ReasonMCPBody   Reason = "mcp_body"

	ReasonBrokerPath   Reason = "broker_path"
	ReasonBrokerMethod Reason = "broker_method"
	ReasonBrokerAuth   Reason = "broker_auth"
	ReasonBrokerBody   Reason = "broker_body"
	ReasonBrokerBusy   Reason = "broker_busy"
)

// Reasons for refusing that follow from the rules or from the request itself.
const (
	ReasonRuleDenied  Reason = "rule_denied"
	ReasonNoRule      Reason = "no_rule"
	ReasonPort        Reason = "port_not_allowed"
	ReasonEmptyPolicy Reason = "empty_policy"
	ReasonInvalidName Reason = "invalid_name"
	ReasonLiteral     Reason = "ip_literal"
	ReasonUnassigned  Reason = "unassigned_address"
	ReasonUDP         Reason = "udp_refused"
	ReasonOtherDNS    Reason = "other_dns_server"
	ReasonICMP        Reason = "icmp_refused"
	ReasonIPv6        Reason = "ipv6_refused"
	ReasonProtocol    Reason = "protocol_refused"
	ReasonRuleGone    Reason = "rule_withdrawn"

	ReasonForeignSource Reason = "foreign_source"
	ReasonFragment      Reason = "fragment"
)

// Reasons for refusing an address that a name resolved to.
const (
	ReasonLoopback     Reason = "loopback_address"
	ReasonUnspecified  Reason = "unspecified_address"
	ReasonLinkLocal    Reason = "link_local_address"
	ReasonPrivate      Reason = "private_address"
	ReasonShared       Reason = "carrier_nat_address"
	ReasonMetadata     Reason = "metadata_address"
	ReasonMulticast    Reason = "multicast_address"
	ReasonReserved     Reason = "reserved_address"
	ReasonDocs         Reason = "documentation_address"
	ReasonTransition   Reason = "transition_address"
	ReasonOwnAddress   Reason = "host_address"
	ReasonGatewayRange Reason = "gateway_address"
	ReasonMismatch     Reason = "address_not_in_rule"
	ReasonBadAddress   Reason = "invalid_address"
)

// Reasons found in what a connection carried.
const (
	ReasonSNIMissing   Reason = "tls_sni_missing"
	ReasonSNIMismatch  Reason = "tls_sni_mismatch"
	ReasonECH          Reason = "tls_ech"
	ReasonBadTLS       Reason = "tls_malformed"
	ReasonHostMismatch Reason = "http_host_mismatch"
	ReasonAbsoluteForm Reason = "http_absolute_form"
	ReasonConnect      Reason = "http_connect"
	ReasonHTTP2        Reason = "http2_plaintext"
	ReasonLateHTTP     Reason = "http_after_server"
	ReasonNotHTTP      Reason = "not_http"
	ReasonNeedsExact   Reason = "protocol_needs_exact_rule"
	ReasonNoProtocol   Reason = "unrecognized_protocol"
	ReasonIdle         Reason = "no_first_byte"
	ReasonHandshake    Reason = "handshake_failed"
)

// Reasons that are limits or failures, not choices of the policy.
const (
	ReasonTooManyConnections Reason = "too_many_connections"
	ReasonConnectionRate     Reason = "connection_rate"
	ReasonTooManyDialing     Reason = "too_many_half_open"
	ReasonDNSRate            Reason = "dns_rate"
	ReasonNamesFull          Reason = "name_table_full"
	ReasonMalformed          Reason = "malformed"
	ReasonResolveFailed      Reason = "resolve_failed"
	ReasonDialFailed         Reason = "dial_failed"
	ReasonDialTimeout        Reason = "dial_timeout"
	ReasonDialRefused        Reason = "dial_refused"
	ReasonClosing            Reason = "gateway_closing"
	ReasonProxyFailed        Reason = "proxy_failed"
)

var messages = map[Reason]string{
	ReasonRule:    "a rule allows this",
	ReasonService: "served by patio itself",
	ReasonGateway: "patio's own DNS",
	ReasonAsk:     "it was asked about, and allowed",

	ReasonAskDenied:  "it was asked about, and refused",
	ReasonAskTimeout: "it was asked about, and nobody answered in time",
	ReasonAskFull:    "no rule allows this host, and too many questions are open already",
	ReasonPaused:     "the session is paused",

	ReasonMCPPath:   "the MCP route carries only the configured paths",
	ReasonMCPMethod: "the MCP route carries only POST, GET and DELETE",
	ReasonMCPBody:   "the request to the MCP server is too large",

	ReasonBrokerPath:   "the key broker carries only the paths of this provider's API",
	ReasonBrokerMethod: "the key broker carries only the methods of this provider's API",
	ReasonBrokerAuth:   "the request has not the key that the key broker gave to this session",
	ReasonBrokerBody:   "the request to the key broker is too large",
	ReasonBrokerBusy:   "too many requests are at the key broker at once",

	ReasonRuleDenied:  "a deny rule covers this",
	ReasonNoRule:      "no rule allows this host",
	ReasonPort:        "the host is allowed, but not on this port",
	ReasonEmptyPolicy: "the policy has no rules, so everything is denied",
	ReasonInvalidName: "not a usable host name",
	ReasonLiteral:     "connections to bare addresses are refused: use the host's name",
	ReasonUnassigned:  "this address stands for no name: look the name up first",
	ReasonUDP:         "UDP is refused, except DNS at the gateway",
	ReasonOtherDNS:    "only the gateway's own DNS may be asked",
	ReasonICMP:        "ICMP is refused",
	ReasonIPv6:        "IPv6 is refused",
	ReasonProtocol:    "this protocol is refused",
	ReasonRuleGone:    "the rule that allowed this connection was withdrawn",

	ReasonForeignSource: "the packet's source is not the sandbox's address",
	ReasonFragment:      "fragmented packets are refused",

	ReasonLoopback:     "the name resolves to a loopback address of the host",
	ReasonUnspecified:  "the name resolves to the unspecified address",
	ReasonLinkLocal:    "the name resolves to a link-local address",
	ReasonPrivate:      "the name resolves to a private address: a private: rule allows that on purpose",
	ReasonShared:       "the name resolves to a carrier-grade NAT address: a private: rule allows that on purpose",
	ReasonMetadata:     "the name resolves to a cloud metadata address, which is never allowed",
	ReasonMulticast:    "the name resolves to a multicast address",
	ReasonReserved:     "the name resolves to a reserved address",
	ReasonDocs:         "the name resolves to a documentation address",
	ReasonTransition:   "the name resolves to an IPv6 transition address",
	ReasonOwnAddress:   "the name resolves to an address of this host: a private: rule allows that on purpose",
	ReasonGatewayRange: "the name resolves into the sandbox's own address range",
	ReasonMismatch:     "the address is not the one the rule names",
	ReasonBadAddress:   "the name resolves to an unusable address",

	ReasonSNIMissing:   "the TLS ClientHello names no server",
	ReasonSNIMismatch:  "the TLS ClientHello names another server",
	ReasonECH:          "the TLS ClientHello is encrypted (ECH), so the server's name can't be checked",
	ReasonBadTLS:       "the TLS ClientHello can't be read",
	ReasonHostMismatch: "the request's Host is another one than the connection's",
	ReasonAbsoluteForm: "requests in absolute form (as to a proxy) are refused",
	ReasonConnect:      "CONNECT is refused",
	ReasonHTTP2:        "HTTP/2 without TLS is refused, its Host can't be checked",
	ReasonLateHTTP:     "the client spoke HTTP or TLS after the server had spoken",
	ReasonNotHTTP:      "port 80 carries only HTTP or TLS",
	ReasonNeedsExact:   "other protocols than TLS and HTTP need a rule with the exact name",
	ReasonNoProtocol:   "the first bytes are of no recognizable protocol",
	ReasonIdle:         "the client sent nothing",
	ReasonHandshake:    "the TCP handshake was not finished",

	ReasonTooManyConnections: "too many open connections",
	ReasonConnectionRate:     "too many connections in a short time",
	ReasonTooManyDialing:     "too many connections are being set up",
	ReasonDNSRate:            "too many DNS queries in a short time",
	ReasonNamesFull:          "too many different names were looked up in this session",
	ReasonMalformed:          "malformed packet or message",
	ReasonResolveFailed:      "the host could not resolve the name",
	ReasonDialFailed:         "the destination could not be reached",
	ReasonDialTimeout:        "the destination did not answer in time",
	ReasonDialRefused:        "the destination refused the connection",
	ReasonClosing:            "the gateway is closing",
	ReasonProxyFailed:        "the proxy that this machine needs failed or refused",
}

// Message gives the reason as text for people.
func (r Reason) Message() string {
	if m, ok := messages[r]; ok {
		return m
	}
	return string(r)
}
