package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
)

func resumeCommand(a *app) *cobra.Command {
	var cwd, prompt string
	var quiet, resend bool
	cmd := &cobra.Command{
		Use:   "resume SESSION|FILE.jsonl",
		Short: "Go on with an ended session, or with a session file of Pi's",
		Long: `resume starts a sandbox for a session that has ended, or for a session file that any Pi
wrote, and goes on with its conversation: in its directory, with its model and thinking
level, unless flags or a --profile say otherwise. The file keeps its path. Before Pi has
it, a torn last line is cut off and kept beside it, and a file of the oldest version is
kept as a copy.

A project that has moved is given with --cwd. Pi works where the file says, so the
conversation then goes on in a copy of the file, and the original stays as it is.`,
		Args: arguments(cobra.ExactArgs(1)),
	}
	launch := addLaunchFlags(cmd)
	cmd.Flags().StringVar(&cwd, "cwd", "", "the directory to go on in, when the project has moved")
	cmd.Flags().StringVar(&prompt, "prompt", "", "the first message; resume returns once Pi has taken it")
	cmd.Flags().BoolVar(&resend, "resend", false, "send the last message again if it got no answer")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the id only")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := launch.request(cwd, "patio resume")
		// The conversation's own model beats the defaults of the environment and the
		// configuration file.
		if !a.explicitly(cmd.Flags(), "model") {
			r.Model = ""
		}
		if !a.explicitly(cmd.Flags(), "thinking") {
			r.Thinking = ""
		}
		return a.resume(cmd.Context(), args[0], r, prompt, resend, quiet)
	}
	return cmd
}

func (a *app) resume(ctx context.Context, ref string, r engine.Request, prompt string, resend, quiet bool) error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	launch, err := e.PlanResume(ctx, ref, r)
	if err != nil {
		return err
	}
	if err := a.guardSettings(launch.Session.Workspace); err != nil {
		return err
	}
	unanswered, err := e.Unanswered(ctx, launch.Session.ID)
	if err != nil {
		return err
	}
	s, err := a.start(ctx, e, launch)
	if err != nil {
		return causeOf(ctx, err)
	}
	for _, note := range launch.Session.Plan.Notes {
		a.note("%s", note)
	}
	if unanswered != "" && !resend {
		a.note("the last message got no answer; `patio send` it again, or resume with --resend: %s", unanswered)
	}
	if resend && prompt == "" {
		prompt = unanswered
	}
	if prompt != "" {
		if err := a.firstPrompt(ctx, s, prompt); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(a.display(), s.ID); err != nil || quiet {
		return err
	}
	a.note("%s goes on in %s with %s", firstNonEmpty(s.Name, s.ID), s.Workspace, firstNonEmpty(s.Model.String(), "no model"))
	return nil
}

// start starts a planned session, showing its phases while that takes.
func (a *app) start(ctx context.Context, e *engine.Engine, launch *engine.Launch) (api.Session, error) {
	p := a.phases()
	defer p.clear()
	s, err := e.Start(ctx, launch, p.show)
	if err != nil && s.ID == "" {
		s = launch.Session
	}
	return s, err
}
