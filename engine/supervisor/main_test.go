package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/jsonl"
)

func TestReadSpec(t *testing.T) {
	good, err := json.Marshal(Spec{Session: api.Session{ID: "abc"}, Dir: "/d", Files: []File{{Path: "/f", Data: []byte{0, 255}}}})
	require.NoError(t, err)
	spec, err := readSpec(bytes.NewReader(append(good, '\n')), []string{"abc"})
	require.NoError(t, err)
	require.Equal(t, "/d", spec.Dir)
	require.Equal(t, []byte{0, 255}, spec.Files[0].Data)

	for name, tc := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"no id":           {string(good), nil, "takes a session's id"},
		"two ids":         {string(good), []string{"abc", "def"}, "takes a session's id"},
		"another id":      {string(good), []string{"def"}, `for session "abc"`},
		"nothing":         {"", []string{"abc"}, "read launch"},
		"half":            {string(good[:len(good)/2]), []string{"abc"}, "read launch"},
		"no launch":       {`"abc"`, []string{"abc"}, "read launch"},
		"an empty launch": {`{}`, []string{"abc"}, `for session ""`},
	} {
		_, err := readSpec(strings.NewReader(tc.in), tc.args)
		require.ErrorContains(t, err, tc.want, name)
	}
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { require.NoError(t, null.Close()) }()
	_, err = readSpec(null, []string{"abc"})
	require.ErrorContains(t, err, "takes a launch on stdin", "a person who types it is told so at once")
}

// waiting is a launcher as its other side sees it.
type waiting struct {
	stdin  *os.File // the launcher's end of the supervisor's stdin
	stdout *jsonl.Reader
	gone   chan struct{}
	l      *launcher
}

func launch(t *testing.T) *waiting {
	t.Helper()
	inR, inW, err := os.Pipe()
	require.NoError(t, err)
	outR, outW, err := os.Pipe()
	require.NoError(t, err)
	w := &waiting{stdin: inW, stdout: jsonl.NewReader(outR), gone: make(chan struct{})}
	w.l = newLauncher(inR, outW, func() { close(w.gone) })
	t.Cleanup(func() {
		for _, f := range []*os.File{inR, inW, outR, outW} {
			_ = f.Close()
		}
	})
	return w
}

func (w *waiting) next(t *testing.T) api.Phase {
	t.Helper()
	line, err := w.stdout.Next()
	require.NoError(t, err)
	var s api.Session
	require.NoError(t, json.Unmarshal(line, &s))
	return s.Phase
}

func TestLauncher(t *testing.T) {
	for _, last := range []api.Phase{api.PhaseReady, api.PhaseFailed, api.PhaseEnded} {
		t.Run(string(last), func(t *testing.T) {
			w := launch(t)
			for _, phase := range []api.Phase{api.PhasePreparing, api.PhaseStarting, last} {
				w.l.tell(api.Session{Phase: phase})
				require.Equal(t, phase, w.next(t))
			}
			_, err := w.stdout.Next()
			require.ErrorIs(t, err, io.EOF, "nothing is waited for after that")
			w.l.tell(api.Session{Phase: api.PhaseStopping})
			require.NoError(t, w.stdin.Close())
			select {
			case <-w.gone:
				t.Fatal("a launcher that has what it waited for may go")
			case <-time.After(50 * time.Millisecond):
			}
		})
	}
}

func TestLauncherDies(t *testing.T) {
	w := launch(t)
	w.l.tell(api.Session{Phase: api.PhasePreparing})
	require.NoError(t, w.stdin.Close())
	<-w.gone
	w.l.tell(api.Session{Phase: api.PhaseFailed}) // nobody reads it; that's no error
}

func TestSessionFile(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadSession(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	want := api.Session{V: 1, ID: "abc", Phase: api.PhaseReady, Created: time.Unix(1, 0).UTC()}
	require.NoError(t, WriteSession(dir, want))
	got, err := ReadSession(dir)
	require.NoError(t, err)
	require.Equal(t, want, got)
	fi, err := os.Stat(dir + "/" + SessionFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	require.NoError(t, os.WriteFile(dir+"/"+SessionFile, []byte("{"), 0o600))
	_, err = ReadSession(dir)
	require.ErrorContains(t, err, SessionFile)
	require.Error(t, WriteSession(dir+"/missing", want))
	require.True(t, errors.Is(WriteSession(dir+"/missing", want), os.ErrNotExist))
}
