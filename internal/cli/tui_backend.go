package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/engine/journal"
	"patio/sessions"
	"patio/tui"
	"patio/tui/doctor"
	"patio/tui/importer"
	"patio/tui/launcher"
)

// clientTUI names the terminal UI in journals.
const clientTUI = "tui"

// uiBackend gives the terminal UI what it works on.
func (a *app) uiBackend(e *engine.Engine) (tui.Backend, error) {
	executable, err := os.Executable()
	if err != nil {
		return tui.Backend{}, err
	}
	files, err := e.SessionCatalog()
	if err != nil {
		a.log().Warn("session directories", "err", err)
	}
	return tui.Backend{
		Sessions: uiSessions{e}, Journals: uiJournals{e}, Launches: uiLaunches{a, e},
		Client: func(id string) tui.Client { return e.Client(id, clientTUI) },
		Import: importOne(e), Files: files, Check: a.uiCheck,
		Editor: func(ctx context.Context, file string) (*exec.Cmd, error) {
			editor, err := a.editor()
			if err != nil {
				return nil, err
			}
			return editorCommand(ctx, editor, file), nil
		},
		Shell: func(id string) *exec.Cmd { return exec.Command(executable, "exec", id) },
	}, nil
}

type uiSessions struct{ e *engine.Engine }

// List implements tui.Sessions.
func (u uiSessions) List(ctx context.Context) ([]api.Session, error) { return u.e.List(ctx) }

// Stop implements tui.Sessions.
func (u uiSessions) Stop(ctx context.Context, id string) error {
	s, err := u.e.Find(ctx, id)
	if err != nil {
		return err
	}
	return u.e.Stop(ctx, s, api.StopRequest{Reason: "stopped in the terminal UI"})
}

// Remove implements tui.Sessions.
func (u uiSessions) Remove(ctx context.Context, id string) error {
	s, err := u.e.Find(ctx, id)
	if err != nil {
		return err
	}
	return u.e.Remove(ctx, s, false)
}

// Resume implements tui.Sessions.
func (u uiSessions) Resume(ctx context.Context, id string) error {
	l, err := u.e.PlanResume(ctx, id, engine.Request{StartedBy: "patio"})
	if err != nil {
		return err
	}
	_, err = u.e.Start(ctx, l, nil)
	return err
}

// Kill implements tui.Sessions.
func (u uiSessions) Kill(ctx context.Context, id string, pid int, signal string) error {
	return killInside(ctx, u.e.Client(id, clientTUI), pid, signal)
}

type uiJournals struct{ e *engine.Engine }

// Records implements tui.Journals.
func (u uiJournals) Records(ctx context.Context, id string, since uint64, follow bool, f func(journal.Record) error) error {
	client := u.e.Client(id, clientTUI)
	defer client.Close()
	r := &records{engine: u.e, client: client, id: id, since: since}
	keep := decoded(func(r journal.Record) error {
		r.Data = slices.Clone(r.Data)
		return f(r)
	})
	if follow {
		return r.follow(ctx, keep)
	}
	return r.once(ctx, true, keep)
}

// historyText bounds one block of a conversation that the UI gets: a screen shows less.
const historyText = 64 << 10

// History implements tui.Journals.
func (u uiJournals) History(ctx context.Context, id string, before time.Time) (turns []sessions.Turn, err error) {
	s, err := u.e.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.SessionFile == "" {
		return nil, nil
	}
	file, err := sessions.Open(s.SessionFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = file.Conversation("", func(t sessions.Turn) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if at, err := time.Parse(time.RFC3339Nano, t.Timestamp); err == nil && !at.Before(before) {
			return nil // the journal has it
		}
		t.Blocks = readBlocks(t.Blocks)
		turns = append(turns, t)
		return nil
	})
	return turns, err
}

// readBlocks reads the results of calls while the file is open, and cuts what is long.
func readBlocks(blocks []sessions.Block) []sessions.Block {
	read := slices.Clone(blocks)
	for i := range read {
		read[i].Text = cutText(read[i].Text)
		if read[i].Result == nil {
			continue
		}
		result, err := read[i].Result()
		if err != nil {
			result = []sessions.Block{{Kind: sessions.BlockError, Text: err.Error()}}
		}
		for n := range result {
			result[n].Text = cutText(result[n].Text)
		}
		read[i].Result = func() ([]sessions.Block, error) { return result, nil }
	}
	return read
}

func cutText(s string) string {
	if len(s) <= historyText {
		return s
	}
	half := historyText / 2
	return s[:half] + "\n… it is longer: `patio sessions show` has all of it …\n" + s[len(s)-half:]
}

type uiLaunches struct {
	a *app
	e *engine.Engine
}

// request is what the user asks for, with the defaults of the environment, the profile
// and the configuration file where nothing is said.
func (u uiLaunches) request(r launcher.Request) (engine.Request, error) {
	set, err := u.a.settings()
	if err != nil {
		return engine.Request{}, err
	}
	cmd := &cobra.Command{}
	l := addLaunchFlags(cmd)
	for name, value := range map[string]string{profileFlag: r.Profile, "name": r.Name, "model": r.Model, "thinking": r.Thinking} {
		if value == "" {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return engine.Request{}, usageError("", "%s: %w", name, err)
		}
	}
	// An app of its own: where values come from is told for one command only.
	if err := (&app{lookupEnv: u.a.lookupEnv, root: u.a.root}).bindFlags(cmd.Flags(), set); err != nil {
		return engine.Request{}, err
	}
	request := l.request(r.Workspace, "patio")
	request.Allow = append(request.Allow, r.Allow...)
	request.Limits = append(request.Limits, r.Limits...)
	return request, nil
}

// Plan implements tui.Launches.
func (u uiLaunches) Plan(ctx context.Context, r launcher.Request) (api.Session, error) {
	l, err := u.launch(ctx, r)
	if err != nil {
		return api.Session{}, err
	}
	return l.Session, nil
}

func (u uiLaunches) launch(ctx context.Context, r launcher.Request) (*engine.Launch, error) {
	request, err := u.request(r)
	if err != nil {
		return nil, err
	}
	return u.a.plan(ctx, u.e, request)
}

// Start implements tui.Launches.
func (u uiLaunches) Start(ctx context.Context, r launcher.Request) (api.Session, error) {
	l, err := u.launch(ctx, r)
	if err != nil {
		return api.Session{}, err
	}
	s, err := u.e.Start(ctx, l, nil)
	if err != nil || r.Prompt == "" {
		return s, err
	}
	c := u.e.Client(s.ID, clientTUI)
	defer c.Close()
	_, err = c.Prompt(ctx, api.PromptRequest{Message: r.Prompt})
	return s, err
}

// Models implements tui.Launches.
func (u uiLaunches) Models(context.Context) ([]string, error) { return u.e.Models() }

// importOne makes one file a session.
func importOne(e *engine.Engine) importer.ImportFunc {
	return func(ctx context.Context, path string, copyInto bool) (importer.Result, error) {
		done, err := e.Import(ctx, path, engine.ImportRequest{Copy: copyInto})
		if err != nil {
			return importer.Result{}, err
		}
		r := importer.Result{Status: string(done.Status), Session: done.Session, Notes: strings.Join(done.Notes, "; ")}
		if done.Error != nil {
			r.Error = done.Error.Error()
		}
		return r, nil
	}
}

var doctorStatus = map[status]doctor.Status{statusOK: doctor.OK, statusWarn: doctor.Warning, statusFail: doctor.Bad}

// uiCheck looks at this machine for the Doctor screen.
func (a *app) uiCheck(ctx context.Context) ([]doctor.Finding, error) {
	m, err := a.thisMachine()
	if err != nil {
		return nil, err
	}
	h, _ := examine(ctx, m)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var found []doctor.Finding
	for _, f := range h.Checks {
		found = append(found, doctor.Finding{Name: f.Name, Status: doctorStatus[f.Status], Found: f.Detail, Meaning: f.Meaning, Fix: f.Fix})
	}
	return found, nil
}

// killInside sends a signal to a process of the sandbox, by a program inside: the pids
// are the sandbox's own.
func killInside(ctx context.Context, c *api.Client, pid int, signal string) error {
	defer c.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	x, err := c.Exec(ctx, api.ExecRequest{Argv: []string{"kill", "-s", signal, strconv.Itoa(pid)}}, null, null, write)
	_ = write.Close()
	if err != nil {
		return err
	}
	said, _ := io.ReadAll(io.LimitReader(read, 4096))
	code, err := x.Wait(ctx)
	if err != nil {
		return err
	}
	if code != 0 {
		return api.Errorf(api.CodeConflict, "", "kill said: %s", cleanLine(string(said)))
	}
	return nil
}
