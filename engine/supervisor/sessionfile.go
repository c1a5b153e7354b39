package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"patio/engine/api"
	"patio/sessions"
)

// lockSessionFile makes this session the only writer of a session file of Pi's: two
// writers lose a branch. The lock is in patio's own directory, named for the file's path,
// and says whose it is.
func lockSessionFile(dir, path, session string) (release func(), err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	sum := sha256.Sum256([]byte(path))
	name := filepath.Join(dir, hex.EncodeToString(sum[:16])+".lock")
	lock := flock.New(name, flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock session file: %w", err)
	}
	if !locked {
		holder, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("lock session file: %w", err)
		}
		return nil, api.Errorf(api.CodeConflict, "send to that session, or stop it first", "session %s goes on with %s now", strings.TrimSpace(string(holder)), path)
	}
	if err := os.WriteFile(name, []byte(session+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock session file: %w", err), lock.Close())
	}
	// The file stays: removing it would let two sessions hold locks of the same name.
	return func() { _ = lock.Close() }, nil
}

// takeSessionFile locks the file to go on with, makes it if it is to be a copy, and makes
// it fit. A session that starts a file of its own has nothing to take.
func (s *Supervisor) takeSessionFile() (release func(), err error) {
	path := s.spec.SessionFile
	if path == "" {
		return func() {}, nil
	}
	release, err = lockSessionFile(s.spec.Locks, path, s.spec.Session.ID)
	if err != nil {
		return nil, err
	}
	if s.spec.CopyFrom != "" {
		err = sessions.CopyTo(s.spec.CopyFrom, path, s.spec.Sandbox.Cwd)
	}
	if err == nil {
		err = prepareSessionFile(path)
	}
	if err == nil {
		if err = chown(path, s.spec.Sandbox.Owner); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// prepareSessionFile makes a file fit for Pi to go on with: its tail whole, and a version
// 1 file, which Pi rewrites in place, kept as a copy.
func prepareSessionFile(path string) error {
	_, err := sessions.RepairTail(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Pi makes it with the first answer
	}
	if err != nil {
		return fmt.Errorf("repair session file: %w", err)
	}
	f, err := sessions.Open(path)
	if err != nil {
		return fmt.Errorf("read session file: %w", err)
	}
	version := f.Header().Version
	if err := f.Close(); err != nil {
		return err
	}
	if version >= 2 {
		return nil
	}
	return keepCopy(path, path+".v1")
}

// keepCopy copies a file once; a copy that is there is older, and so the one to keep.
func keepCopy(path, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	in, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("keep a copy of the session file: %w", err)
	}
	defer func() { _ = in.Close() }()
	out, err := renameio.NewPendingFile(to, renameio.WithTempDir(filepath.Dir(to)), renameio.WithPermissions(0o600))
	if err != nil {
		return fmt.Errorf("keep a copy of the session file: %w", err)
	}
	defer func() { _ = out.Cleanup() }()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("keep a copy of the session file: %w", err)
	}
	return out.CloseAtomicallyReplace()
}
