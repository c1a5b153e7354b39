package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"patio/engine/api"
	"patio/engine/demo"
	"patio/engine/pi"
	"patio/sandbox"
	"patio/sandbox/namespace"
	"patio/sandbox/network"
	"patio/sandbox/network/policy"
)

// errEnd ends a journal stream that doesn't follow.
var errEnd = io.EOF

// DemoHost is where the sandbox reaches the scripted model: a name that exists in its
// gateway alone.
const (
	DemoHost    = "model.patio.internal"
	DemoBaseURL = "http://" + DemoHost + "/v1"
)

// ownClient names the supervisor's own commands in the journal.
const ownClient = "patio"

// start starts the sandbox with Pi in it. The pipes' outer ends are the supervisor's.
func (s *Supervisor) start(ctx context.Context) error {
	stdinR, stdinW, err := os.Pipe()
	if err != nil {
		return err
	}
	stdoutR, stdoutW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdinR.Close(), stdinW.Close())
	}
	stderrR, stderrW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdinR.Close(), stdinW.Close(), stdoutR.Close(), stdoutW.Close())
	}
	s.conn = newConn(stdinW, s.journal)
	s.conn.observe, s.conn.sent, s.conn.fail = s.observe, s.commandSent, s.fail
	s.background.Add(2)
	go func() {
		defer s.background.Done()
		s.conn.read(stdoutR)
		_ = stdoutR.Close()
	}()
	go func() {
		defer s.background.Done()
		s.stderr.read(stderrR)
		_ = stderrR.Close()
	}()
	s.services = map[string]network.Service{DemoHost: {Handler: demo.Handler(demo.Options{Log: s.log})}}
	s.box, err = sandbox.Start(ctx, sandbox.Options{
		Plan: s.spec.Sandbox, Dir: s.spec.Scratch, Executable: s.spec.Executable, Runsc: s.spec.Runsc,
		Stdin: stdinR, Stdout: stdoutW, Stderr: stderrW,
		Network:  network.Config{Policy: s.policy, Record: s.recordEgress, Services: s.services},
		OwnScope: true, Debug: s.spec.Debug, Log: s.log,
	})
	if errors.Is(err, namespace.ErrForbidden) {
		err = api.Errorf(api.CodeUnsupported, "`patio doctor` checks the whole machine", "%w", err)
	}
	err = errors.Join(err, stdinR.Close(), stdoutW.Close(), stderrW.Close())
	if err != nil {
		return errors.Join(err, s.conn.closeStdin())
	}
	report := s.box.Limits()
	s.tracker.update(func(t *api.Session) { t.Cgroups, t.Plan.Enforced = report.Paths, report.Entries })
	if err := s.save(); err != nil {
		return err
	}
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		s.sample()
	}()
	return nil
}

// becomeReady waits for Pi's first reply and lets the model that Pi reports out.
func (s *Supervisor) becomeReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	type answer struct {
		state pi.State
		err   error
	}
	answers := make(chan answer, 1)
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		state, err := s.getState(ctx)
		answers <- answer{state, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case r := <-s.stopRequest:
		return api.Errorf(api.CodeInterrupted, "", "stopped before the session was ready%s", suffix(r.Reason))
	case err := <-s.broken:
		return err
	}
	if a.err != nil {
		return s.startError(ctx, a.err)
	}
	if !a.state.Model.Known() {
		return api.Errorf(api.CodeCredentials, "choose one with --model PROVIDER/MODEL; demo/tour needs no key", "Pi has no model that it can use")
	}
	if err := s.setModel(a.state.Model, a.state.ThinkingLevel); err != nil {
		return err
	}
	if s.spec.SessionFile == "" && a.state.SessionFile != "" {
		// A new file is this session's from now on; nobody else can know it yet.
		release, err := lockSessionFile(s.spec.Locks, a.state.SessionFile, s.spec.Session.ID)
		if err != nil {
			return err
		}
		s.unlock = release
	}
	s.tracker.ready(time.Now().UTC(), a.state.SessionFile)
	model := s.Session().Model
	return s.phase(api.PhaseReady, &api.StateRecord{Model: &model})
}

func suffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (s *Supervisor) getState(ctx context.Context) (pi.State, error) {
	cmd, err := pi.ParseCommand([]byte(`{"type":"get_state"}`))
	if err != nil {
		return pi.State{}, err
	}
	reply, err := s.conn.command(ctx, ownClient, cmd)
	if err != nil {
		return pi.State{}, err
	}
	return pi.DecodeState(reply)
}

// startError explains why Pi gave no first reply: its stderr knows best.
func (s *Supervisor) startError(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return api.Errorf(api.CodeTimeout, "is the machine very busy? `patio doctor` checks it", "Pi gave no reply within %v%s", readyTimeout, suffix(s.stderr.tail()))
	}
	if ctx.Err() != nil {
		return api.Errorf(api.CodeInterrupted, "", "stopped before the session was ready")
	}
	if !errors.Is(err, errGone) {
		return err
	}
	code, text := api.CodeInternal, s.stderr.tail()
	status, waitErr := s.box.Wait(ctx)
	how := fmt.Sprintf("exit code %d", status.ExitStatus())
	if waitErr == nil && status.Signaled() {
		how = status.Signal().String()
	}
	if strings.Contains(text, "not found. Use --list-models") {
		code = api.CodeConfig
	}
	return api.Errorf(code, "", "Pi ended before it was ready (%s): %s", how, text)
}

// setModel takes over the model that Pi reports, and lets its endpoint out.
func (s *Supervisor) setModel(m pi.Model, thinking string) error {
	s.tracker.update(func(t *api.Session) {
		if thinking == "" {
			thinking = t.Model.Thinking
		}
		t.Model = api.Model{Provider: m.Provider, ID: m.ID, Name: m.Name, API: m.API, BaseURL: m.BaseURL, Thinking: thinking, ContextWindow: m.ContextWindow}
	})
	if m.Provider == demo.Provider {
		return s.allowModel() // a service of the gateway itself
	}
	e, err := pi.EndpointOf(m, s.sandboxEnv)
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "%w", err)
	}
	rule, err := policy.ParseRule(e.Rule())
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "the model's endpoint: %w", err)
	}
	return s.allowModel(rule)
}

// sandboxEnv looks a variable of Pi's environment up.
func (s *Supervisor) sandboxEnv(name string) string {
	for _, kv := range s.spec.Sandbox.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// The graces of a stop: Pi ends within some 30 ms of an EOF unless a tool runs.
const (
	eofGrace  = 3 * time.Second
	termGrace = 3 * time.Second
)

// stopSandbox ends Pi: EOF, grace, SIGTERM, grace, kill. It returns Pi's exit status, or
// false when Pi had to be killed. With now there is no grace.
func (s *Supervisor) stopSandbox(ctx context.Context, now bool) (syscall.WaitStatus, bool) {
	close(s.stopping)
	if err := s.unpause(ctx); err != nil {
		s.log.Warn("let the sandbox go on", "err", err)
	}
	var status syscall.WaitStatus
	wait := func(d time.Duration) bool {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		st, err := s.box.Wait(ctx)
		status = st
		return err == nil
	}
	// Pi that ended by itself, or with its sandbox, has a status already.
	ended := wait(10 * time.Millisecond)
	if err := s.conn.closeStdin(); err != nil {
		s.log.Warn("close Pi's stdin", "err", err)
	}
	if !ended && !now {
		if ended = wait(eofGrace); !ended {
			if err := s.box.Signal(ctx, "TERM"); err != nil {
				s.log.Warn("ask Pi to end", "err", err)
			}
			ended = wait(termGrace)
		}
	}
	if err := s.box.Close(); err != nil {
		s.log.Error("close sandbox", "err", err)
	}
	// Both streams end with the sandbox; what they held is in the journal then.
	<-s.conn.gone
	return status, ended
}
