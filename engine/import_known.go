package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"patio/engine/api"
	"patio/engine/supervisor"
)

// knownFiles are the session files that sessions have or were imported from, by path and,
// for a file has more than one name, by inode. It is safe for concurrent use.
type knownFiles struct {
	e     *Engine
	reads int // of sessions

	mu      sync.Mutex
	seen    map[string]bool // ids of sessions
	byPath  map[string][]knownFile
	byInode map[inode][]knownFile
}

type inode struct{ dev, ino uint64 }

// knownFile is a file and what it is known as.
type knownFile struct {
	path      string
	session   string // "" for one that a dry run would import
	file      string // that the session goes on with
	workspace string
}

// knownFiles lists all sessions, once.
func (e *Engine) knownFiles(ctx context.Context) (*knownFiles, error) {
	k := &knownFiles{e: e, seen: map[string]bool{}, byPath: map[string][]knownFile{}, byInode: map[inode][]knownFile{}}
	all, err := e.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		k.reads++
		k.addSession(s)
	}
	return k, nil
}

// refresh takes in the sessions that others have made since.
func (k *knownFiles) refresh(ctx context.Context) error {
	entries, err := os.ReadDir(k.e.o.Dirs.sessions())
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for _, entry := range entries {
		k.mu.Lock()
		seen := k.seen[entry.Name()]
		k.mu.Unlock()
		if seen {
			continue
		}
		k.reads++
		s, err := k.e.load(ctx, entry.Name())
		switch {
		case err == nil:
			k.addSession(s)
		case !errors.Is(err, fs.ErrNotExist): // no session, or not yet
			k.mu.Lock()
			k.seen[entry.Name()] = true
			k.mu.Unlock()
		}
	}
	return nil
}

func (k *knownFiles) addSession(s api.Session) {
	k.mu.Lock()
	k.seen[s.ID] = true
	k.mu.Unlock()
	for n, path := range []string{s.SessionFile, s.ImportedFrom} {
		if path == "" || n == 1 && path == s.SessionFile {
			continue
		}
		fi, err := os.Stat(path)
		if err != nil {
			fi = nil // it is gone, and may come back
		}
		k.add(knownFile{path: path, session: s.ID, file: s.SessionFile, workspace: s.Workspace}, fi)
	}
}

func (k *knownFiles) add(f knownFile, fi os.FileInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byPath[f.path] = append(k.byPath[f.path], f)
	if id, ok := inodeOf(fi); ok {
		k.byInode[id] = append(k.byInode[id], f)
	}
}

// find returns what a file is known as. Only what is still so counts: a session may have
// been removed since it was listed, and the number of an inode be given to another file.
func (k *knownFiles) find(path string, fi os.FileInfo) (knownFile, bool) {
	k.mu.Lock()
	named := k.byPath[path]
	var same []knownFile
	if id, ok := inodeOf(fi); ok {
		same = k.byInode[id]
	}
	k.mu.Unlock()
	for _, f := range named {
		if k.exists(f) {
			return f, true
		}
	}
	for _, f := range same {
		if now, err := os.Stat(f.path); err == nil && os.SameFile(now, fi) && k.exists(f) {
			return f, true
		}
	}
	return knownFile{}, false
}

func (k *knownFiles) exists(f knownFile) bool {
	if f.session == "" {
		return true
	}
	_, err := os.Lstat(filepath.Join(k.e.o.Dirs.session(f.session), supervisor.SessionFile))
	return err == nil
}

func inodeOf(fi os.FileInfo) (inode, bool) {
	if fi == nil {
		return inode{}, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, false
	}
	return inode{dev: st.Dev, ino: st.Ino}, true
}
