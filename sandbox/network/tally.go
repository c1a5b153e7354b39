package network

import "sync/atomic"

// tallies are the totals that Counters reports.
type tallies struct {
	connections, deniedConnections atomic.Int64
	dnsQueries, deniedDNS          atomic.Int64
	deniedPackets                  atomic.Int64
}

func (t *tallies) counters() Counters {
	return Counters{
		Connections:       t.connections.Load(),
		DeniedConnections: t.deniedConnections.Load(),
		DNSQueries:        t.dnsQueries.Load(),
		DeniedDNSQueries:  t.deniedDNS.Load(),
		DeniedPackets:     t.deniedPackets.Load(),
	}
}
