package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"patio/engine/api"
	"patio/sessions"
)

// importer holds the import of one file while it is done.
type importer struct {
	e    *Engine
	r    ImportRequest
	done Imported

	source os.FileInfo
	report sessions.Report
	info   sessions.Info
	cwd    string // for the header of a copy, "" when it stays
}

// examine reads the file and finds what is against it. A file that is known isn't read:
// an import that was interrupted and is repeated goes on fast.
func (i *importer) examine(known *knownFiles) {
	if i.done.Error = i.find(); i.done.Error != nil {
		return
	}
	if i.isKnown(known) {
		return
	}
	if i.done.Error = i.read(); i.done.Error == nil {
		i.done.Error = i.chooseWorkspace()
	}
}

// isKnown asks whether the file is a session already.
func (i *importer) isKnown(known *knownFiles) bool {
	k, ok := known.find(i.done.Path, i.source)
	if !ok {
		return false
	}
	i.done.Status, i.done.Session, i.done.File, i.done.Workspace, i.done.Notes = ImportKnown, k.session, k.file, k.workspace, nil
	if k.session == "" {
		i.note("the same file as %s", k.path)
	}
	return true
}

// finish makes the file a session, if nothing is against it. The caller holds the lock,
// unless it is a dry run.
func (i *importer) finish(known *knownFiles) error {
	if i.done.Error != nil {
		return nil
	}
	if i.isKnown(known) {
		return nil
	}
	if i.done.Status == ImportKnown {
		// Its session was removed since.
		i.done.Status, i.done.Session, i.done.File = ImportRefused, "", ""
		if i.done.Error = i.read(); i.done.Error == nil {
			i.done.Error = i.chooseWorkspace()
		}
		if i.done.Error != nil {
			return nil
		}
	}
	if i.r.DryRun {
		i.done.Status = ImportWould
		known.add(knownFile{path: i.done.Path, workspace: i.done.Workspace}, i.source)
		return nil
	}
	s, err := i.register()
	if errors.Is(err, errRefused) {
		return nil
	}
	if err != nil {
		return err
	}
	i.done.Status, i.done.Session, i.done.File = ImportDone, s.ID, s.SessionFile
	known.addSession(s)
	return nil
}

// find finds the file.
func (i *importer) find() *api.Error {
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
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "session file: %w", err)
	}
	i.done.Path = path
	return nil
}

// read reads the file, and refuses one that can't be resumed.
func (i *importer) read() *api.Error {
	if err := i.decode(); err != nil {
		return api.Errorf(api.CodeConfig, "", "session file: %w", err)
	}
	if i.report.Problems != nil {
		i.done.Problems = i.report.Problems
	}
	i.r.Copy = i.r.Copy || i.r.Cwd != ""
	if p, hopeless := i.report.Hopeless(); hopeless {
		return api.Errorf(api.CodeConfig, "the file was not changed", "%s can't be resumed: %s", i.done.Path, p)
	}
	if i.report.Header.ID == "" {
		return api.Errorf(api.CodeConfig, "the file was not changed", "%s holds no conversation: Pi had only begun to make it", i.done.Path)
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

// session is the snapshot of the session that the file becomes.
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
