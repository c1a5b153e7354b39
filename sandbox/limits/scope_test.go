package limits

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// starter stands for systemd: it moves the process into a scope, as that does some time after it has answered.
type starter struct {
	f     *fakeMachine
	err   error
	units []string
}

func (s *starter) StartScope(_ context.Context, unit string, pid int) error {
	if s.err != nil {
		return s.err
	}
	s.units = append(s.units, unit)
	path := "user.slice/user-1000.slice/user@1000.service/app.slice/" + unit
	scope := s.f.group(path, "", "")
	s.f.file(filepath.Join(scope, "cgroup.controllers"), "cpu memory pids\n")
	s.f.file(filepath.Join(scope, "cgroup.procs"), "")
	if err := s.f.Write(filepath.Join(scope, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
		return err
	}
	s.f.own = []string{"0::/" + path}
	s.f.save()
	return nil
}

func TestScopeFromSystemd(t *testing.T) {
	f := newFake(t)
	app := desktop(f)
	f.group("user.slice/user-1000.slice/session-3.scope", "", "77\n")
	f.own = []string{"0::/user.slice/user-1000.slice/session-3.scope"}
	f.save()
	systemd := &starter{f: f}
	options := f.options(testLimits)
	options.Systemd = systemd
	group, report, err := Open(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, ModeV2Scope, report.Mode)
	require.Equal(t, []string{"patio-s1.scope"}, systemd.units)
	scope := filepath.Join(app, "patio-s1.scope")
	require.Equal(t, []string{filepath.Join(scope, "patio", "s1")}, report.Paths)
	require.Empty(t, report.Unenforced())
	require.Empty(t, report.Notes)
	require.Empty(t, f.read(filepath.Join(scope, "cgroup.procs")), "processes in the scope itself")
	require.Equal(t, strconv.Itoa(os.Getpid()), f.read(filepath.Join(scope, "supervisor", "cgroup.procs")))
	require.NoError(t, group.Close())
	require.NoDirExists(t, filepath.Join(scope, "patio"))
}

func TestScopeRefusedBySystemd(t *testing.T) {
	f := newFake(t)
	app := desktop(f)
	options := f.options(testLimits)
	options.Systemd = &starter{f: f, err: errors.New("no manager")}
	group, report, err := Open(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, []string{"no scope from systemd: no manager"}, report.Notes)
	require.Equal(t, []string{filepath.Join(app, "patio", "s1")}, report.Paths)
	require.Empty(t, report.Unenforced())
	require.NoError(t, group.Close())
}

func TestSystemdSocketMissing(t *testing.T) {
	err := Systemd{Socket: filepath.Join(t.TempDir(), "private")}.StartScope(t.Context(), "patio-x.scope", os.Getpid())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "reach systemd")
}

// A manager that accepts and says nothing must not hold up a session's start.
func TestSystemdSilent(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "private")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		if conn, err := listener.Accept(); err == nil {
			accepted <- conn
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = Systemd{Socket: socket}.StartScope(ctx, "patio-x.scope", os.Getpid())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, listener.Close())
	if conn := <-accepted; conn != nil {
		require.NoError(t, conn.Close())
	}
}
