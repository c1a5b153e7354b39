package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

type sendFlags struct {
	steer, followUp, wait, json, quiet bool
}

func sendCommand(a *app) *cobra.Command {
	s := &sendFlags{}
	cmd := &cobra.Command{
		Use:   "send ID MESSAGE",
		Short: "Send a message to a running session",
		Long: `send gives a running session a message (the arguments, or stdin when there are none or
"-") and returns once Pi has taken it, or with --wait when it has answered. A session that
works needs --steer (change its course now) or --follow-up (when it is done).`,
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeSessions(false, live),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.send(cmd.Context(), s, args[0], args[1:])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&s.steer, "steer", false, "change the course of a session that works")
	f.BoolVar(&s.followUp, "follow-up", false, "be next when the session is done")
	f.BoolVarP(&s.wait, "wait", "w", false, "stream the answer and wait for its end")
	f.BoolVar(&s.json, "json", false, "with --wait the journal's records, one a line; else where the answer starts")
	f.BoolVarP(&s.quiet, "quiet", "q", false, "with --wait: don't tell on stderr what Pi does")
	cmd.MarkFlagsMutuallyExclusive("steer", "follow-up")
	return cmd
}

func (a *app) send(ctx context.Context, f *sendFlags, ref string, args []string) error {
	message, err := a.message(args)
	if err != nil {
		return err
	}
	e, s, err := a.running(ctx, ref)
	if err != nil {
		return err
	}
	p := api.PromptRequest{Message: message}
	switch {
	case f.steer:
		p.Behavior = "steer"
	case f.followUp:
		p.Behavior = "followUp"
	}
	client := e.Client(s.ID, clientCLI)
	defer client.Close()
	if f.wait {
		return a.converse(ctx, e, client, s, p, clientCLI, a.viewer(f.json, f.quiet))
	}
	r, err := client.Prompt(ctx, p)
	if err != nil {
		return causeOf(ctx, err)
	}
	if f.json {
		return writeJSON(a.data(), r)
	}
	if !f.quiet {
		a.note("sent; patio logs -f %s --since %d follows the answer", s.ID, r.Seq)
	}
	return nil
}

func abortCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "abort ID",
		Short:             "End what a session does now; the session goes on",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions(false, live),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			e, s, err := a.running(ctx, args[0])
			if err != nil {
				return err
			}
			client := e.Client(s.ID, clientCLI)
			defer client.Close()
			reply, err := client.Command(ctx, map[string]string{"type": "abort"})
			if err != nil {
				return causeOf(ctx, err)
			}
			return replyError(reply)
		},
	}
}

// replyError is Pi's refusal of a command, if it refused.
func replyError(reply []byte) error {
	var r struct {
		Command string `json:"command"`
		Success bool   `json:"success"`
		Error   string `json:"error"`
	}
	if !decodeData(reply, &r) {
		return api.Errorf(api.CodeInternal, "", "Pi's reply can't be read: %s", strings.TrimSpace(string(reply)))
	}
	if !r.Success {
		return api.Errorf(api.CodeInternal, "", "Pi refused %s: %s", r.Command, r.Error)
	}
	return nil
}
