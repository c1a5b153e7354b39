package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
)

func stopCommand(a *app) *cobra.Command {
	var all, now bool
	cmd := &cobra.Command{
		Use:               "stop ID…",
		Short:             "End sessions; their files stay",
		ValidArgsFunction: a.completeSessions(true, live),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every running session of yours")
	cmd.Flags().BoolVar(&now, "now", false, "kill it without letting Pi finish what it writes")
	cmd.Args = idsOrAll(&all)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.eachSession(cmd.Context(), args, all, live, func(ctx context.Context, e *engine.Engine, s api.Session) error {
			return e.Stop(ctx, s, api.StopRequest{Reason: "patio stop", Now: now})
		})
	}
	return cmd
}

func rmCommand(a *app) *cobra.Command {
	var all, force bool
	cmd := &cobra.Command{
		Use:               "rm ID…",
		Short:             "Remove ended sessions with their journals",
		ValidArgsFunction: a.completeSessions(true, ended),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every session of yours that has ended")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also one that runs: it is killed first")
	cmd.Args = idsOrAll(&all)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.eachSession(cmd.Context(), args, all, ended, func(ctx context.Context, e *engine.Engine, s api.Session) error {
			return e.Remove(ctx, s, force)
		})
	}
	return cmd
}

// idsOrAll wants ids, or --all without any.
func idsOrAll(all *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case *all && len(args) > 0:
			return usageError("usage: "+cmd.UseLine(), "--all takes no ids")
		case !*all && len(args) == 0:
			return usageError("usage: "+cmd.UseLine()+", or --all", "no session is named")
		}
		return nil
	}
}

// atOnce bounds how many sessions are ended at a time.
const atOnce = 8

// eachSession does something to each named session, several at a time, and prints the id
// of each that worked. Names that can't be found stop it before anything is done.
func (a *app) eachSession(ctx context.Context, refs []string, all bool, want func(api.Session) bool, do func(context.Context, *engine.Engine, api.Session) error) error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	sessions, err := selectSessions(ctx, e, refs, all, want)
	if err != nil {
		return err
	}
	errs := make([]error, len(sessions))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, s := range sessions {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(ctx, e, s)
		})
	}
	wg.Wait()
	for i, s := range sessions {
		if errs[i] == nil {
			_, errs[i] = fmt.Fprintln(a.display(), s.ID)
		} else if len(sessions) > 1 {
			errs[i] = fmt.Errorf("%s: %w", s.ID, errs[i])
		}
	}
	return causeOf(ctx, errors.Join(errs...))
}

func selectSessions(ctx context.Context, e *engine.Engine, refs []string, all bool, want func(api.Session) bool) ([]api.Session, error) {
	var sessions []api.Session
	if all {
		everything, err := e.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range everything {
			if want(s) {
				sessions = append(sessions, s)
			}
		}
		return sessions, nil
	}
	var errs []error
	seen := map[string]bool{}
	for _, ref := range refs {
		s, err := e.Find(ctx, ref)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !seen[s.ID]:
			seen[s.ID] = true
			sessions = append(sessions, s)
		}
	}
	return sessions, errors.Join(errs...)
}
