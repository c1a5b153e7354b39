package importer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/sessions"
	"patio/sessions/catalog"
	"patio/tui/panetest"
)

const header = `{"type":"session","version":3,"id":"0197-aaaa","timestamp":"2026-05-04T09:00:00Z","cwd":"/work/shop"}` + "\n"

func turn(id, parent, role, text string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return `{"type":"message","id":"` + id + `","parentId":` + p + `,"timestamp":"2026-05-04T09:00:01Z","message":{"role":"` + role +
		`","content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
}

func opensFiles(t *testing.T, imports ImportFunc) (*Files, string) {
	t.Helper()
	dir := t.TempDir()
	f := NewFiles(t.Context(), catalog.Options{Roots: []catalog.Root{{Dir: dir, Source: catalog.SourceExtra}}}, imports)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f, dir
}

type delivered struct {
	catalog.Update
	err error
}

func asUpdate(u catalog.Update, err error) tea.Msg { return delivered{u, err} }

func TestFilesAreWatched(t *testing.T) {
	f, dir := opensFiles(t, nil)
	first := f.Watch(asUpdate)().(delivered)
	require.NoError(t, first.err)
	require.Empty(t, first.Sessions)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(header+turn("a1", "", "user", "find the cent")), 0o600))
	next := f.Watch(asUpdate)().(delivered)
	require.Len(t, next.Sessions, 1)
	require.Equal(t, "find the cent", next.Sessions[0].Title)
}

func TestClosedFilesSayNothing(t *testing.T) {
	f, _ := opensFiles(t, func(context.Context, string, bool) (Result, error) { return Result{}, errors.New("late") })
	f.Watch(asUpdate)()
	waits := f.Watch(asUpdate)
	done := make(chan tea.Msg)
	go func() { done <- waits() }()
	require.NoError(t, f.Close())
	select {
	case msg := <-done:
		require.Nil(t, msg)
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a list after the end")
	}
	require.NoError(t, f.Close())
	require.Nil(t, f.Watch(asUpdate)())
	require.Nil(t, f.Import("x", false, func(Result, error) tea.Msg { return "told" })())
	require.Nil(t, f.Check("x", func(sessions.Report, error) tea.Msg { return "told" })())
	require.Nil(t, f.Preview("x", "", func(Preview, error) tea.Msg { return "told" })())
	require.Nil(t, f.Search("x", []catalog.Summary{{Path: "x"}}, func(Hits, error) tea.Msg { return "told" })())
}

func TestFilesAreSearched(t *testing.T) {
	f, dir := opensFiles(t, nil)
	path := filepath.Join(dir, "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(header+turn("a1", "", "user", "find the cent")+turn("a2", "a1", "assistant", "the cent is lost")), 0o600))
	in := []catalog.Summary{{Path: path, ID: "a"}}
	var got Hits
	take := func(h Hits, err error) tea.Msg {
		require.NoError(t, err)
		got = h
		return "told"
	}
	require.Nil(t, f.Search("", in, take))
	late := f.Search("lost", in, take)
	require.Equal(t, "told", f.Search("cent", in, take)())
	require.Nil(t, late(), "the one after took its place")
	require.Len(t, got.Matches, 2)
	require.Equal(t, "a2", got.Matches[1].EntryID)
	require.Equal(t, 1, got.Files)
	require.False(t, got.More)
	require.Equal(t, "told", f.Search("cent", nil, take)())
	require.Empty(t, got.Matches, "none of no files")
}

func TestSearchIsBounded(t *testing.T) {
	f, dir := opensFiles(t, nil)
	path := filepath.Join(dir, "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(header+strings.Repeat(turn("a", "", "user", "cent"), maxHits+5)), 0o600))
	f.Search("cent", []catalog.Summary{{Path: path, ID: "a"}}, func(h Hits, err error) tea.Msg {
		require.NoError(t, err)
		require.Len(t, h.Matches, maxHits)
		require.True(t, h.More)
		return nil
	})()
}

func TestPreviewIsTheEnd(t *testing.T) {
	f, dir := opensFiles(t, nil)
	path := filepath.Join(dir, "a.jsonl")
	var b strings.Builder
	b.WriteString(header)
	parent := ""
	for i := range 200 {
		id := "e" + strings.Repeat("x", i%3) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		b.WriteString(turn(id, parent, []string{"user", "assistant"}[i%2], strings.Repeat("long ", 2000)+id))
		parent = id
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	var p Preview
	take := func(got Preview, err error) tea.Msg {
		require.NoError(t, err)
		p = got
		return "told"
	}
	require.Equal(t, "told", f.Preview(path, "", take)())
	require.Len(t, p.Turns, maxTurns)
	require.Equal(t, 200-maxTurns, p.Before)
	require.Zero(t, p.After)
	require.Equal(t, -1, p.At)
	require.Len(t, p.Turns[0].Blocks[0].Text, maxText)
	require.True(t, p.Turns[0].Blocks[0].Cut)

	hundredth := sessionEntry(t, path, 100)
	require.Equal(t, "told", f.Preview(path, hundredth, take)())
	require.GreaterOrEqual(t, p.At, 0)
	require.Equal(t, 100, p.Before+p.At)
}

func sessionEntry(t *testing.T, path string, i int) string {
	t.Helper()
	f, err := sessions.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	return f.Entries()[i].ID
}

// Whatever there is in the corpus of files, it is read or says why not, and is drawn.
func TestPreviewOfTheCorpus(t *testing.T) {
	paths, err := filepath.Glob("../../sessions/testdata/corpus/*.jsonl")
	require.NoError(t, err)
	paths = append(paths, "../../sessions/testdata/recorded.jsonl")
	require.Greater(t, len(paths), 50)
	f, _ := opensFiles(t, nil)
	for _, path := range paths {
		var p Preview
		var failed error
		f.Preview(path, "", func(got Preview, err error) tea.Msg { p, failed = got, err; return nil })()
		d := &disk{preview: p, readErr: failed}
		s, err := catalog.Read(path, true)
		require.NoError(t, err)
		d.report, err = sessions.Validate(path)
		require.NoError(t, err)
		d.update = live([]catalog.Summary{s})
		m := listed(d, 160, 46, panetest.Styles(t, "patio-dark"))
		settleDown(m, panetest.Press(m, "enter"))
		panetest.Screen(t, m.View(), 160, 46)
		require.NotContains(t, panetest.Plain(m.View()), "reading…", path)
	}
}

func TestImportAndCheckAreCalled(t *testing.T) {
	f, dir := opensFiles(t, func(_ context.Context, path string, copyInto bool) (Result, error) {
		require.True(t, copyInto)
		return Result{Status: Imported, Session: filepath.Base(path)}, nil
	})
	f.Import("/work/a.jsonl", true, func(r Result, err error) tea.Msg {
		require.NoError(t, err)
		require.Equal(t, "a.jsonl", r.Session)
		return nil
	})()
	f.Check(filepath.Join(dir, "none"), func(_ sessions.Report, err error) tea.Msg {
		require.Error(t, err)
		return nil
	})()
	require.NoError(t, New(f, time.Now).Close())
}
