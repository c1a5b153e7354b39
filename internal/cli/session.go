package cli

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"time"

	"patio/engine"
	"patio/engine/api"
)

// clientCLI names the commands in the journal.
const clientCLI = "cli"

// find looks a session up by id, by the beginning of one, or by name.
func (a *app) find(ctx context.Context, ref string) (*engine.Engine, api.Session, error) {
	e, err := a.engine()
	if err != nil {
		return nil, api.Session{}, err
	}
	s, err := e.Find(ctx, ref)
	return e, s, err
}

// running is find for a command that needs the session to live.
func (a *app) running(ctx context.Context, ref string) (*engine.Engine, api.Session, error) {
	e, s, err := a.find(ctx, ref)
	if err != nil {
		return nil, s, err
	}
	if s.Phase.Final() {
		return nil, s, api.Errorf(api.CodeConflict, "`patio logs "+s.ID+"` shows what happened", "session %s isn't running: it %s", s.ID, pastPhase(s))
	}
	return e, s, nil
}

func pastPhase(s api.Session) string {
	if s.End != nil && s.End.Reason != "" {
		return string(s.Phase) + " (" + s.End.Reason + ")"
	}
	return string(s.Phase)
}

// stateOf is phase and activity in one word, as tables show it.
func stateOf(s api.Session) string {
	if s.Phase == api.PhaseReady && s.Activity != "" {
		if s.Activity == api.ActivityBlocked {
			return "needs answer"
		}
		return string(s.Activity)
	}
	return string(s.Phase)
}

// ageOf is how long a session has been there, or how long ago it ended.
func ageOf(s api.Session, now time.Time) string {
	if s.Ended != nil {
		return formatAge(now.Sub(*s.Ended)) + " ago"
	}
	return formatAge(now.Sub(s.Created))
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// homePath writes a path below home with a tilde.
func homePath(path, home string) string {
	if home != "" && home != "/" {
		if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == '/') {
			return "~" + rest
		}
	}
	return path
}

func isClosed(err error) bool { return errors.Is(err, net.ErrClosed) }
