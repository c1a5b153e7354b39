package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tmux is a terminal that can be looked at.
type tmux struct {
	t      *testing.T
	socket string
}

// terminal runs the binary in tmux, with nothing of the user's own configuration.
func (p *patio) terminal(width, height string, args ...string) *tmux {
	p.t.Helper()
	path, err := exec.LookPath("tmux")
	require.NoError(p.t, err)
	m := &tmux{t: p.t, socket: filepath.Join(filepath.Dir(p.state), "tmux")}
	// What it says at its end stays to be read, for cat waits for the terminal's end.
	cmd := exec.CommandContext(p.t.Context(), path, "-S", m.socket, "-f", os.DevNull, "new-session", "-d", "-x", width, "-y", height, "-s", "ui",
		"sh", "-c", strings.Join(append([]string{p.exe}, args...), " ")+`; echo "exit=$?"; exec cat`)
	cmd.Env, cmd.Dir = append(p.env, "TERM=xterm-256color", "SHELL=/bin/sh"), p.workspace
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, string(out))
	p.t.Cleanup(func() { _ = exec.Command(path, "-S", m.socket, "kill-server").Run() })
	return m
}

func (m *tmux) do(args ...string) string {
	m.t.Helper()
	out, err := exec.CommandContext(m.t.Context(), "tmux", append([]string{"-S", m.socket}, args...)...).CombinedOutput()
	require.NoError(m.t, err, string(out))
	return string(out)
}

func (m *tmux) keys(names ...string) { m.do(append([]string{"send-keys", "-t", "ui"}, names...)...) }

func (m *tmux) screen() string { return m.do("capture-pane", "-p", "-t", "ui") }

// shows waits until the screen has all of these.
func (m *tmux) shows(texts ...string) {
	m.t.Helper()
	var screen string
	ok := func() bool {
		screen = m.screen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			require.FailNow(m.t, "the screen doesn't show it", "%q in\n%s", texts, screen)
		case <-tick.C:
		}
	}
}

// A person works in the terminal UI: real Pi, real gVisor, a real terminal.
func TestTerminalUI(t *testing.T) {
	p := newPatio(t)
	id := strings.TrimSpace(p.ok("new", "--model", "demo/tour", "--name", "tour", "-q"))
	m := p.terminal("120", "40", "attach", id)
	m.shows("tour", "Chat", "Traffic", "idle")
	m.keys("-l", "RUN: echo from-$((40+2))-inside")
	m.keys("Enter")
	m.shows("from-42-inside")
	m.keys("Escape")
	m.shows("i write") // an escape with a key right behind it would be alt
	m.keys("2")
	m.shows("message_end", "tool_execution_end")
	m.keys("5")
	m.shows(p.workspace)
	m.keys("7")
	m.shows("1 process", "pi")
	m.keys("C-]")
	m.shows("1 session goes on", "exit=0")
	require.Contains(t, p.ok("ls"), id, "leaving ends nothing")
	p.ok("stop", id)
}

// The list of sessions follows what happens elsewhere.
func TestTerminalUISessions(t *testing.T) {
	p := newPatio(t)
	m := p.terminal("100", "30")
	m.shows("Sessions", "new session")
	id := strings.TrimSpace(p.ok("new", "--model", "demo/tour", "--name", "elsewhere", "-q"))
	m.shows("elsewhere", "idle")
	m.keys("x")
	m.shows("Stop elsewhere?")
	m.keys("y")
	m.shows("elsewhere has ended")
	require.NotContains(t, p.ok("ls", "-q"), id)
	m.keys("q")
	m.shows("exit=0")
}
