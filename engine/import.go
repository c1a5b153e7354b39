package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/supervisor"
	"patio/sessions"
)

// ImportRequest says how session files become sessions of patio's.
type ImportRequest struct {
	// Copy goes on in a repaired copy in patio's own directory. Without it the file is
	// registered where it is, and stays as it is until it is resumed.
	Copy bool
	// Cwd is where the conversations go on, instead of where they were. It makes a copy,
	// for Pi works where the file says.
	Cwd string
	// Moved maps directories that have moved, and all below them; the longest counts.
	Moved map[string]string
	// DryRun finds out what would be done, and does nothing.
	DryRun bool
}

// ImportStatus is what became of one file.
type ImportStatus string

// The statuses. A file that is known was imported before, or is a session's own.
const (
	ImportDone    ImportStatus = "imported"
	ImportWould   ImportStatus = "would be imported"
	ImportKnown   ImportStatus = "known"
	ImportRefused ImportStatus = "refused"
)

// Imported is what became of one file.
type Imported struct {
	Path    string       `json:"path"`
	Status  ImportStatus `json:"status"`
	Session string       `json:"session,omitempty"` // its id
	File    string       `json:"file,omitempty"`    // that it goes on with
	// Workspace is where it would go on; nothing is mounted by an import.
	Workspace string             `json:"workspace,omitempty"`
	Problems  []sessions.Problem `json:"problems"`
	// Notes say what was done, or what a resume will need.
	Notes []string   `json:"notes,omitempty"`
	Error *api.Error `json:"error,omitempty"` // why it was refused
}

// Import registers one session file as an ended session, which `patio resume` goes on
// with. The source is never changed, and one that is refused leaves nothing. The error is
// of patio's own directories; what is wrong with the file is in Imported.
func (e *Engine) Import(ctx context.Context, path string, r ImportRequest) (Imported, error) {
	i := importer{e: e, r: r, now: time.Now().UTC(), done: Imported{Path: path, Status: ImportRefused, Problems: []sessions.Problem{}}}
	refused := i.read()
	if refused == nil {
		refused = i.chooseWorkspace()
	}
	if refused != nil {
		i.done.Error = refused
		return i.done, nil
	}
	if !r.DryRun {
		if err := e.o.Dirs.prepare(); err != nil {
			return i.done, err
		}
		// Two imports of one file at once are one session.
		lock := flock.New(filepath.Join(e.o.Dirs.locks(), "import.lock"), flock.SetPermissions(0o600))
		if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
			return i.done, fmt.Errorf("lock imports: %w", err)
		}
		defer func() { _ = lock.Close() }()
	}
	known, err := i.known(ctx)
	switch {
	case err != nil:
		return i.done, err
	case known:
		i.done.Status = ImportKnown
		return i.done, nil
	case r.DryRun:
		i.done.Status = ImportWould
		return i.done, nil
	}
	if err := i.register(); err != nil {
		return i.done, err
	}
	i.done.Status = ImportDone
	return i.done, nil
}

// importer holds one import while it is done.
type importer struct {
	e    *Engine
	r    ImportRequest
	now  time.Time
	done Imported

	source os.FileInfo
	report sessions.Report
	info   sessions.Info
	cwd    string // for the header of a copy, "" when it stays
}

// read finds the file, and refuses one that can't be resumed.
func (i *importer) read() *api.Error {
	path, err := filepath.Abs(i.done.Path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return api.Errorf(api.CodeNotFound, "`patio sessions ls` lists session files", "session file %q doesn't exist", i.done.Path)
	}
	if err == nil {
		i.source, err = os.Stat(path)
	}
	if err == nil {
		i.done.Path = path
		err = i.decode()
	}
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "session file: %w", err)
	}
	if i.report.Problems != nil {
		i.done.Problems = i.report.Problems
	}
	i.r.Copy = i.r.Copy || i.r.Cwd != ""
	if p, hopeless := i.report.Hopeless(); hopeless {
		return api.Errorf(api.CodeConfig, "the file was not changed", "%s can't be resumed: %s", path, p)
	}
	if i.report.Header.ID == "" {
		return api.Errorf(api.CodeConfig, "the file was not changed", "%s holds no conversation: Pi had only begun to make it", path)
	}
	return nil
}

// decode reads the file once, for its faults and for what it says of itself.
func (i *importer) decode() error {
	f, err := sessions.Open(i.done.Path)
	if err != nil {
		return err
	}
	var infoErr error
	i.report, err = f.Report()
	i.info, infoErr = f.Info()
	return errors.Join(err, infoErr, f.Close())
}

// chooseWorkspace compares the file's directory with policy. A directory that won't do is
// no reason to refuse the file: a resume asks for another.
func (i *importer) chooseWorkspace() *api.Error {
	cwd := i.report.Header.Cwd
	to := i.r.Cwd
	if to == "" {
		to = movedTo(cwd, i.r.Moved)
	}
	if to != "" {
		abs, err := filepath.Abs(to)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return api.Errorf(api.CodeNotFound, "make the directory first, or name another", "the conversation was in %s: %w", cwd, err)
		}
		if abs != cwd {
			i.cwd, i.r.Copy = abs, true
			i.note("the conversation was in %s: its copy goes on in %s", cwd, abs)
			cwd = abs
		}
	}
	if p, fatal := i.report.Fatal(); fatal && !i.r.Copy {
		return api.Errorf(api.CodeConfig, "import it with --copy: the copy is mended, the file stays as it is", "%s can't be resumed as it is: %s", i.done.Path, p)
	}
	i.done.Workspace = cwd
	if cwd == "" {
		i.note("the file says no directory: name one with `patio resume --cwd`")
		return nil
	}
	p := planner{e: i.e}
	if _, err := p.checkWorkspace(cwd); errors.Is(err, fs.ErrNotExist) {
		i.note("its directory %s is gone: name the new place with --cwd, here or when it is resumed", cwd)
	} else if err != nil {
		i.note("its directory can't be a workspace: %v; name another with --cwd, here or when it is resumed", err)
	}
	return nil
}

func (i *importer) note(format string, args ...any) {
	i.done.Notes = append(i.done.Notes, fmt.Sprintf(format, args...))
}

// movedTo maps a directory, "" when none of those that have moved is it or above it.
func movedTo(cwd string, moved map[string]string) string {
	best, to := "", ""
	for from, place := range moved {
		from = filepath.Clean(from)
		rest, err := filepath.Rel(from, cwd)
		if cwd == "" || err != nil || !filepath.IsLocal(rest) || len(from) <= len(best) {
			continue
		}
		best, to = from, filepath.Join(place, rest)
	}
	return to
}

// known looks for the session that the file is already.
func (i *importer) known(ctx context.Context) (bool, error) {
	all, err := i.e.List(ctx)
	if err != nil {
		return false, err
	}
	for _, s := range all {
		for _, file := range []string{s.SessionFile, s.ImportedFrom} {
			if file == "" {
				continue
			}
			same := file == i.done.Path
			if fi, err := os.Stat(file); err == nil && os.SameFile(fi, i.source) {
				same = true // by another name
			}
			if same {
				i.done.Session, i.done.File, i.done.Workspace, i.done.Notes = s.ID, s.SessionFile, s.Workspace, nil
				return true, nil
			}
		}
	}
	return false, nil
}

// register makes the session's directory, its snapshot last: until then it is no session.
func (i *importer) register() (err error) {
	id := newID()
	dir := i.e.o.Dirs.session(id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	file := i.done.Path
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
		if file != i.done.Path {
			if gone := os.Remove(file); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	if i.r.Copy {
		if file, err = i.copy(id); err != nil {
			return err
		}
	}
	s := i.session(id, file)
	j, err := journal.Open(i.e.journalPath(id), id)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	_, err = j.Append(api.RecordState, api.StateRecord{Phase: s.Phase, Reason: s.End.Reason, End: s.End})
	if err = errors.Join(err, j.Close()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	i.done.Session, i.done.File = id, file
	return supervisor.WriteSession(dir, s)
}

// copy makes the mended copy. Files of the same name don't meet: the second one's copy
// has the session's id in its name.
func (i *importer) copy(id string) (string, error) {
	base := strings.TrimSuffix(filepath.Base(i.done.Path), ".jsonl")
	dir := i.e.o.Dirs.piSessions()
	to := filepath.Join(dir, base+".jsonl")
	if _, err := os.Lstat(to); err == nil {
		to = filepath.Join(dir, base+"-"+id+".jsonl")
	}
	done, err := sessions.Copy(i.done.Path, to, sessions.CopyOptions{Cwd: i.cwd, Repair: true})
	if err != nil {
		return i.done.Path, err
	}
	if done.Dropped > 0 {
		i.note("%d lines that are no entries are left out of the copy", done.Dropped)
	}
	if done.Saved > 0 {
		i.note("%d entries that Pi couldn't read are saved in the copy", done.Saved)
	}
	if done.Changed > 0 {
		i.note("%d line ends and encodings are mended in the copy", done.Changed)
	}
	return to, nil
}

func (i *importer) session(id, file string) api.Session {
	created, ended := i.report.Header.Timestamp, i.info.LastActivity
	if created.IsZero() {
		created = i.source.ModTime().UTC()
	}
	if ended.Before(created) {
		ended = created
	}
	u := i.info.Usage
	return api.Session{
		V: 1, ID: id, Name: sessionName(i.info.Name), Phase: api.PhaseEnded, Created: created, Ended: &ended,
		Workspace: i.done.Workspace, SessionFile: file, ImportedFrom: i.done.Path, StartedBy: "patio sessions import",
		Model:   api.Model{Provider: i.info.Provider, ID: i.info.ModelID, Thinking: i.info.Thinking},
		Turns:   i.info.Counts.User,
		Tokens:  api.Tokens{Input: int(u.Input), Output: int(u.Output), CacheRead: int(u.CacheRead), CacheWrite: int(u.CacheWrite)},
		CostUSD: u.Cost,
		End:     &api.End{Reason: "imported: it goes on with `patio resume " + id + "`"},
	}
}
