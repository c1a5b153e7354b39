package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

func newCommand(a *app) *cobra.Command {
	var prompt string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "new [PATH]",
		Short: "Start a session in PATH (default: here) and print its id",
		Args:  arguments(cobra.MaximumNArgs(1)),
	}
	launch := addLaunchFlags(cmd)
	cmd.Flags().StringVar(&prompt, "prompt", "", "the first message; new returns once Pi has taken it")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the id only")
	cmd.ValidArgsFunction = completeDirectory
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.newSession(cmd.Context(), launch, workspaceArgument(args), prompt, quiet)
	}
	return cmd
}

func completeDirectory(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func (a *app) newSession(ctx context.Context, l *launchFlags, workspace, prompt string, quiet bool) error {
	s, err := a.launch(ctx, l.request(workspace, "patio new"))
	if err != nil {
		return causeOf(ctx, err)
	}
	if prompt != "" {
		if err := a.firstPrompt(ctx, s, prompt); err != nil {
			return err
		}
	}
	if quiet {
		_, err := fmt.Fprintln(a.display(), s.ID)
		return err
	}
	if _, err := fmt.Fprintf(a.display(), "%s\n", s.ID); err != nil {
		return err
	}
	a.note("%s is %s in %s with %s", firstNonEmpty(s.Name, s.ID), stateOf(s), s.Workspace, firstNonEmpty(s.Model.String(), "no model"))
	a.note("next: patio send %s --wait MESSAGE · patio logs -f %s · patio stop %s", s.ID, s.ID, s.ID)
	return nil
}

// firstPrompt gives a new session its first message. One that refuses it is stopped: the
// caller has no id to do that with.
func (a *app) firstPrompt(ctx context.Context, s api.Session, prompt string) error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	client := e.Client(s.ID, clientCLI)
	defer client.Close()
	_, err = client.Prompt(ctx, api.PromptRequest{Message: prompt})
	if err == nil {
		return nil
	}
	err = causeOf(ctx, err)
	stop, cancel := cleanup(ctx)
	defer cancel()
	return errors.Join(err, e.Stop(stop, s, api.StopRequest{Reason: "the first prompt failed"}))
}
