package sandbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/sandbox"
	"patio/sandbox/limits"
	"patio/sandbox/mounts"
	"patio/sandbox/network"
	"patio/sandbox/network/policy"
	"patio/sandbox/runsc"
	"patio/sandbox/sandboxtest"
)

// box is a sandbox of a test, with what it printed.
type box struct {
	*sandbox.Sandbox
	dir, workspace string
	out            *output
	mu             sync.Mutex
	events         []network.Event
}

type output struct {
	done chan struct{}
	buf  bytes.Buffer
}

func (o *output) String() string { <-o.done; return o.buf.String() }

// start runs a shell script in a sandbox with a workspace.
func start(t *testing.T, tools sandboxtest.Tools, script string, change ...func(*sandbox.Options)) *box {
	t.Helper()
	host, err := limits.HostInfo("")
	require.NoError(t, err)
	b := &box{dir: t.TempDir(), workspace: filepath.Join(t.TempDir(), "work space 'é'"), out: &output{done: make(chan struct{})}}
	require.NoError(t, os.Mkdir(b.workspace, 0o755))
	id := "test-" + strings.ToLower(rand.Text()[:10])
	sandboxtest.CheckLeaks(t, func() []string { return []string{id} })
	live, err := policy.NewLive()
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	go func() {
		defer close(b.out.done)
		_, _ = io.Copy(&b.out.buf, r)
		_ = r.Close()
	}()
	o := sandbox.Options{
		Plan: sandbox.Plan{
			ID: id, Image: sandbox.Image{Path: tools.Image.Path},
			Argv: []string{"/bin/bash", "-c", script}, Cwd: b.workspace,
			Env:      []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + sandbox.Home, "CANARY=patio"},
			Owner:    sandbox.Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
			Mounts:   []mounts.Mount{mounts.At(b.workspace, mounts.ReadWrite, "the workspace")},
			Limits:   limits.Default(host.Memory, host.CPUs),
			Platform: runsc.Systrap,
		},
		Dir: b.dir, Executable: tools.Executable, Runsc: tools.Runsc,
		Stdin: null, Stdout: w, Stderr: w,
		Network: network.Config{Policy: live, Record: func(e network.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events = append(b.events, e)
		}},
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.Sandbox, err = sandbox.Start(ctx, o)
	require.NoError(t, w.Close())
	require.NoError(t, null.Close())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func (b *box) wait(t *testing.T) syscall.WaitStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, err := b.Wait(ctx)
	require.NoError(t, err)
	return status
}

func TestIdentityInside(t *testing.T) {
	tools := sandboxtest.Require(t)
	b := start(t, tools, `uname -r; id -u; id -g; grep -E '^(Cap|NoNewPrivs)' /proc/self/status; pwd; echo $PPID; cat /proc/1/comm
		touch made-inside; mkdir d; echo x > d/f; chmod 600 d/f; hostname; env | sort; exit 7`)
	require.Equal(t, 7, b.wait(t).ExitStatus())
	out := b.out.String()
	require.Contains(t, out, "gvisor\n1000\n1000\n")
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		require.Contains(t, out, set+":\t0000000000000000\n")
	}
	require.Contains(t, out, "NoNewPrivs:\t1\n")
	require.Contains(t, out, "\n"+b.workspace+"\n")
	require.Contains(t, out, "CANARY=patio\n")
	require.NotContains(t, out, "GOPATH")
	for _, name := range []string{"made-inside", "d", "d/f"} {
		fi, err := os.Stat(filepath.Join(b.workspace, name))
		require.NoError(t, err)
		require.EqualValues(t, os.Getuid(), fi.Sys().(*syscall.Stat_t).Uid, name)
		require.EqualValues(t, os.Getgid(), fi.Sys().(*syscall.Stat_t).Gid, name)
	}
}

func TestNothingElseOfTheHost(t *testing.T) {
	tools := sandboxtest.Require(t)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("canary"), 0o644))
	b := start(t, tools, `
		cat "$SECRET"; cat link; ls /proc/1/root/root
		for d in / /usr /etc /opt /usr/local/bin; do touch "$d/x" && echo "WROTE $d"; done
		mount -t tmpfs x /mnt && echo MOUNTED; unshare -U true && echo UNSHARED; unshare -n true && echo UNSHARED
		find / -xdev -perm /6000 -print 2>/dev/null
		ls -A "$HOME" | wc -l; python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' 2>/dev/null && echo RAWSOCKET
		exit 0`, func(o *sandbox.Options) {
		o.Plan.Env = append(o.Plan.Env, "SECRET="+secret)
		require.NoError(t, os.Symlink(secret, filepath.Join(o.Plan.Cwd, "link")))
	})
	b.wait(t)
	out := b.out.String()
	for _, word := range []string{"canary", "WROTE", "MOUNTED", "RAWSOCKET"} {
		require.NotContains(t, out, word)
	}
	require.Contains(t, out, "\n0\n", "the home directory is empty")
}

func TestNetwork(t *testing.T) {
	tools := sandboxtest.Require(t)
	b := start(t, tools, `
		curl -sS -m 5 http://model.test.internal/hello; echo " rc=$?"
		time -p curl -sS -m 5 https://example.com; echo "refused rc=$?"
		curl -sS -m 5 http://192.0.2.1/; echo "literal rc=$?"
		ip addr 2>/dev/null; cat /proc/net/dev | grep -c eth0; cat /etc/resolv.conf`, func(o *sandbox.Options) {
		o.Network.Services = map[string]network.Service{"model.test.internal": {Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "hello from "+r.Host)
		})}}
	})
	b.wait(t)
	out := b.out.String()
	require.Contains(t, out, "hello from model.test.internal rc=0")
	require.Contains(t, out, "refused rc=6", "an unknown name fails at once")
	require.Contains(t, out, "literal rc=7", "an address is refused at once")
	require.NoError(t, b.Close())
	b.mu.Lock()
	defer b.mu.Unlock()
	var denied []string
	for _, e := range b.events {
		if e.Verdict == policy.Deny {
			denied = append(denied, string(e.Kind)+" "+e.Host)
			require.NotEmpty(t, e.Reason)
		}
	}
	require.Contains(t, denied, "dns example.com")
	require.Contains(t, denied, "connection 192.0.2.1")
}

func TestExecAndOutput(t *testing.T) {
	tools := sandboxtest.Require(t)
	b := start(t, tools, "sleep infinity")
	out, err := b.Output(t.Context(), "/bin/sh", "-c", "pwd; id -u; echo $CANARY")
	require.NoError(t, err)
	require.Equal(t, b.workspace+"\n1000\npatio\n", string(out))
	_, err = b.Output(t.Context(), "/bin/sh", "-c", "echo oops >&2; exit 3")
	require.ErrorContains(t, err, "exit status 3: oops")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = b.Output(ctx, "sleep", "12345")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	out, err = b.Output(t.Context(), "ps", "-e", "-o", "args=")
	require.NoError(t, err)
	require.NotContains(t, string(out), "12345", "a program that nobody waits for is killed")
	require.NoError(t, b.Signal(t.Context(), "KILL"))
	require.Equal(t, 128+int(syscall.SIGKILL), b.wait(t).ExitStatus())
}

func TestEvents(t *testing.T) {
	tools := sandboxtest.Require(t)
	b := start(t, tools, "while :; do :; done")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var last sandbox.Event
	err := b.Events(ctx, 1, func(e sandbox.Event) {
		if last = e; e.Data.CPU.Usage.Total > 0 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, last.Data.Memory.Usage.Usage)
	require.EqualValues(t, 1, last.Data.Pids.Current)
}

func TestCloseKillsEverything(t *testing.T) {
	tools := sandboxtest.Require(t)
	b := start(t, tools, `trap '' TERM HUP INT; for i in 1 2 3; do (trap '' TERM; sleep infinity) & done; echo up; touch up; wait`)
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(b.workspace, "up")); return err == nil }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "a second close is nothing")
	require.Equal(t, "up\n", b.out.String())
	entries, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestStartFailsAndLeavesNothing(t *testing.T) {
	tools := sandboxtest.Require(t)
	for name, tc := range map[string]struct {
		change func(*sandbox.Options)
		want   string
	}{
		"no such program": {func(o *sandbox.Options) { o.Plan.Argv = []string{"/no/such/program"} }, "/no/such/program"},
		"no such image":   {func(o *sandbox.Options) { o.Plan.Image.Path = "/no/such/image" }, "/no/such/image"},
		"no such mount":   {func(o *sandbox.Options) { o.Plan.Mounts[0].Source += "-gone" }, "-gone"},
		"no such runsc":   {func(o *sandbox.Options) { o.Runsc = "/no/such/runsc" }, "/no/such/runsc"},
	} {
		t.Run(name, func(t *testing.T) {
			id := "fails-" + strings.ToLower(rand.Text()[:10])
			sandboxtest.CheckLeaks(t, func() []string { return []string{id} })
			host, err := limits.HostInfo("")
			require.NoError(t, err)
			live, err := policy.NewLive()
			require.NoError(t, err)
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			require.NoError(t, err)
			defer func() { require.NoError(t, null.Close()) }()
			workspace, dir := t.TempDir(), t.TempDir()
			o := sandbox.Options{
				Plan: sandbox.Plan{
					ID: id, Image: sandbox.Image{Path: tools.Image.Path}, Argv: []string{"/bin/true"}, Cwd: workspace,
					Owner:  sandbox.Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
					Mounts: []mounts.Mount{mounts.At(workspace, mounts.ReadWrite, "the workspace")}, Limits: limits.Default(host.Memory, host.CPUs), Platform: runsc.Systrap,
				},
				Dir: dir, Executable: tools.Executable, Runsc: tools.Runsc, Stdin: null, Stdout: null, Stderr: null,
				Network: network.Config{Policy: live},
			}
			tc.change(&o)
			_, err = sandbox.Start(t.Context(), o)
			require.ErrorContains(t, err, tc.want)
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}
