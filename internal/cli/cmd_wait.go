package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
)

// What wait can wait for.
const (
	waitIdle = "idle"
	waitExit = "exit"
)

func waitCommand(a *app) *cobra.Command {
	var until string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a session is idle, or has ended",
		Long: `wait returns when the session is idle (Pi has nothing to do) or has ended, as --for says.
Waiting for idle fails when the session ends (9) or asks a question (12).`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions(false, live),
	}
	f := cmd.Flags()
	f.StringVar(&until, "for", waitIdle, "idle or exit")
	f.DurationVar(&timeout, "timeout", 0, "give up after this long, such as 10m; 0 is never")
	completeFlag(cmd, "for", waitIdle, waitExit)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if until != waitIdle && until != waitExit {
			return usageError("", "--for %s: idle or exit", until)
		}
		ctx := cmd.Context()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout,
				api.Errorf(api.CodeTimeout, "", "session %s is not at %s after %s", args[0], until, timeout))
			defer cancel()
		}
		e, s, err := a.find(ctx, args[0])
		if err != nil {
			return err
		}
		return causeOf(ctx, waitFor(ctx, e, s, until))
	}
	return cmd
}

// waitFor follows a session's journal until what is waited for has come.
func waitFor(ctx context.Context, e *engine.Engine, s api.Session, until string) error {
	if s.Phase.Final() {
		return endedEarly(s, until)
	}
	client := e.Client(s.ID, clientCLI)
	defer client.Close()
	return watchFor(ctx, client, e, s.ID, until)
}

// watchFor is waitFor for a session that lived a moment ago. Each change of state is a
// reason to look again; the snapshot decides, so that nothing is missed in between.
func watchFor(ctx context.Context, client *api.Client, e *engine.Engine, id, until string) error {
	reached := func() (bool, error) {
		s, err := client.Session(ctx)
		if err != nil {
			return false, err
		}
		if s.Phase.Final() {
			return true, endedEarly(s, until)
		}
		if until == waitExit || s.Phase != api.PhaseReady {
			return false, nil
		}
		if s.Activity == api.ActivityBlocked && len(s.Questions) > 0 {
			return true, questionError(&s.Questions[0], "answer it with `patio rpc "+id+"`, or end the turn with `patio abort "+id+"`")
		}
		return s.Activity == api.ActivityIdle, nil
	}
	start, err := client.Session(ctx)
	if err == nil {
		r := &records{client: client, id: id, since: start.Seq, types: []string{api.RecordState}}
		done, verdict := false, error(nil)
		if done, verdict = reached(); done {
			return verdict
		}
		err = r.follow(ctx, func([]byte) error {
			if done, verdict = reached(); done {
				return errDone
			}
			return nil
		})
		if done {
			return verdict
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The supervisor is gone: how it ended is on disk.
	s, findErr := e.Find(ctx, id)
	if findErr != nil {
		return findErr
	}
	if s.Phase.Final() {
		return endedEarly(s, until)
	}
	if err == nil {
		err = api.Errorf(api.CodeInternal, "try again", "the session's supervisor closed its journal")
	}
	return err
}

// endedEarly is nil when the end was waited for.
func endedEarly(s api.Session, until string) error {
	if until == waitExit {
		return nil
	}
	return api.Errorf(api.CodeConflict, "`patio logs "+s.ID+"` shows what happened", "session %s isn't running: it %s", s.ID, pastPhase(s))
}
