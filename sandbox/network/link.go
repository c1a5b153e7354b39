package network

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// link is the gateway's end of the Ethernet link, and the first filter: the TCP/IP stack only ever sees whole IPv4
// packets from the sandbox's address that carry TCP, or UDP to the gateway's DNS. It answers every ARP request, so that
// nothing the sandbox asks for waits for a neighbour.
//
// It is written here, not taken from the stack's own file descriptor endpoint, because that one stops for good at the first frame that is
// too short or meant for another link address.
type link struct {
	device device
	mtu    atomic.Uint32
	refuse func(refusal) // called for each refused packet

	mu         sync.RWMutex
	dispatcher stack.NetworkDispatcher

	peer    atomic.Pointer[tcpip.LinkAddress] // who sent the last frame
	stopped atomic.Bool
	reader  sync.WaitGroup
	stats   linkStats
}

type linkStats struct {
	receivedBytes, receivedPackets atomic.Int64
	sentBytes, sentPackets, unsent atomic.Int64
	ignoredPackets                 atomic.Int64
}

var _ stack.LinkEndpoint = (*link)(nil)

var gatewayLink = tcpip.LinkAddress(GatewayMAC)

func newLink(d device, mtu int, refuse func(refusal)) *link {
	l := &link{device: d, refuse: refuse}
	l.mtu.Store(uint32(mtu))
	return l
}

// run reads frames until the device fails or stop is called; failed gets the error in the first case.
func (l *link) run(failed func(error)) {
	l.reader.Go(func() {
		frame := make([]byte, header.EthernetMinimumSize+DefaultMTU+1)
		for {
			n, err := l.device.Read(frame)
			if err != nil {
				if !l.stopped.Load() {
					failed(fmt.Errorf("read from TAP: %w", err))
				}
				return
			}
			l.receive(frame[:n])
		}
	})
}

// stop closes the device and waits for the reader.
func (l *link) stop() error {
	l.stopped.Store(true)
	err := l.device.Close()
	l.reader.Wait()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// receive handles one frame of the sandbox. The frame is only read until it returns.
func (l *link) receive(frame []byte) {
	l.stats.receivedPackets.Add(1)
	l.stats.receivedBytes.Add(int64(len(frame)))
	if len(frame) < header.EthernetMinimumSize {
		l.refuse(malformed())
		return
	}
	eth := header.Ethernet(frame)
	to := eth.DestinationAddress()
	if to != gatewayLink && to[0]&1 == 0 {
		l.stats.ignoredPackets.Add(1)
		return
	}
	l.learn(frame[header.EthernetAddressSize : 2*header.EthernetAddressSize])
	payload := frame[header.EthernetMinimumSize:]
	var found finding
	switch eth.Type() {
	case header.ARPProtocolNumber:
		l.answerARP(payload)
		return
	case header.IPv4ProtocolNumber:
		found = inspect4(payload)
	case header.IPv6ProtocolNumber:
		found = inspect6(payload)
	default:
		found = finding{ignore: true}
	}
	switch {
	case found.pass:
		l.deliver(payload)
	case found.ignore:
		l.stats.ignoredPackets.Add(1)
	default:
		l.refuse(found.refusal)
		if found.answer != nil {
			l.write([][]byte{l.frameTo(header.IPv4ProtocolNumber, found.answer())})
		}
	}
}

func (l *link) deliver(payload []byte) {
	l.mu.RLock()
	d := l.dispatcher
	l.mu.RUnlock()
	if d == nil {
		return
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(payload)})
	defer pkt.DecRef()
	pkt.NetworkProtocolNumber = header.IPv4ProtocolNumber
	d.DeliverNetworkPacket(header.IPv4ProtocolNumber, pkt)
}

// learn remembers the sandbox's link address. There is one station on this link, so a new one replaces the old.
func (l *link) learn(mac []byte) {
	if mac[0]&1 != 0 {
		return
	}
	if old := l.peer.Load(); old != nil && string(*old) == string(mac) {
		return
	}
	peer := tcpip.LinkAddress(bytes.Clone(mac))
	l.peer.Store(&peer)
}

func (l *link) peerAddress() tcpip.LinkAddress {
	if p := l.peer.Load(); p != nil {
		return *p
	}
	return header.EthernetBroadcastAddress
}

// answerARP says that every address is the gateway's, but the sandbox's own.
func (l *link) answerARP(payload []byte) {
	arp := header.ARP(payload)
	if !arp.IsValid() || arp.Op() != header.ARPRequest {
		l.stats.ignoredPackets.Add(1)
		return
	}
	own := SandboxAddress.Addr().As4()
	if bytes.Equal(arp.ProtocolAddressTarget(), own[:]) {
		l.stats.ignoredPackets.Add(1) // the sandbox looks whether its address is free
		return
	}
	reply := header.ARP(make([]byte, header.ARPSize))
	reply.SetIPv4OverEthernet()
	reply.SetOp(header.ARPReply)
	copy(reply.HardwareAddressSender(), gatewayLink)
	copy(reply.ProtocolAddressSender(), arp.ProtocolAddressTarget())
	copy(reply.HardwareAddressTarget(), arp.HardwareAddressSender())
	copy(reply.ProtocolAddressTarget(), arp.ProtocolAddressSender())
	l.write([][]byte{l.frameTo(header.ARPProtocolNumber, reply)})
}

func (l *link) frameTo(protocol tcpip.NetworkProtocolNumber, payload []byte) []byte {
	frame := make([]byte, header.EthernetMinimumSize+len(payload))
	header.Ethernet(frame).Encode(&header.EthernetFields{SrcAddr: gatewayLink, DstAddr: l.peerAddress(), Type: protocol})
	copy(frame[header.EthernetMinimumSize:], payload)
	return frame
}

func (l *link) write(parts [][]byte) {
	if err := l.device.WriteFrame(parts); err != nil {
		l.stats.unsent.Add(1)
		return
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	l.stats.sentPackets.Add(1)
	l.stats.sentBytes.Add(int64(size))
}

func (l *link) count(c *Counters) {
	c.ReceivedBytes, c.ReceivedPackets = l.stats.receivedBytes.Load(), l.stats.receivedPackets.Load()
	c.SentBytes, c.SentPackets = l.stats.sentBytes.Load(), l.stats.sentPackets.Load()
	c.UnsentPackets, c.IgnoredPackets = l.stats.unsent.Load(), l.stats.ignoredPackets.Load()
}

// WritePackets implements stack.LinkWriter. A packet that can't be written is lost, it is no error of the sender's.
func (l *link) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	all := pkts.AsSlice()
	for _, pkt := range all {
		l.write(pkt.AsSlices())
	}
	return len(all), nil
}

// Attach implements stack.NetworkLinkEndpoint.
func (l *link) Attach(d stack.NetworkDispatcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dispatcher = d
}

// IsAttached implements stack.NetworkLinkEndpoint.
func (l *link) IsAttached() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.dispatcher != nil
}

// AddHeader implements stack.NetworkLinkEndpoint.
func (l *link) AddHeader(pkt *stack.PacketBuffer) {
	eth := header.Ethernet(pkt.LinkHeader().Push(header.EthernetMinimumSize))
	eth.Encode(&header.EthernetFields{SrcAddr: gatewayLink, DstAddr: l.peerAddress(), Type: pkt.NetworkProtocolNumber})
}

// Capabilities implements stack.NetworkLinkEndpoint. What comes in was written by the kernel or gVisor into this
// machine's memory: summing it up again would be the largest cost of a download.
func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

// MTU implements stack.NetworkLinkEndpoint.
func (l *link) MTU() uint32 { return l.mtu.Load() }

// SetMTU implements stack.NetworkLinkEndpoint.
func (l *link) SetMTU(mtu uint32) { l.mtu.Store(mtu) }

// MaxHeaderLength implements stack.NetworkLinkEndpoint.
func (l *link) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// LinkAddress implements stack.NetworkLinkEndpoint.
func (l *link) LinkAddress() tcpip.LinkAddress { return gatewayLink }

// SetLinkAddress implements stack.NetworkLinkEndpoint; the gateway's address is fixed.
func (l *link) SetLinkAddress(tcpip.LinkAddress) {}

// ARPHardwareType implements stack.NetworkLinkEndpoint.
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// ParseHeader implements stack.NetworkLinkEndpoint; receive has parsed it.
func (l *link) ParseHeader(*stack.PacketBuffer) bool { return true }

// Wait implements stack.NetworkLinkEndpoint; stop waits.
func (l *link) Wait() {}

// Close implements stack.NetworkLinkEndpoint; the device is closed by stop.
func (l *link) Close() {}

// SetOnCloseAction implements stack.NetworkLinkEndpoint.
func (l *link) SetOnCloseAction(func()) {}
