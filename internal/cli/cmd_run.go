package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/engine/journal"
)

// runFlags are those of run beside the launch's.
type runFlags struct {
	launch    *launchFlags
	workspace string
	json      bool
	timeout   time.Duration
	keep      bool
	session   string
	quiet     bool
}

func runCommand(a *app) *cobra.Command {
	r := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] PROMPT",
		Short: "Start a session, prompt it, stream the answer, stop it",
		Long: `run starts a session, gives it the prompt (the arguments, or stdin when there are none
or "-"), writes the answer to stdout as it comes, and stops the session. What Pi does
(tool calls, refused connections) is told in short lines on stderr.

With --json stdout gets every record of the session's journal instead, one a line.

Exit codes: 0 the turn ended well · 1 the model or Pi failed · 11 timeout · 12 Pi asks a
question that nobody can answer · 130 interrupted.`,
		Example: `  patio run --model demo/tour "Have a look around"
  git diff | patio run --model PROVIDER/MODEL "Review this diff" -
  patio run --json --timeout 10m "fix the failing test" | jq -c .type`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runPrompt(cmd.Context(), r, args) },
	}
	r.launch = addLaunchFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&r.workspace, "workspace", "C", ".", "the directory to work in")
	f.BoolVar(&r.json, "json", false, "write the journal's records to stdout, one a line")
	f.DurationVar(&r.timeout, "timeout", 0, "give up after this long, such as 10m; 0 is never")
	f.BoolVar(&r.keep, "keep", false, "leave the session running")
	f.StringVar(&r.session, "session", "", "prompt this running session instead of starting one")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "don't tell on stderr what Pi does")
	fromEnvironment(f, "timeout")
	for _, name := range []string{"name", "model", "thinking", "allow", "limit", "image", "platform", "profile", "workspace", "keep"} {
		cmd.MarkFlagsMutuallyExclusive("session", name)
	}
	if err := cmd.RegisterFlagCompletionFunc("session", a.completeSessions(false, live)); err != nil {
		panic(err) // the flag is above
	}
	return cmd
}

func (a *app) runPrompt(ctx context.Context, r *runFlags, args []string) error {
	message, err := a.message(args)
	if err != nil {
		return err
	}
	if r.timeout < 0 {
		return usageError("", "the timeout %s is negative", r.timeout)
	}
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout,
			api.Errorf(api.CodeTimeout, "", "not done within %s", r.timeout))
		defer cancel()
	}
	if r.session != "" {
		return a.runIn(ctx, r, message)
	}
	return a.runNew(ctx, r, message)
}

// message is what the arguments say; "-" stands for stdin, and so does nothing at all
// when stdin is not a terminal.
func (a *app) message(args []string) (string, error) {
	_, interactive := terminal(a.stdin)
	useStdin := len(args) == 0 && !interactive
	parts := make([]string, 0, len(args))
	for _, arg := range args {
		if arg == "-" {
			useStdin = true
			continue
		}
		parts = append(parts, arg)
	}
	message := strings.Join(parts, " ")
	if useStdin {
		b, err := io.ReadAll(a.stdin)
		if err != nil {
			return "", fmt.Errorf("read the prompt from stdin: %w", err)
		}
		if message != "" {
			message += "\n\n"
		}
		message += strings.ToValidUTF8(string(b), "\uFFFD")
	}
	if strings.TrimSpace(message) == "" {
		return "", usageError("give it as an argument, or on stdin", "the prompt is empty")
	}
	return message, nil
}

// runNew prompts a session of its own, which is stopped whatever happens.
func (a *app) runNew(ctx context.Context, r *runFlags, message string) error {
	s, err := a.launch(ctx, r.launch.request(r.workspace, "patio run"))
	if err != nil {
		return errors.Join(causeOf(ctx, err), a.printFailedStart(ctx, r, s))
	}
	e, err := a.engine()
	if err != nil {
		return err
	}
	client := e.Client(s.ID, clientRun)
	defer client.Close()
	rec := &records{engine: e, client: client, id: s.ID}
	if !r.json {
		rec.since = s.Seq
	}
	q := asking{client: client, name: clientRun, prompt: api.PromptRequest{Message: message}, records: rec, viewer: a.viewer(r.json, r.quiet)}
	t, err := q.ask(ctx)
	if err != nil {
		err = causeOf(ctx, err)
	} else if t.question != nil {
		err = questionError(t.question, "a session that is kept can be answered: `patio new`, then `patio rpc ID`")
	} else {
		err = t.err()
	}
	if r.keep && (err == nil || ctx.Err() == nil) {
		a.note("the session runs on: patio send %s MESSAGE, patio stop %s", s.ID, s.ID)
		return err
	}
	return errors.Join(err, a.endRun(ctx, r, e, s, rec))
}

// clientRun names run in the journal.
const clientRun = "run"

// endRun stops the session and, with --json, writes the records that come of it.
func (a *app) endRun(ctx context.Context, r *runFlags, e *engine.Engine, s api.Session, rec *records) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	reason := "patio run is done"
	if !r.json {
		return e.Stop(ctx, s, api.StopRequest{Reason: reason})
	}
	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop(ctx, s, api.StopRequest{Reason: reason}) }()
	err := rec.follow(ctx, a.writeRecord)
	return errors.Join(err, <-stopped)
}

// runIn prompts a session that runs already and leaves it as it is.
func (a *app) runIn(ctx context.Context, r *runFlags, message string) error {
	e, s, err := a.running(ctx, r.session)
	if err != nil {
		return err
	}
	client := e.Client(s.ID, clientRun)
	defer client.Close()
	return a.converse(ctx, e, client, s, api.PromptRequest{Message: message}, clientRun, a.viewer(r.json, r.quiet))
}

// converse prompts a session that isn't this command's own: it goes on afterwards.
func (a *app) converse(ctx context.Context, e *engine.Engine, client *api.Client, s api.Session, p api.PromptRequest, name string, v viewer) error {
	now, err := client.Session(ctx)
	if err != nil {
		return err
	}
	rec := &records{engine: e, client: client, id: s.ID, since: now.Seq}
	t, err := asking{client: client, name: name, prompt: p, records: rec, viewer: v}.ask(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), abort(ctx, client))
	case err != nil:
		return err
	case t.question != nil:
		return questionError(t.question, fmt.Sprintf("answer it with `patio rpc %s`, or end the turn with `patio abort %s`", s.ID, s.ID))
	}
	return t.err()
}

// viewer shows a turn: raw lines, or the answer.
func (a *app) viewer(raw, quiet bool) viewer {
	if raw {
		return rawRecords{a}
	}
	w := a.newAnswer()
	w.quiet = quiet
	return w
}

// rawRecords writes records as they are.
type rawRecords struct{ a *app }

func (v rawRecords) record(line []byte, _ journal.Record) error { return v.a.writeRecord(line) }

func (rawRecords) end() {}

// writeRecord writes a journal line as it is.
func (a *app) writeRecord(line []byte) error {
	_, err := a.data().Write(append(line[:len(line):len(line)], '\n'))
	return err
}

// printFailedStart writes the records of a session that never became ready, for --json.
func (a *app) printFailedStart(ctx context.Context, r *runFlags, s api.Session) error {
	if !r.json || s.ID == "" {
		return nil
	}
	e, err := a.engine()
	if err != nil {
		return err
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	rec := &records{engine: e, id: s.ID}
	if err := rec.file(ctx, a.writeRecord); err != nil && !isMissing(err) {
		return err
	}
	return nil
}

// causeOf prefers the reason for which a context ended over the error that came of it.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return context.Cause(ctx)
	}
	return err
}
