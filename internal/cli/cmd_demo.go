package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/engine/demo"
	"patio/engine/journal"
)

// demoPrompt makes the scripted model show the sandbox around.
const demoPrompt = "Have a look around"

// demoFiles are what the demo's workspace holds before the session starts.
var demoFiles = map[string]string{
	"README.md": "# A small project\n\nMade by `patio demo`; it goes when the demo ends.\n",
	"hello.sh":  "#!/bin/sh\necho hello from the host\n",
}

func demoCommand(a *app) *cobra.Command {
	var keep bool
	var image, platform string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A session with a scripted model: no key, no network, nothing of yours",
		Long: `demo starts a session in a fresh directory with a scripted model (no AI, no key, no
network), lets it look around, and reports what this session's records and checks of the
host show about its sandbox.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), keep, image, platform) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the workspace and leave the session running")
	cmd.Flags().StringVar(&image, "image", "", "image to use: the beginning of its digest, or pi-VERSION")
	cmd.Flags().StringVar(&platform, "platform", "", "how gVisor catches system calls: systrap (default) or kvm")
	fromEnvironment(cmd.Flags(), "image", "platform")
	return cmd
}

func (a *app) demo(ctx context.Context, keep bool, image, platform string) (err error) {
	workspace, err := makeDemoWorkspace(ctx)
	if err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, os.RemoveAll(workspace)) }()
	}
	before, err := listFiles(workspace)
	if err != nil {
		return err
	}
	a.note("A session with the scripted model demo/tour in %s", workspace)
	s, err := a.launch(ctx, engine.Request{
		Workspace: workspace, Name: "demo", Model: demo.Provider + "/tour", Image: image, Platform: platform, StartedBy: "patio demo",
	})
	if err != nil {
		return causeOf(ctx, err)
	}
	e, err := a.engine()
	if err != nil {
		return err
	}
	client := e.Client(s.ID, clientRun)
	defer client.Close()
	if !keep {
		defer func() {
			stop, cancel := cleanup(ctx)
			defer cancel()
			err = errors.Join(err, e.Stop(stop, s, api.StopRequest{Reason: "patio demo is done"}))
		}()
	}
	a.note("ready after %s; prompt: %s", readyAfter(s), demoPrompt)
	return a.demoTour(ctx, e, client, s, workspace, before, keep)
}

func (a *app) demoTour(ctx context.Context, e *engine.Engine, client *api.Client, s api.Session, workspace string, before map[string]fileFact, keep bool) error {
	// Everything from the first record on: the report is made of it.
	facts := &demoFacts{}
	rec := &records{engine: e, client: client, id: s.ID}
	t, err := asking{
		client: client, name: clientRun, prompt: api.PromptRequest{Message: demoPrompt}, records: rec,
		viewer: demoView{a.newAnswer(), facts},
	}.ask(ctx)
	if err != nil {
		return causeOf(ctx, err)
	}
	if t.question != nil {
		return questionError(t.question, "the demo asks nothing by itself; please report this")
	}
	if err := t.err(); err != nil {
		return err
	}
	if err := facts.look(ctx, a, client); err != nil {
		return causeOf(ctx, err)
	}
	if facts.session, err = client.Session(ctx); err != nil {
		return causeOf(ctx, err)
	}
	after, err := listFiles(workspace)
	if err != nil {
		return err
	}
	facts.made = newFiles(before, after)
	if err := facts.report(a.display()); err != nil {
		return err
	}
	if keep {
		a.note("the session %s runs on in %s; patio stop %s ends it", s.ID, workspace, s.ID)
	}
	if err := facts.verdict(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.display(), "\nexit 0")
	return err
}

// demoView shows the answer and keeps what it proves.
type demoView struct {
	*answer
	facts *demoFacts
}

func (v demoView) record(line []byte, r journal.Record) error {
	v.facts.observe(r)
	return v.answer.record(line, r)
}

// makeDemoWorkspace makes a directory with a few files that are nobody's.
func makeDemoWorkspace(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "patio-demo-")
	if err != nil {
		return "", fmt.Errorf("make the demo's workspace: %w", err)
	}
	// A link on the way (as in TMPDIR) would make the path another one inside.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("make the demo's workspace: %w", err)
	}
	for name, content := range demoFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return "", errors.Join(fmt.Errorf("make the demo's workspace: %w", err), os.RemoveAll(dir))
		}
	}
	initDemoRepository(ctx, dir)
	return dir, nil
}

// initDemoRepository makes the workspace a git repository, as projects are, where the host
// has git. The demo works without.
func initDemoRepository(ctx context.Context, dir string) {
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=patio demo", "-c", "user.email=demo@patio.invalid", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=A small project"},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = dir
		// Nothing of the caller's repository or configuration takes part.
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
		cmd.WaitDelay = time.Second
		if err := cmd.Run(); err != nil {
			return
		}
	}
}

func readyAfter(s api.Session) string {
	if s.Ready == nil {
		return "an unknown time"
	}
	return formatSpan(s.Ready.Sub(s.Created))
}
