package tui

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"
	"github.com/stretchr/testify/require"

	"patio/tui/panetest"
)

// tty maps line feeds as a terminal's driver does, which isn't there.
type tty struct{ w io.Writer }

func (t tty) Write(p []byte) (int, error) {
	_, err := t.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), err
}

// lazy is the screen when a failure is told, not before.
type lazy struct{ screen *vt.SafeEmulator }

func (l lazy) String() string { return text(l.screen) }

// text is the screen without its styling: String of the emulator takes no lock.
func text(screen *vt.SafeEmulator) string { return panetest.Plain(screen.Render()) }

// The program on a terminal emulator: what it writes becomes the screens that are meant,
// from the first one to the terminal as it was before.
func TestOnATerminal(t *testing.T) {
	u := newUI(t, 80, 24, "patio-dark")
	screen := vt.NewSafeEmulator(80, 24)
	in, keyboard := io.Pipe()
	// What the emulator answers, to questions about itself, is what a terminal types.
	answers := make(chan struct{})
	go func() { defer close(answers); _, _ = io.Copy(keyboard, screen) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := tea.NewProgram(u.model, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(tty{screen}), tea.WithWindowSize(80, 24),
		tea.WithEnvironment([]string{"TERM=xterm-256color", "COLORTERM=truecolor"}), tea.WithoutSignalHandler())
	ended := make(chan error, 1)
	go func() { _, err := p.Run(); ended <- err }()
	shows := func(texts ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			now := text(screen)
			for _, text := range texts {
				if !strings.Contains(now, text) {
					return false
				}
			}
			return true
		}, 20*time.Second, 20*time.Millisecond, "%q in\n%s", texts, lazy{screen})
	}
	shows("Sessions", "m9c1v7w2yy", "need an answer")
	p.Send(panetest.Key("?"))
	shows("Help", "Everywhere")
	p.Send(panetest.Key("esc"))
	p.Send(panetest.Key("enter"))
	shows("Chat", "Why does the test fail?", "It compares times in two zones")
	p.Send(tea.WindowSizeMsg{Width: 60, Height: 16})
	shows("Ask Pi to do something")
	p.Send(panetest.Key("ctrl+c"))
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "ctrl+c doesn't end it")
	}
	require.False(t, screen.IsAltScreen(), "the terminal is as it was")
	// The end of its answers first: closing it while it is read is a race.
	closer, ok := screen.InputPipe().(io.Closer)
	require.True(t, ok)
	require.NoError(t, closer.Close())
	require.NoError(t, keyboard.Close())
	<-answers
}
