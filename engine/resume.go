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

	"patio/engine/api"
	"patio/engine/supervisor"
	"patio/sessions"
)

// PlanResume works out how an ended session, or a session file of Pi's, goes on. Ref is a
// session, or a path to a .jsonl file. The workspace is the one in the file's header, for
// Pi itself obeys that; r.Workspace re-maps it, which goes on in a copy of the file. Model
// and thinking level are those of the conversation unless r names others.
func (e *Engine) PlanResume(ctx context.Context, ref string, r Request) (*Launch, error) {
	p := planner{e: e, r: r, now: time.Now().UTC()}
	if err := p.findResumed(ctx, ref); err != nil {
		return nil, err
	}
	if p.before != nil && !p.before.Phase.Final() {
		return nil, api.Errorf(api.CodeConflict, "`patio send` talks to it", "session %s is %s", p.before.ID, p.before.Phase)
	}
	if err := p.readConversation(); err != nil {
		return nil, err
	}
	return p.plan()
}

// findResumed finds the session and its file.
func (p *planner) findResumed(ctx context.Context, ref string) error {
	if strings.HasSuffix(ref, ".jsonl") || strings.ContainsRune(ref, filepath.Separator) {
		path, err := filepath.Abs(ref)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return api.Errorf(api.CodeNotFound, "`patio sessions ls` lists session files", "session file %q doesn't exist", ref)
		}
		if err != nil {
			return api.Errorf(api.CodeConfig, "", "session file: %w", err)
		}
		p.sessionFile = path
		// A file that a session of patio's wrote belongs to that session.
		all, err := p.e.List(ctx)
		if err != nil {
			return err
		}
		for i := range all {
			if all[i].SessionFile == path {
				p.before = &all[i]
				break
			}
		}
		return nil
	}
	s, err := p.e.Find(ctx, ref)
	if err != nil {
		return err
	}
	p.before, p.sessionFile = &s, s.SessionFile
	if p.sessionFile == "" {
		// It never became ready: there is nothing to go on with but the launch itself.
		p.r = requestOf(s, p.r)
	}
	return nil
}

// requestOf fills what the caller left open with the launch before.
func requestOf(s api.Session, r Request) Request {
	if r.Workspace == "" {
		r.Workspace = s.Workspace
	}
	if r.Model == "" {
		r.Model = s.Model.String()
	}
	if r.Thinking == "" {
		r.Thinking = s.Model.Thinking
	}
	return r
}

// readConversation takes workspace, model and thinking level from the session file.
func (p *planner) readConversation() error {
	if p.before != nil {
		for _, rule := range p.before.Plan.Egress {
			if rule.Source == "flag" {
				p.r.Allow = append(p.r.Allow, rule.String())
			}
		}
	}
	if p.sessionFile == "" {
		return nil
	}
	f, err := sessions.Open(p.sessionFile)
	if errors.Is(err, fs.ErrNotExist) && p.before != nil {
		// Pi makes its file with the first answer; a session without one starts anew there.
		p.notes = append(p.notes, "the conversation has no answer yet: it starts anew")
		p.r = requestOf(*p.before, p.r)
		return nil
	}
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "session file: %w", err)
	}
	defer func() { _ = f.Close() }()
	if problem, fatal := f.Fatal(); fatal {
		return api.Errorf(api.CodeConfig, "the file was not changed", "%s can't be resumed: %s", p.sessionFile, problem)
	}
	for _, problem := range f.Problems() {
		p.notes = append(p.notes, p.sessionFile+": "+problem.String())
	}
	info, err := f.Info()
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "session file: %w", err)
	}
	if p.r.Model == "" {
		p.r.Model = info.Model()
	}
	if p.r.Thinking == "" {
		p.r.Thinking = info.Thinking
	}
	if p.r.Name == "" && p.before == nil {
		p.r.Name = sessionName(info.Name)
	}
	return p.chooseWorkspace(f.Header().Cwd)
}

// chooseWorkspace compares the file's own directory with the one asked for.
func (p *planner) chooseWorkspace(cwd string) error {
	if p.r.Workspace == "" {
		if cwd == "" {
			return api.Errorf(api.CodeConfig, "name the directory with --cwd", "the session file says no directory")
		}
		if _, err := os.Stat(cwd); errors.Is(err, fs.ErrNotExist) {
			return api.Errorf(api.CodeNotFound, "name the directory's new place with --cwd", "the session's directory %q is gone", cwd)
		}
		p.r.Workspace = cwd
		return nil
	}
	abs, err := filepath.Abs(p.r.Workspace)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return api.Errorf(api.CodeNotFound, "", "workspace: %w", err)
	}
	if abs != cwd {
		// Pi goes where the header says, so a moved project needs another header: in a copy.
		p.remapFrom = p.sessionFile
		p.sessionFile = remapped(p.e.o.Dirs.piSessions(), p.remapFrom, p.now)
		p.notes = append(p.notes, fmt.Sprintf("the conversation was in %s: it goes on in a copy, %s", cwd, p.sessionFile))
	}
	return nil
}

// sessionName is a name of Pi's as a name of patio's, "" when it can't be one.
func sessionName(name string) string {
	if checkName(name) != nil {
		return ""
	}
	return name
}

// claim writes the snapshot of a session that goes on, if it is still at its end: of two
// that resume it at once, one does.
func (e *Engine) claim(ctx context.Context, dir string, next api.Session) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	lock := e.lock(next.ID)
	taken := api.Errorf(api.CodeConflict, "`patio send` talks to it", "session %s goes on already", next.ID)
	// Whoever lists sessions may hold it for a moment; who has it longer is a supervisor.
	if _, err := lock.TryLockContext(ctx, lockRetry); errors.Is(err, context.DeadlineExceeded) {
		return taken
	} else if err != nil {
		return fmt.Errorf("claim session: %w", err)
	}
	defer func() { _ = lock.Close() }()
	now, err := supervisor.ReadSession(dir)
	if err != nil {
		return fmt.Errorf("claim session: %w", err)
	}
	if !now.Phase.Final() {
		return taken
	}
	return supervisor.WriteSession(dir, next)
}

// resumed is the snapshot of a session that goes on: what it did stays, how it ended goes.
func resumed(s api.Session, name string) api.Session {
	if name != "" {
		s.Name = name
	}
	s.Ready, s.Ended, s.End, s.Error, s.Usage, s.Questions, s.Activity = nil, nil, nil, nil, nil, nil, ""
	return s
}

// remapped names the copy of a session file that goes on in another directory.
func remapped(dir, file string, now time.Time) string {
	base := strings.TrimSuffix(filepath.Base(file), ".jsonl")
	return filepath.Join(dir, fmt.Sprintf("%s-moved-%s.jsonl", base, now.Format("20060102T150405")))
}
