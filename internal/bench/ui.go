package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/tui"
	"patio/tui/launcher"
)

const (
	uiSessions = 100
	uiEvents   = 10_000 // a second
	uiSeconds  = 5
	uiTraffic  = 165 << 20
	uiBudget   = 8 * time.Millisecond // half a frame at 60 Hz
)

// benchUI measures the terminal UI: the time of a frame under load, what it writes to the
// terminal, what it holds after much traffic, and how soon it is there.
func benchUI(ctx context.Context, s settings, show func(figure)) error {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	load := &uiLoad{perSecond: uiEvents, total: uiEvents * uiSeconds, line: deltaLine}
	run, err := showUI(ctx, load)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("Update and View, %d sessions, %d events a second", uiSessions, uiEvents)
	show(figure{name: name + ", p50", value: ms(quantile(run.frames, 0.5)), unit: "ms", to: "the aim", ref: ms(uiBudget)})
	show(figure{name: name + ", p99", value: ms(quantile(run.frames, 0.99)), unit: "ms", to: "the aim", ref: ms(uiBudget)})
	seconds := run.took.Seconds()
	show(figure{name: "written to the terminal while streaming", value: float64(run.written) / 1024 / seconds, unit: "KiB/s",
		to: "the events' own", ref: float64(load.sent.Load()) / 1024 / seconds})

	load = &uiLoad{total: uiTraffic / 16384, line: func(n int) []byte { return toolLine(n, 16<<10) }}
	if run, err = showUI(ctx, load); err != nil {
		return err
	}
	show(figure{name: "memory after 165 MB of traffic", value: float64(run.heap) / (1 << 20), unit: "MiB", to: "the traffic", ref: float64(load.sent.Load()) / (1 << 20)})
	return benchFirstFrame(ctx, s, show)
}

// benchFirstFrame starts the binary in a terminal until its first screen is there, beside
// bare Pi until its first answer.
func benchFirstFrame(ctx context.Context, s settings, show func(figure)) error {
	bare, err := installPi(ctx, s)
	if err != nil {
		return err
	}
	var own, peer []time.Duration
	for range s.runs {
		took, err := timed(func() error { return firstFrame(ctx, filepath.Join(s.root, "bin", "patio")) })
		if err != nil {
			return err
		}
		own = append(own, took)
		if took, err = timed(func() error {
			cmd := exec.CommandContext(ctx, bare.node, bare.cli, "--version")
			cmd.WaitDelay = time.Second
			return cmd.Run()
		}); err != nil {
			return err
		}
		peer = append(peer, took)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	show(figure{name: "patio, start to first frame", value: ms(median(own)), unit: "ms", to: "pi --version", ref: ms(median(peer))})
	return nil
}

// firstFrame runs a program in a terminal of its own until it shows its name.
func firstFrame(ctx context.Context, program string) (err error) {
	state, err := os.MkdirTemp("", "patio-bench-ui-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "XDG_STATE_HOME="+state, "XDG_CONFIG_HOME="+state, "XDG_CACHE_HOME="+state)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 160})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, terminal.Close()) }()
	var seen []byte
	chunk := make([]byte, 32<<10)
	for !bytes.Contains(seen, []byte("Sessions")) {
		n, readErr := terminal.Read(chunk)
		if readErr != nil {
			return errors.Join(fmt.Errorf("%s showed no screen: %w", program, readErr), cmd.Wait())
		}
		seen = append(seen, chunk[:n]...)
	}
	cancel() // the rest isn't measured
	_ = cmd.Wait()
	return nil
}

// uiRun is what one run of the UI took.
type uiRun struct {
	frames  []time.Duration // of Update and the View after it
	took    time.Duration
	written int64
	heap    uint64
}

// showUI runs the real UI, without a terminal, until it has shown all of a load.
func showUI(ctx context.Context, load *uiLoad) (uiRun, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "patio-bench-ui-")
	if err != nil {
		return uiRun{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	load.done = make(chan struct{})
	heapBefore := liveHeap()
	inner, closeUI, err := tui.New(ctx, tui.Options{
		Session: sessionName(0), Workspace: dir, StateDir: dir, Theme: "patio-dark", Now: time.Now, Mouse: true,
		Backend: tui.Backend{Sessions: load, Journals: load, Launches: load, Client: func(string) tui.Client { return noClient{} }},
	})
	if err != nil {
		return uiRun{}, err
	}
	defer func() { cancel(); closeUI() }()
	m := &timedModel{inner: inner}
	var out countingWriter
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(&out), tea.WithWindowSize(160, 50),
		tea.WithEnvironment([]string{"TERM=xterm-256color", "COLORTERM=truecolor"}), tea.WithoutSignalHandler())
	var run uiRun
	begun := time.Now()
	finished := make(chan error, 1)
	go func() { _, err := p.Run(); finished <- err }()
	select {
	case <-load.done:
	case err := <-finished:
		return run, errors.Join(errors.New("the UI ended early"), err)
	case <-ctx.Done():
	}
	// A second more: what was read ahead is shown too.
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	run.took = time.Since(begun)
	if heap := liveHeap(); heap > heapBefore {
		run.heap = heap - heapBefore
	}
	p.Quit()
	err = <-finished
	run.frames, run.written = m.frames, out.n.Load()
	return run, errors.Join(err, context.Cause(ctx))
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// timedModel times each Update with the View that follows it.
type timedModel struct {
	inner  tea.Model
	update time.Duration
	frames []time.Duration
}

func (m *timedModel) Init() tea.Cmd { return m.inner.Init() }

func (m *timedModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	begun := time.Now()
	var cmd tea.Cmd
	m.inner, cmd = m.inner.Update(msg)
	m.update = time.Since(begun)
	return m, cmd
}

func (m *timedModel) View() tea.View {
	begun := time.Now()
	v := m.inner.View()
	m.frames = append(m.frames, m.update+time.Since(begun))
	m.update = 0
	return v
}

type countingWriter struct{ n atomic.Int64 }

func (w *countingWriter) Write(p []byte) (int, error) { w.n.Add(int64(len(p))); return len(p), nil }

// uiLoad is a backend with many sessions, the first of which streams.
type uiLoad struct {
	perSecond int // 0: as fast as it is taken
	total     int
	line      func(n int) []byte
	sent      atomic.Int64
	done      chan struct{}
	once      sync.Once
	lists     atomic.Int64
}

func sessionName(n int) string { return fmt.Sprintf("bench%05d", n) }

// List implements tui.Sessions: every session has other figures each time.
func (l *uiLoad) List(context.Context) ([]api.Session, error) {
	turn := l.lists.Add(1)
	all := make([]api.Session, uiSessions)
	for i := range all {
		n := int64(i) + turn
		all[i] = api.Session{
			V: 1, ID: sessionName(i), Name: fmt.Sprintf("task %d", i), Phase: api.PhaseReady, Activity: []api.Activity{api.ActivityIdle, api.ActivityWorking, api.ActivityBlocked}[n%3],
			Created: time.Now().Add(-time.Duration(i) * time.Minute), Workspace: fmt.Sprintf("/work/project-%d", i), Model: api.Model{Provider: "demo", ID: "tour", ContextWindow: 200_000},
			Turns: int(n), Tokens: api.Tokens{Input: int(n) * 100, Output: int(n) * 10, Context: int(n) * 50}, CostUSD: float64(n) / 100,
			Usage: &api.Usage{Time: time.Now(), CPUPercent: float64(n % 100), Memory: n << 20, MemoryLimit: 4 << 30, Pids: n % 50, PidsLimit: 512},
		}
	}
	return all, nil
}

func (l *uiLoad) Stop(context.Context, string) error              { return nil }
func (l *uiLoad) Remove(context.Context, string) error            { return nil }
func (l *uiLoad) Resume(context.Context, string) error            { return nil }
func (l *uiLoad) Kill(context.Context, string, int, string) error { return nil }

// Records implements tui.Journals.
func (l *uiLoad) Records(ctx context.Context, session string, since uint64, follow bool, f func(journal.Record) error) error {
	if !follow {
		return nil
	}
	begun := time.Now()
	for n := range l.total {
		line := l.line(n)
		l.sent.Add(int64(len(line)))
		data, err := json.Marshal(api.RPCRecord{Direction: api.FromPi, Line: line})
		if err != nil {
			return err
		}
		if err := f(journal.Record{Version: 1, Seq: uint64(n + 1), Time: time.Now(), Session: session, Type: api.RecordRPC, Data: data}); err != nil {
			return err
		}
		if l.perSecond > 0 && n%100 == 99 {
			if ahead := time.Duration(n+1)*time.Second/time.Duration(l.perSecond) - time.Since(begun); ahead > 0 {
				select {
				case <-time.After(ahead):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
	}
	l.once.Do(func() { close(l.done) })
	<-ctx.Done() // the session goes on
	return ctx.Err()
}

// History implements tui.Journals.
func (l *uiLoad) History(context.Context, string, time.Time) ([]sessions.Turn, error) {
	return nil, nil
}

func (l *uiLoad) Plan(context.Context, launcher.Request) (api.Session, error) {
	return api.Session{}, nil
}
func (l *uiLoad) Start(context.Context, launcher.Request) (api.Session, error) {
	return api.Session{}, nil
}
func (l *uiLoad) Models(context.Context) ([]string, error) { return nil, nil }

// deltaLine is an answer that streams in words, 2,000 to a message.
func deltaLine(n int) []byte {
	switch n % 2000 {
	case 0:
		return []byte(`{"type":"message_start","message":{"role":"assistant","content":[]}}`)
	case 1:
		return []byte(`{"type":"message_update","assistantMessageEvent":{"type":"text_start","contentIndex":0}}`)
	case 1999:
		return []byte(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"A **whole** answer with ` + "`code`" + `."}]}}`)
	}
	word := fmt.Sprintf("word%d ", n)
	if n%40 == 0 {
		word = "\n\n"
	}
	return fmt.Appendf(nil, `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":%q}}`, word)
}

// toolLine is one of the lines of tool calls with long output.
func toolLine(n, size int) []byte {
	id := n / 3
	switch n % 3 {
	case 0:
		return fmt.Appendf(nil, `{"type":"tool_execution_start","toolCallId":"call%d","toolName":"bash","args":{"command":"cat file%d"}}`, id, id)
	case 1:
		return fmt.Appendf(nil, `{"type":"tool_execution_update","toolCallId":"call%d","toolName":"bash","partialResult":{"content":[{"type":"text","text":%q}]}}`, id, bytes.Repeat([]byte("some output of a program\n"), size/25))
	}
	return fmt.Appendf(nil, `{"type":"tool_execution_end","toolCallId":"call%d","toolName":"bash","isError":false,"result":{"content":[{"type":"text","text":%q}]}}`, id, bytes.Repeat([]byte("some output of a program\n"), 2*size/25))
}

// noClient is the client of a session that nobody asks anything.
type noClient struct{}

var errNoClient = errors.New("the benchmark has no supervisor")

func (noClient) Prompt(context.Context, api.PromptRequest) (api.PromptResponse, error) {
	return api.PromptResponse{}, errNoClient
}
func (noClient) Command(context.Context, any) (json.RawMessage, error) { return nil, errNoClient }
func (noClient) Processes(context.Context) ([]api.Process, error)      { return nil, errNoClient }
func (noClient) Close()                                                {}

var _ io.Writer = (*countingWriter)(nil)
