package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"patio/engine/api"
	"patio/sessions/catalog"
)

// SessionCatalog says where Pi's session files are: those of the caller's own Pi, patio's,
// and of the directories that the options and the caller name. It is good even when the
// error isn't nil: that tells which directories were left out.
func (e *Engine) SessionCatalog(extra ...string) (catalog.Options, error) {
	p := planner{e: e}
	roots, err := catalog.Roots(p.getenv, e.o.Dirs.piSessions(), slices.Concat(e.o.SessionDirs, extra)...)
	return catalog.Options{Roots: roots, Index: filepath.Join(e.o.Dirs.Cache, "sessions.index")}, err
}

// SessionFiles lists the files of SessionCatalog. What can't be looked at is among the
// list's problems.
func (e *Engine) SessionFiles(ctx context.Context, extra ...string) (catalog.List, error) {
	options, rootsErr := e.SessionCatalog(extra...)
	list, err := catalog.Scan(ctx, options)
	if err != nil {
		return list, err
	}
	if rootsErr != nil {
		list.Problems = append(list.Problems, catalog.Problem{Path: "session directories", Err: rootsErr})
	}
	return list, nil
}

// FindSessionFile returns the path of a session file: of a path, of a session of patio's,
// or of an id of Pi's or a unique beginning of one.
func (e *Engine) FindSessionFile(ctx context.Context, ref string) (string, error) {
	if strings.HasSuffix(ref, ".jsonl") || strings.ContainsRune(ref, filepath.Separator) {
		path, err := filepath.Abs(ref)
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(path); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return "", api.Errorf(api.CodeNotFound, "`patio sessions ls` lists session files", "session file %q doesn't exist", ref)
			}
			return "", api.Errorf(api.CodeConfig, "", "session file: %w", err)
		}
		return path, nil
	}
	s, err := e.Find(ctx, ref)
	switch {
	case err == nil && s.SessionFile != "":
		return s.SessionFile, nil
	case err == nil:
		return "", api.Errorf(api.CodeNotFound, "", "session %s has no file of Pi's: it never became ready", s.ID)
	case api.AsError(err).Code != api.CodeNotFound:
		return "", err
	}
	list, err := e.SessionFiles(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, f := range list.Sessions {
		if f.ID != "" && strings.HasPrefix(f.ID, ref) {
			found = append(found, f.Path)
		}
	}
	switch len(found) {
	case 0:
		return "", api.Errorf(api.CodeNotFound, "`patio sessions ls` lists session files", "no session file %q", ref)
	case 1:
		return found[0], nil
	}
	return "", api.Errorf(api.CodeConflict, "", "%q is ambiguous: %s", ref, strings.Join(found, ", "))
}
