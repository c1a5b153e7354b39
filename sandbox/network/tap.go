package network

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// OpenTAP makes a TAP device of that name in the network namespace of the calling thread, and gives its descriptor,
// which New takes. The device lives as long as the descriptor is open somewhere. The caller must have locked its goroutine to the
// thread, when the thread is in a namespace of its own.
func OpenTAP(name string) (*os.File, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return nil, fmt.Errorf("open TAP %q: the name must have 1 to 15 characters: %w", name, err)
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open TAP %q: /dev/net/tun: %w: load the kernel module tun, or pass the device into this container", name, err)
	}
	// The poller takes the descriptor only after it became a device, so it is wrapped last.
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return nil, fmt.Errorf("open TAP %q: create device: %w", name, errors.Join(err, unix.Close(fd)))
	}
	return os.NewFile(uintptr(fd), "tap:"+name), nil
}

// Configure makes a TAP of the calling thread's network namespace ready for a sandbox: link address, MTU (DefaultMTU
// when zero), address, default route to the gateway, and no IPv6. The loopback device is brought up as well. gVisor
// copies all of it when it starts, and takes the address off the device: do it anew for every start.
func Configure(name string, mtu int) error {
	if err := configure(name, mtu); err != nil {
		return fmt.Errorf("configure TAP %q: %w", name, err)
	}
	return nil
}

func configure(name string, mtu int) error {
	if mtu == 0 {
		mtu = DefaultMTU
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	loopback, err := handle.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find loopback: %w", err)
	}
	if err := handle.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	link, err := handle.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find device: %w", err)
	}
	// The device must not give itself a link-local address, which gVisor would copy. A kernel without IPv6 knows no such
	// setting.
	err = handle.LinkSetIP6AddrGenMode(link, nl.IN6_ADDR_GEN_MODE_NONE)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("switch IPv6 off: %w", err)
	}
	if err := handle.LinkSetHardwareAddr(link, SandboxMAC); err != nil {
		return fmt.Errorf("set link address: %w", err)
	}
	if err := handle.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("set MTU %d: %w", mtu, err)
	}
	if err := handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up: %w", err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{
		IP: SandboxAddress.Addr().AsSlice(), Mask: net.CIDRMask(SandboxAddress.Bits(), 32),
	}}
	if err := handle.AddrReplace(link, address); err != nil {
		return fmt.Errorf("set address %s: %w", SandboxAddress, err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: GatewayAddress.AsSlice()}
	if err := handle.RouteReplace(route); err != nil {
		return fmt.Errorf("set default route: %w", err)
	}
	return nil
}
