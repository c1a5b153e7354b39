package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sandbox"
	"patio/sandbox/image"
	"patio/sandbox/network"
	"patio/sandbox/network/policy"
)

// Supervisor is one session while it lives.
type Supervisor struct {
	spec    Spec
	log     *slog.Logger
	journal *journal.Journal
	policy  *policy.Live
	box     *sandbox.Sandbox
	conn    *conn
	tracker *tracker
	stderr  *stderrLog
	reserve reserve
	unlock  func() // lets the session file go, nil for none
	clients atomic.Uint64

	policyMu  sync.Mutex // serializes changes of the rules
	questions questions
	refusals  refusals
	paused    atomic.Bool
	services  map[string]network.Service

	// notify tells the launcher about each phase, until the session is ready.
	notify func(api.Session)

	stopRequest chan api.StopRequest // buffered by one; later requests join the first
	stopping    chan struct{}        // closed when Pi is being ended
	stopped     chan struct{}        // nothing of the session is left but the API
	broken      chan error           // buffered by one: the journal or a pipe failed
	saveMu      sync.Mutex
	background  sync.WaitGroup

	attachMu    sync.Mutex
	attached    sync.WaitGroup
	attachments map[*attachment]io.Closer
	dismissed   bool // nobody attaches any more
}

// readyTimeout bounds the time from the sandbox's start to Pi's first reply. A cold
// start takes two seconds on a quiet machine; this is for one that is busy.
const readyTimeout = 90 * time.Second

const (
	lockTimeout = 5 * time.Second
	lockRetry   = 5 * time.Millisecond
)

// Run lives one session to its end. Cancelling ctx stops the session in good order. The
// error is why the session failed, if it did; the session's files say the same.
func Run(ctx context.Context, spec Spec, log *slog.Logger, notify func(api.Session)) error {
	lock := flock.New(filepath.Join(spec.Dir, LockFile), flock.SetPermissions(0o600))
	lockCtx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	// Whoever lists sessions may hold the lock for a moment, to see whether it is held.
	if _, err := lock.TryLockContext(lockCtx, lockRetry); err != nil {
		return api.Errorf(api.CodeConflict, "", "session %s has a supervisor already: %w", spec.Session.ID, err)
	}
	defer func() { _ = lock.Close() }()
	j, err := journal.Open(filepath.Join(spec.Dir, JournalFile), spec.Session.ID)
	if err != nil {
		return err
	}
	live, err := policy.NewLive(spec.Rules...)
	if err != nil {
		return errors.Join(err, j.Close())
	}
	s := newSupervisor(spec, log, j, live, notify)
	s.tracker.s.SupervisorPID = os.Getpid()
	return s.run(ctx)
}

func newSupervisor(spec Spec, log *slog.Logger, j *journal.Journal, live *policy.Live, notify func(api.Session)) *Supervisor {
	return &Supervisor{
		spec: spec, log: log, journal: j, policy: live, notify: notify,
		tracker:     &tracker{s: spec.Session},
		stderr:      &stderrLog{journal: j},
		stopRequest: make(chan api.StopRequest, 1),
		stopping:    make(chan struct{}),
		stopped:     make(chan struct{}),
		broken:      make(chan error, 1),
		attachments: map[*attachment]io.Closer{},
		questions:   questions{open: map[string]*openQuestion{}},
	}
}

// run is the session's life: prepare, start, become ready, live, stop. Whatever fails,
// the end is the same.
func (s *Supervisor) run(ctx context.Context) error {
	if err := s.phase(api.PhasePreparing, nil); err != nil {
		return s.finish(ctx, api.PhaseFailed, end{err: err}, nil)
	}
	server, err := s.listen()
	if err != nil {
		return s.finish(ctx, api.PhaseFailed, end{err: err}, nil)
	}
	result := s.live(ctx)
	return s.finish(ctx, result.phase, result, server)
}

// end is how a session's life went.
type end struct {
	phase  api.Phase
	reason string
	code   int
	signal string
	err    error
}

func (s *Supervisor) live(ctx context.Context) end {
	release, err := s.prepare(ctx)
	if err != nil {
		return end{phase: api.PhaseFailed, err: err}
	}
	defer release()
	if err := s.phase(api.PhaseStarting, nil); err != nil {
		return end{phase: api.PhaseFailed, err: err}
	}
	if err := s.start(ctx); err != nil {
		return end{phase: api.PhaseFailed, err: err}
	}
	if err := s.becomeReady(ctx); err != nil {
		s.stopSandbox(context.WithoutCancel(ctx), true)
		return end{phase: api.PhaseFailed, err: err}
	}
	return s.untilEnd(ctx)
}

// untilEnd waits for whatever ends a ready session, and ends it.
func (s *Supervisor) untilEnd(ctx context.Context) end {
	var e end
	now := false
	select {
	case r := <-s.stopRequest:
		e.reason, now = "stopped", r.Now
		if r.Reason != "" {
			e.reason = r.Reason
		}
	case <-ctx.Done():
		e.reason = "the supervisor was told to end"
	case err := <-s.broken:
		e.reason, e.err, now = err.Error(), err, true
	case <-s.box.Gateway().Done():
		err := fmt.Errorf("the gateway failed, the sandbox has no network: %w", s.box.Gateway().Err())
		e.reason, e.err, now = err.Error(), err, true
	case <-s.box.Done():
		e.reason = "Pi ended"
		// The cgroup counts until the sandbox is closed.
		if why := s.limitReason(); why != "" {
			e.reason = why
		}
	}
	// A lost supervisor phase change is worth a log line, not a sandbox that lives on.
	if err := s.phase(api.PhaseStopping, &api.StateRecord{Reason: e.reason}); err != nil {
		s.log.Error("record the session's stop", "err", err)
	}
	status, ended := s.stopSandbox(context.WithoutCancel(ctx), now)
	switch {
	case !ended:
		e.signal, e.code = "killed", 137
	case status.Signaled():
		e.signal, e.code = status.Signal().String(), 128+int(status.Signal())
	default:
		// runsc tells a signal that ended the program inside as a shell does.
		if e.code = status.ExitStatus(); e.code > 128 && e.code < 128+65 {
			e.signal = syscall.Signal(e.code - 128).String()
		}
	}
	e.phase = api.PhaseEnded
	return e
}

// prepare makes the session's directories and files. The image can't be removed until
// release is called.
func (s *Supervisor) prepare(context.Context) (release func(), err error) {
	store := image.Store{Dirs: s.spec.ImageStore}
	img, err := store.Resolve(s.spec.Sandbox.Image.Digest)
	if err != nil {
		return nil, err
	}
	release, err = store.Use(img)
	if err != nil {
		return nil, err
	}
	if err := s.reserve.take(filepath.Join(s.spec.Dir, ReserveFile)); err != nil {
		release()
		return nil, err
	}
	owner := s.spec.Sandbox.Owner
	for _, dir := range append([]string{s.spec.Scratch}, s.spec.Dirs...) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			release()
			return nil, fmt.Errorf("make the session's directories: %w", err)
		}
		if err := chown(dir, owner); err != nil {
			release()
			return nil, err
		}
	}
	for _, f := range s.spec.Files {
		if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
			release()
			return nil, fmt.Errorf("write the session's files: %w", err)
		}
		if err := chown(f.Path, owner); err != nil {
			release()
			return nil, err
		}
	}
	unlock, err := s.takeSessionFile()
	if err != nil {
		release()
		return nil, err
	}
	letImageGo := release
	return func() { unlock(); letImageGo() }, nil
}

func chown(path string, o sandbox.Owner) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(o.UID), int(o.GID))
}

// listen serves the API. From here on the session can be watched.
func (s *Supervisor) listen() (*http.Server, error) {
	// A socket that a crashed supervisor left is dead: the lock is ours.
	if err := os.Remove(s.spec.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l, err := net.Listen("unix", s.spec.Socket)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	server := api.NewServer(api.Backend{Observer: s, Talker: s, Controller: s, PolicyController: s}, s.log)
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve the session's API", "err", err)
		}
	}()
	return server, nil
}

// finish writes the session's end down, tells everybody, and leaves nothing behind.
func (s *Supervisor) finish(ctx context.Context, phase api.Phase, e end, server *http.Server) error {
	if phase == "" {
		phase = api.PhaseFailed
	}
	var errs []error
	if s.box != nil {
		errs = append(errs, s.box.Close())
	}
	errs = append(errs, os.RemoveAll(s.spec.Scratch))
	if err := errors.Join(errs...); err != nil {
		s.log.Error("clean up", "err", err)
	}
	var apiErr *api.Error
	if e.err != nil {
		apiErr = api.AsError(e.err)
		if e.reason == "" {
			e.reason = apiErr.Message
		}
		if e.code == 0 {
			e.code = 1
		}
	}
	s.reserve.release()
	if s.unlock != nil {
		s.unlock()
	}
	now := time.Now().UTC()
	result := &api.End{Reason: e.reason, ExitCode: e.code, Signal: e.signal}
	if e.code != 0 {
		result.Stderr = s.stderr.tail()
	}
	s.tracker.update(func(t *api.Session) {
		t.Phase, t.Activity, t.Questions = phase, "", nil
		t.Ended, t.End, t.Error = &now, result, apiErr
		t.SupervisorPID, t.Usage, t.Cgroups = 0, nil, nil
	})
	// A full disk must not keep the session from ending: the reaper writes what is missing.
	if _, err := s.journal.Append(api.RecordState, api.StateRecord{Phase: phase, Reason: e.reason, End: result, Error: apiErr}); err != nil {
		s.log.Error("record the session's end", "err", err)
	}
	if err := s.journal.Close(); err != nil {
		s.log.Error("close journal", "err", err)
	}
	if err := s.save(); err != nil {
		s.log.Error("save session", "err", err)
	}
	s.notify(s.Session())
	close(s.stopped)
	if server != nil {
		s.shutdown(ctx, server)
	}
	s.background.Wait()
	if err := os.Remove(s.spec.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Error("remove socket", "err", err)
	}
	return e.err
}

// shutdownTimeout is for clients to read the last of the journal.
const shutdownTimeout = 3 * time.Second

func (s *Supervisor) shutdown(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		if err := server.Close(); err != nil {
			s.log.Debug("close the session's API", "err", err)
		}
	}
	// Connections that were taken over are not the server's any more.
	s.dismiss(ctx)
}

// phase goes on to the next phase: journal first, then the session's file, then tell.
func (s *Supervisor) phase(to api.Phase, more *api.StateRecord) error {
	from := s.Session().Phase
	if err := checkPhase(from, to); err != nil {
		return err
	}
	record := api.StateRecord{}
	if more != nil {
		record = *more
	}
	record.Phase = to
	s.tracker.update(func(t *api.Session) { t.Phase = to })
	record.Activity = s.Session().Activity
	if _, err := s.journal.Append(api.RecordState, record); err != nil {
		return err
	}
	if err := s.save(); err != nil {
		return err
	}
	s.notify(s.Session())
	return nil
}

// state journals a change that isn't one of phase, and saves it.
func (s *Supervisor) state(r api.StateRecord) {
	if _, err := s.journal.Append(api.RecordState, r); err != nil {
		s.fail(err)
		return
	}
	if err := s.save(); err != nil {
		s.log.Error("save session", "err", err)
	}
}

// fail ends the session because of err; only the first one counts.
func (s *Supervisor) fail(err error) {
	select {
	case s.broken <- err:
	default:
	}
}

// Session implements api.Observer.
func (s *Supervisor) Session() api.Session {
	snapshot := s.tracker.snapshot()
	snapshot.Seq, _ = s.journal.Last()
	return snapshot
}

// Journal implements api.Observer.
func (s *Supervisor) Journal(since uint64, follow bool) (api.LineReader, error) {
	r, err := s.journal.NewReader(since)
	if err != nil {
		return nil, err
	}
	if follow {
		return r, nil
	}
	return lastReader{r}, nil
}

// lastReader ends where the journal ends now.
type lastReader struct{ *journal.Reader }

// Next implements api.LineReader.
func (r lastReader) Next(context.Context) ([]byte, error) {
	line, ok, err := r.TryNext()
	if err == nil && !ok {
		err = errEnd
	}
	return line, err
}

// clientName makes a client's name unique in this session.
func (s *Supervisor) clientName(name string) string {
	if name == "" {
		name = "client"
	}
	return name + "-" + strconv.FormatUint(s.clients.Add(1), 10)
}
