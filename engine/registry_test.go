package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/supervisor"
)

// add makes a session's directory as a supervisor leaves it.
func (m *machine) add(t testing.TB, s api.Session) string {
	t.Helper()
	dir := m.dirs().session(s.ID)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.MkdirAll(m.dirs().Runtime, 0o700))
	require.NoError(t, supervisor.WriteSession(dir, s))
	return dir
}

func TestList(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	all, err := e.List(t.Context())
	require.NoError(t, err, "no directory is no sessions")
	require.Empty(t, all)
	for i := range 5 {
		m.add(t, api.Session{ID: fmt.Sprintf("s%d", i), Phase: api.PhaseEnded, Created: time.Unix(int64(i), 0)})
	}
	// What isn't a session is passed over.
	require.NoError(t, os.Mkdir(m.dirs().session("empty"), 0o700))
	require.NoError(t, os.Mkdir(m.dirs().session("broken"), 0o700))
	m.write(t, "state/sessions/broken/session.json", "{", 0o600)
	m.write(t, "state/sessions/file", "", 0o600)
	all, err = e.List(t.Context())
	require.NoError(t, err)
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	require.Equal(t, []string{"s4", "s3", "s2", "s1", "s0"}, ids, "the newest comes first")
}

func TestFind(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	for _, s := range []api.Session{
		{ID: "abcdef2222", Name: "first"},
		{ID: "abcxyz3333", Name: "twice"},
		{ID: "bbbbbbbbbb", Name: "twice"},
		{ID: "webwebweb2", Name: "other"},
		{ID: "cccccccccc", Name: "web"},
	} {
		s.Phase = api.PhaseEnded
		m.add(t, s)
	}
	running := flock.New(filepath.Join(m.add(t, api.Session{ID: "dddddddddd", Name: "again", Phase: api.PhaseReady}), supervisor.LockFile))
	locked, err := running.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	defer func() { require.NoError(t, running.Close()) }()
	m.add(t, api.Session{ID: "eeeeeeeeee", Name: "again", Phase: api.PhaseEnded})

	for ref, want := range map[string]string{
		"abcdef2222": "abcdef2222", "abcd": "abcdef2222", "b": "bbbbbbbbbb", "first": "abcdef2222",
		"web": "cccccccccc", "webw": "webwebweb2", "again": "dddddddddd",
	} {
		s, err := e.Find(t.Context(), ref)
		require.NoError(t, err, ref)
		require.Equal(t, want, s.ID, ref)
	}
	for ref, tc := range map[string]struct {
		code    api.Code
		message string
	}{
		"":             {api.CodeUsage, "no session named"},
		"abc":          {api.CodeConflict, "abcdef2222"},
		"twice":        {api.CodeConflict, "bbbbbbbbbb"},
		"nobody":       {api.CodeNotFound, `no session "nobody"`},
		".":            {api.CodeNotFound, "no session"},
		"..":           {api.CodeNotFound, "no session"},
		"../sessions":  {api.CodeNotFound, "no session"},
		"/etc":         {api.CodeNotFound, "no session"},
		"abcdef2222/.": {api.CodeNotFound, "no session"},
		"abcdef2222\n": {api.CodeNotFound, "no session"},
		"abcdef22222":  {api.CodeNotFound, "no session"},
		"fir":          {api.CodeNotFound, "no session"},
	} {
		_, err := e.Find(t.Context(), ref)
		require.ErrorContains(t, err, tc.message, "%q", ref)
		require.Equal(t, tc.code, api.AsError(err).Code, "%q", ref)
	}
}

// crash makes what a supervisor leaves that was killed, and returns the session's directory.
func (m *machine) crash(t testing.TB, id string) string {
	t.Helper()
	dir := m.add(t, api.Session{
		V: 1, ID: id, Phase: api.PhaseReady, Activity: api.ActivityBlocked, SupervisorPID: 1, Turns: 3,
		Questions: []api.Question{{ID: "q"}}, Usage: &api.Usage{Pids: 1}, Created: time.Unix(1, 0),
	})
	j, err := journal.Open(filepath.Join(dir, supervisor.JournalFile), id)
	require.NoError(t, err)
	_, err = j.Append(api.RecordState, api.StateRecord{Phase: api.PhaseReady})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	f, err := os.OpenFile(filepath.Join(dir, supervisor.JournalFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"v":1,"seq":2,"time":"torn`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.MkdirAll(filepath.Join(m.dirs().scratch(id), "runsc"), 0o700))
	l, err := net.Listen("unix", m.dirs().socket(id))
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, m.dirs().socket(id))
	return dir
}

// journaled are the state records of a session's journal.
func journaled(t testing.TB, e *Engine, id string) (phases []api.Phase) {
	t.Helper()
	r, err := e.OpenJournal(t.Context(), id, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for {
		line, err := r.Next(context.Background())
		if err != nil {
			return phases
		}
		rec, err := journal.Decode(line)
		require.NoError(t, err)
		var s api.StateRecord
		require.NoError(t, json.Unmarshal(rec.Data, &s))
		phases = append(phases, s.Phase)
	}
}

func TestReap(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	dir := m.crash(t, "crashed222")
	all, err := e.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	s := all[0]
	require.Equal(t, api.PhaseCrashed, s.Phase)
	require.Equal(t, "the session's supervisor was lost", s.End.Reason)
	require.NotNil(t, s.Ended)
	require.Equal(t, 3, s.Turns, "what is known stays")
	require.Empty(t, s.Activity)
	require.Empty(t, s.Questions)
	require.Nil(t, s.Usage)
	require.Zero(t, s.SupervisorPID)
	saved, err := supervisor.ReadSession(dir)
	require.NoError(t, err)
	require.Equal(t, api.PhaseCrashed, saved.Phase)
	require.Equal(t, []api.Phase{api.PhaseReady, api.PhaseCrashed}, journaled(t, e, "crashed222"))
	require.NoDirExists(t, m.dirs().scratch("crashed222"))
	require.NoFileExists(t, m.dirs().socket("crashed222"))

	_, err = e.List(t.Context())
	require.NoError(t, err)
	require.Len(t, journaled(t, e, "crashed222"), 2, "once is enough")
	require.NoError(t, e.Remove(t.Context(), s, false))
	require.NoDirExists(t, dir)
}

func TestReapLeavesWhatLives(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	dir := m.crash(t, "lives22222")
	lock := flock.New(filepath.Join(dir, supervisor.LockFile))
	locked, err := lock.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	for range 3 {
		all, err := e.List(t.Context())
		require.NoError(t, err)
		require.Equal(t, api.PhaseReady, all[0].Phase)
	}
	require.DirExists(t, m.dirs().scratch("lives22222"))
	require.FileExists(t, m.dirs().socket("lives22222"))
	require.Equal(t, []api.Phase{api.PhaseReady}, journaled(t, e, "lives22222"))
	err = e.Remove(t.Context(), api.Session{ID: "lives22222", Phase: api.PhaseReady}, false)
	require.Equal(t, api.CodeConflict, api.AsError(err).Code)
	require.DirExists(t, dir)
	require.NoError(t, lock.Close())
	all, err := e.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, api.PhaseCrashed, all[0].Phase)
}

// A session that is being started has no lock yet; its launcher answers for it.
func TestReapAndStartingSessions(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	m.add(t, api.Session{ID: "starting22", Phase: api.PhaseNew, SupervisorPID: os.Getpid()})
	m.add(t, api.Session{ID: "orphan2222", Phase: api.PhaseNew, SupervisorPID: 1<<22 + 1}) // above pid_max
	all, err := e.List(t.Context())
	require.NoError(t, err)
	phases := map[string]api.Phase{}
	for _, s := range all {
		phases[s.ID] = s.Phase
	}
	require.Equal(t, map[string]api.Phase{"starting22": api.PhaseNew, "orphan2222": api.PhaseCrashed}, phases)
}

func TestManyReapersAtOnce(t *testing.T) {
	m := newMachine(t)
	const sessions, reapers = 5, 8
	for i := range sessions {
		m.crash(t, fmt.Sprintf("s%d", i))
	}
	var wg sync.WaitGroup
	for range reapers {
		wg.Go(func() {
			all, err := m.engine().List(context.Background())
			if err != nil || len(all) != sessions {
				t.Errorf("listed %d sessions: %v", len(all), err)
			}
		})
	}
	wg.Wait()
	all, err := m.engine().List(t.Context())
	require.NoError(t, err)
	for _, s := range all {
		require.Equal(t, api.PhaseCrashed, s.Phase)
		require.Equal(t, []api.Phase{api.PhaseReady, api.PhaseCrashed}, journaled(t, m.engine(), s.ID), "one of them reaps")
	}
}

// Another session's journal in a session's place is no reason to lose the session.
func TestReapWithAForeignJournal(t *testing.T) {
	m := newMachine(t)
	dir := m.crash(t, "crashed222")
	require.NoError(t, os.WriteFile(filepath.Join(dir, supervisor.JournalFile), []byte("junk\n"), 0o600))
	_, err := m.engine().Find(t.Context(), "crashed222")
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, supervisor.JournalFile))
	require.NoError(t, err)
	require.Equal(t, "junk\n", string(b))
	require.NoDirExists(t, m.dirs().scratch("crashed222"))
}

func TestStopOfWhatHasEnded(t *testing.T) {
	m := newMachine(t)
	e := m.engine()
	require.NoError(t, e.Stop(t.Context(), api.Session{ID: "x", Phase: api.PhaseEnded}, api.StopRequest{}))
	m.crash(t, "crashed222")
	require.NoError(t, e.Stop(t.Context(), api.Session{ID: "crashed222", Phase: api.PhaseReady}, api.StopRequest{}), "it is reaped")
	s, err := e.Find(t.Context(), "crashed222")
	require.NoError(t, err)
	require.Equal(t, api.PhaseCrashed, s.Phase)
}
