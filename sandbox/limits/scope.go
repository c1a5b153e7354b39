package limits

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// ScopeStarter makes a delegated systemd scope around a running process.
type ScopeStarter interface {
	StartScope(ctx context.Context, unit string, pid int) error
}

// Systemd asks the service manager of the calling user, for root that of the machine, over the socket that systemctl uses.
type Systemd struct {
	// Socket is the manager's private socket; empty means where systemd puts it.
	Socket string
}

const (
	systemdName = "org.freedesktop.systemd1"
	systemdPath = dbus.ObjectPath("/org/freedesktop/systemd1")
	// The manager answers at once unless the machine is in trouble, and a session's start must not wait for it long.
	scopeTimeout = 3 * time.Second
)

// StartScope implements ScopeStarter. It returns when systemd has accepted the job, which is before the process is moved.
func (s Systemd) StartScope(ctx context.Context, unit string, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, scopeTimeout)
	defer cancel()
	conn, err := s.dial(ctx)
	if err != nil {
		return fmt.Errorf("reach systemd: %w", errors.Join(err, ctx.Err()))
	}
	defer func() { _ = conn.Close() }()
	type property struct {
		Name  string
		Value dbus.Variant
	}
	type auxiliary struct {
		Name       string
		Properties []property
	}
	properties := []property{
		{"Description", dbus.MakeVariant("patio session")},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})},
		// Below a delegated unit systemd touches nothing.
		{"Delegate", dbus.MakeVariant(true)},
		// A unit that failed would keep its name.
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	call := conn.Object(systemdName, systemdPath).CallWithContext(ctx, systemdName+".Manager.StartTransientUnit", 0,
		unit, "fail", properties, []auxiliary{})
	if call.Err != nil {
		return fmt.Errorf("start %s: %w", unit, call.Err)
	}
	return nil
}

// systemdSocket is where the calling user's manager listens.
func systemdSocket() string {
	if os.Geteuid() == 0 {
		return "/run/systemd/private"
	}
	runtimeDir := os.Getenv("XDG_RUNTIME_DIR")
	if runtimeDir == "" {
		runtimeDir = filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))
	}
	return filepath.Join(runtimeDir, "systemd", "private")
}

func (s Systemd) dial(ctx context.Context) (*dbus.Conn, error) {
	socket := s.Socket
	if socket == "" {
		socket = systemdSocket()
	}
	var dialer net.Dialer
	transport, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	// With the context, the connection is closed when that ends, which also ends a handshake that hangs.
	conn, err := dbus.NewConn(transport, dbus.WithContext(ctx))
	if err != nil {
		return nil, errors.Join(err, transport.Close())
	}
	// A direct connection to the manager: no bus in between, so no Hello.
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// awaitUnit waits until this process is in the version 2 cgroup of a systemd unit.
func awaitUnit(ctx context.Context, procRoot, unit string) error {
	ctx, cancel := context.WithTimeout(ctx, scopeTimeout)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		paths, err := ownPaths(procRoot)
		if err != nil {
			return true, err
		}
		if path := paths[""]; filepath.Base(path) != unit {
			return false, fmt.Errorf("this process is in %s, not in %s", path, unit)
		}
		return true, nil
	})
}

// selfPid is the calling process in procRoot.
func selfPid(procRoot string) (int, error) {
	target, err := os.Readlink(filepath.Join(procRoot, "self"))
	if err != nil {
		// A directory stands for it in a test's tree.
		return os.Getpid(), nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(target))
	if err != nil {
		return 0, fmt.Errorf("read own pid: %w", err)
	}
	return pid, nil
}
