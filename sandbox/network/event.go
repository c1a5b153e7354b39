package network

import (
	"encoding/json"
	"net/netip"
	"time"

	"patio/sandbox/network/policy"
)

// Kind says what an Event is about.
type Kind string

// The kinds of events.
const (
	// KindDNS is a decision on a DNS question.
	KindDNS Kind = "dns"
	// KindConnection is a decision on a TCP connection; an allowed one is followed by a KindEnd with the same ID.
	KindConnection Kind = "connection"
	// KindRequest is a refused HTTP request on an allowed connection.
	KindRequest Kind = "request"
	// KindPacket is a refused packet that is no TCP connection: UDP, ICMP, IPv6, malformed ones.
	KindPacket Kind = "packet"
	// KindEnd is the end of an allowed connection.
	KindEnd Kind = "end"
	// KindDropped says that Count events were lost because Record was too slow.
	KindDropped Kind = "dropped"
)

// Event is one decision, or the end of one connection. Equal refusals within a second are one event with a Count.
type Event struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// ID is the connection's, unique within the gateway; empty when there was no connection.
	ID      string         `json:"id,omitempty"`
	Verdict policy.Verdict `json:"verdict"`
	// Host is the name, or the address when the sandbox used none.
	Host     string          `json:"host,omitempty"`
	Port     uint16          `json:"port,omitempty"`
	Protocol policy.Protocol `json:"protocol,omitempty"`
	Rule     string          `json:"rule,omitempty"`
	Reason   policy.Reason   `json:"reason,omitempty"`
	Message  string          `json:"message,omitempty"`
	// Address is what was dialed, with the port.
	Address netip.AddrPort `json:"address,omitzero"`
	// BytesIn came into the sandbox, BytesOut left it; both are payload, without headers.
	BytesIn  int64 `json:"bytes_in"`
	BytesOut int64 `json:"bytes_out"`
	// Duration is how long the connection was open.
	Duration time.Duration `json:"-"`
	// Count is how many equal events this one stands for; at the end of an HTTP connection, its requests.
	Count int64 `json:"count,omitempty"`
}

// MarshalJSON writes the duration as duration_ms.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return json.Marshal(struct {
		plain
		Milliseconds int64 `json:"duration_ms,omitempty"`
	}{plain(e), e.Duration.Milliseconds()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(data []byte) error {
	type plain Event
	wire := struct {
		*plain
		Milliseconds int64 `json:"duration_ms"`
	}{plain: (*plain)(e)}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	e.Duration = time.Duration(wire.Milliseconds) * time.Millisecond
	return nil
}
