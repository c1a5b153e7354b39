package network

import (
	"net/netip"
	"sync"
)

// names gives each allowed name an address. An address is given once and never again to another name: a program that
// kept one would otherwise reach somebody else with it.
type names struct {
	pool  netip.Prefix
	limit int // of names that only a wildcard allows

	mu       sync.RWMutex
	next     netip.Addr
	wildcard int
	byName   map[string]netip.Addr
	byAddr   map[netip.Addr]string
}

func newNames(pool netip.Prefix, limit int) *names {
	return &names{
		pool: pool, limit: limit, next: pool.Masked().Addr().Next(), // the first is the network's own
		byName: make(map[string]netip.Addr), byAddr: make(map[netip.Addr]string),
	}
}

// assign gives the address of a name. Names that only a wildcard allows have a limit of their own, so that looking up
// ever new ones can't take the addresses of those that rules name exactly. It fails when the table is full.
func (n *names) assign(name string, exact bool) (netip.Addr, bool) {
	n.mu.RLock()
	addr, ok := n.byName[name]
	n.mu.RUnlock()
	if ok {
		return addr, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr, ok := n.byName[name]; ok {
		return addr, true
	}
	if !n.pool.Contains(n.next) || !exact && n.wildcard >= n.limit {
		return netip.Addr{}, false
	}
	addr, n.next = n.next, n.next.Next()
	if !exact {
		n.wildcard++
	}
	n.byName[name], n.byAddr[addr] = addr, name
	return addr, true
}

// name gives the name an address stands for.
func (n *names) name(addr netip.Addr) (string, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, ok := n.byAddr[addr]
	return name, ok
}

func (n *names) len() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.byName)
}
