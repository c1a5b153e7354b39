package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/engine/supervisor"
	"patio/sessions"
)

// imports is where sessions are made of files; they are moved to the others when they
// are whole.
func (d Dirs) imports() string { return filepath.Join(d.State, "imports") }

// halfImport is a session that is being made of a file. Its directory lies among the
// imports, and a copy of the file, for which that of Pi's session files may be another
// file system, in a hidden directory there, where neither Pi nor patio looks. Both have
// the session's id, so that what a killed import has left is found: see recoverImports.
type halfImport struct {
	e       *Engine
	id      string
	dir     string
	copyDir string
	copied  string // in copyDir
}

func (e *Engine) halfImport(id string) halfImport {
	copyDir := filepath.Join(e.o.Dirs.piSessions(), ".import-"+id)
	return halfImport{e: e, id: id, dir: filepath.Join(e.o.Dirs.imports(), id), copyDir: copyDir, copied: filepath.Join(copyDir, "copy")}
}

// errRefused ends the import of one file, whose Imported says why.
var errRefused = errors.New("refused")

// register makes the session.
func (i *importer) register() (s api.Session, err error) {
	h := i.e.halfImport(newID())
	for _, step := range i.steps(h, &s) {
		if err := step(); err != nil {
			left := h.remove()
			if left != nil && errors.Is(err, errRefused) {
				return s, left // the file is no longer all that is wrong
			}
			return s, errors.Join(err, left)
		}
	}
	return s, nil
}

// steps make a session of a file. A process that is killed after any of them leaves what
// recoverImports finishes or removes.
func (i *importer) steps(h halfImport, s *api.Session) []func() error {
	steps := []func() error{h.make}
	file := i.done.Path
	if i.r.Copy {
		file = i.copyName(h.id)
		steps = append(steps, h.makeCopyDir, func() error { return i.copy(h.copied) })
	}
	*s = i.session(h.id, file)
	return append(steps,
		func() error { return h.journal(*s) },
		func() error { return supervisor.WriteSession(h.dir, *s) },
		func() error { return h.placeCopy(*s) },
		h.finish)
}

func (h halfImport) make() error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

func (h halfImport) makeCopyDir() error {
	if err := os.Mkdir(h.copyDir, 0o700); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// copyName is the path of the copy. Files of the same name don't meet: the second one's
// copy has the session's id in its name.
func (i *importer) copyName(id string) string {
	base := strings.TrimSuffix(filepath.Base(i.done.Path), ".jsonl")
	to := filepath.Join(i.e.o.Dirs.piSessions(), base+".jsonl")
	if _, err := os.Lstat(to); err == nil {
		to = filepath.Join(i.e.o.Dirs.piSessions(), base+"-"+id+".jsonl")
	}
	return to
}

// copy makes the mended copy.
func (i *importer) copy(to string) error {
	done, err := sessions.Copy(i.done.Path, to, sessions.CopyOptions{Cwd: i.cwd, Repair: true})
	if err != nil && i.blames(err) {
		i.done.Error = api.Errorf(api.CodeConfig, "the file was not changed", "%w", err)
		return errRefused
	}
	if err != nil {
		return err
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
	return nil
}

// blames says whether a copy failed for its source, which was removed or spoiled since it
// was read. What fails at another path is patio's own trouble.
func (i *importer) blames(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	if errors.As(err, &path) {
		return path.Path == i.done.Path
	}
	return !errors.As(err, &link)
}

func (h halfImport) journal(s api.Session) error {
	j, err := journal.Open(filepath.Join(h.dir, supervisor.JournalFile), h.id)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	_, err = j.Append(api.RecordState, api.StateRecord{Phase: s.Phase, Reason: s.End.Reason, End: s.End})
	if err = errors.Join(err, j.Close()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// placeCopy gives the copy its name. A link, unlike a rename, never overwrites.
func (h halfImport) placeCopy(s api.Session) error {
	if s.SessionFile == s.ImportedFrom {
		return nil
	}
	if err := os.Link(h.copied, s.SessionFile); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// finish makes it a session like the others.
func (h halfImport) finish() error {
	err := os.RemoveAll(h.copyDir)
	if err == nil {
		err = os.Rename(h.dir, h.e.o.Dirs.session(h.id))
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// placed says whether only finish is left to do: the snapshot is written, and the copy,
// if there is one, has its name.
func (h halfImport) placed() (api.Session, bool) {
	s, err := supervisor.ReadSession(h.dir)
	if err != nil {
		return s, false
	}
	if s.SessionFile == s.ImportedFrom {
		return s, true
	}
	to, err := os.Lstat(s.SessionFile)
	if err != nil {
		return s, false
	}
	from, err := os.Lstat(h.copied)
	return s, errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(from, to)
}

// remove removes all of it. The directory that names it goes last.
func (h halfImport) remove() error {
	var errs []error
	if s, ok := h.placed(); ok && s.SessionFile != s.ImportedFrom {
		errs = append(errs, os.Remove(s.SessionFile))
	}
	// Without a snapshot nobody takes the rest for a session.
	if err := os.Remove(filepath.Join(h.dir, supervisor.SessionFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, os.RemoveAll(h.copyDir), os.RemoveAll(h.dir))...)
}

// recoverImports ends what a killed import has left: what was as good as done becomes a
// session, the rest goes. The caller holds the lock of imports. What can't be ended is
// tried again the next time, and keeps nothing else from being done.
func (e *Engine) recoverImports() {
	entries, err := os.ReadDir(e.o.Dirs.imports())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	errs := []error{err}
	for _, entry := range entries {
		h := e.halfImport(entry.Name())
		e.o.Log.Info("end an import that was lost", "session", h.id)
		if _, ok := h.placed(); ok {
			errs = append(errs, h.finish())
		} else {
			errs = append(errs, h.remove())
		}
	}
	if err := errors.Join(errs...); err != nil {
		e.o.Log.Warn("clean up after a lost import", "err", err)
	}
}
