package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"patio/engine/api"
)

// The files of a session's directory.
const (
	// LockFile is locked by the supervisor while it lives. A lock that nobody holds and a
	// session that hasn't ended mean a crash.
	LockFile    = "lock"
	JournalFile = "journal.ndjson"
	SessionFile = "session.json"
	LogFile     = "supervisor.log"
	// AgentDir is Pi's own state.
	AgentDir = "agent"
)

// WriteSession writes a session's snapshot to its directory, whole or not at all.
func WriteSession(dir string, s api.Session) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode session: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(dir, SessionFile), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	return nil
}

// ReadSession reads the snapshot that WriteSession wrote.
func ReadSession(dir string) (api.Session, error) {
	var s api.Session
	b, err := os.ReadFile(filepath.Join(dir, SessionFile))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("decode %s: %w", filepath.Join(dir, SessionFile), err)
	}
	return s, nil
}

func (s *Supervisor) save() error {
	s.saveMu.Lock()
	defer s.saveMu.Unlock()
	return WriteSession(s.spec.Dir, s.Session())
}
