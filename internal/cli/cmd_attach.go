package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui"
)

func attachCommand(a *app) *cobra.Command {
	var readOnly, plain bool
	cmd := &cobra.Command{
		Use:   "attach ID",
		Short: "Open a session in the terminal UI",
		Long: `attach opens the terminal UI on one session, which may have ended. ctrl-] leaves it, and the
session goes on.

--plain shows the conversation as lines of text, for screen readers and dumb terminals:
what is typed goes to Pi, one message a line, and the end of the input leaves.`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions(false, nil),
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "look, without a way to say anything")
	cmd.Flags().BoolVar(&plain, "plain", false, "lines of text instead of a screen")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, s, err := a.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if plain {
			return a.attachPlain(cmd.Context(), e, s, readOnly)
		}
		if !a.screen() {
			return usageError("`patio attach --plain` needs none, `patio logs -f` follows its journal", "attach needs a terminal on stdin and stdout")
		}
		return a.openUI(cmd.Context(), s.ID, readOnly)
	}
	return cmd
}

// screen reports whether the streams are a terminal that can show the UI.
func (a *app) screen() bool {
	_, in := terminal(a.stdin)
	_, out := terminal(a.stdout)
	term, _ := a.lookupEnv("TERM")
	return in && out && term != "dumb"
}

// openUI shows the terminal UI until it is left.
func (a *app) openUI(ctx context.Context, session string, readOnly bool) error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	dirs, err := engine.UserDirs()
	if err != nil {
		return err
	}
	set, err := a.settings()
	if err != nil {
		return err
	}
	backend, err := a.uiBackend(e)
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	live, err := tui.Run(ctx, tui.Options{
		Backend: backend, Session: session, ReadOnly: readOnly, Workspace: cwd,
		Profiles: slices.Sorted(maps.Keys(set.Profiles)), Theme: set.TUI.Theme, ThemesDir: filepath.Join(dirs.Config, "themes"), StateDir: filepath.Join(dirs.State, "tui"),
		Mouse: set.TUI.Mouse == nil || *set.TUI.Mouse, Keys: set.TUI.Keys,
		Environ: os.Environ(), Input: a.stdin, Output: a.stdout,
	})
	if err != nil {
		return causeOf(ctx, err)
	}
	switch {
	case live == 1:
		a.note("1 session goes on: `patio ls` lists it, `patio stop --all` ends it")
	case live > 1:
		a.note("%d sessions go on: `patio ls` lists them, `patio stop --all` ends them", live)
	}
	return nil
}

// attachPlain shows the conversation as lines, and sends what is typed.
func (a *app) attachPlain(ctx context.Context, e *engine.Engine, s api.Session, readOnly bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := a.plainHistory(ctx, e, s); err != nil {
		return err
	}
	if live(s) && !readOnly {
		// It reads stdin, which nothing can interrupt: it is left behind when the session ends.
		go func() { cancel(a.sendTyped(ctx, e, s)) }()
	}
	w := a.newAnswer()
	client := e.Client(s.ID, clientCLI)
	defer client.Close()
	r := &records{engine: e, client: client, id: s.ID}
	err := r.follow(ctx, decoded(func(rec journal.Record) error {
		if err := w.record(nil, rec); err != nil {
			return err
		}
		a.plainRecord(w, rec)
		return w.err
	}))
	w.end()
	if errors.Is(context.Cause(ctx), errDone) {
		a.note("%s goes on", s.ID)
		return nil
	}
	return err
}

// plainHistory prints what the session file has from before the journal.
func (a *app) plainHistory(ctx context.Context, e *engine.Engine, s api.Session) error {
	if s.ImportedFrom == "" {
		return nil
	}
	reader, err := e.OpenJournal(ctx, s.ID, 0)
	if err != nil {
		return err
	}
	line, err := reader.Next(ctx)
	if err != nil {
		return errors.Join(err, reader.Close())
	}
	_, first, _, _ := journal.Header(line)
	if err := reader.Close(); err != nil {
		return err
	}
	turns, err := uiJournals{e}.History(ctx, s.ID, first)
	if err != nil {
		return err
	}
	for _, t := range turns {
		for _, b := range t.Blocks {
			if b.Text == "" {
				continue
			}
			if _, err := fmt.Fprintf(a.display(), "%s: %s\n", firstNonEmpty(t.Role, string(b.Kind)), strings.TrimRight(b.Text, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// plainRecord says what an answer's writer leaves out: who asked what, and what became of
// the session.
func (a *app) plainRecord(w *answer, r journal.Record) {
	switch r.Type {
	case api.RecordState:
		var st api.StateRecord
		if !decodeData(r.Data, &st) {
			return
		}
		switch {
		case st.Question != nil:
			w.line("  Pi asks: %s %s (`patio attach` without --plain can answer)", st.Question.Title, st.Question.Message)
		case st.End != nil:
			w.line("  the session has %s: %s", st.Phase, st.End.Reason)
		}
	case api.RecordRPC:
		e := rpcEvent(r.Data)
		if e.direction == api.FromPi && e.line.Get("type").Str == "message_end" && e.line.Get("message.role").Str == "user" {
			for _, block := range e.line.Get("message.content").Array() {
				if text := block.Get("text").Str; text != "" {
					w.endLine()
					w.write("you: " + text)
					w.endLine()
				}
			}
		}
	}
}

// sendTyped sends each line of stdin; while Pi works it steers.
func (a *app) sendTyped(ctx context.Context, e *engine.Engine, s api.Session) error {
	client := e.Client(s.ID, clientCLI)
	defer client.Close()
	lines := bufio.NewReader(a.stdin)
	for {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			now, sErr := client.Session(ctx)
			r := api.PromptRequest{Message: text}
			if sErr == nil && now.Activity != api.ActivityIdle {
				r.Behavior = "steer"
			}
			if _, err := client.Prompt(ctx, r); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				a.note("not sent: %v", err)
			}
		}
		if err != nil {
			return errDone
		}
	}
}
