package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/engine/demo"
	"patio/engine/pi"
	"patio/sandbox/limits"
	"patio/sandbox/runsc"
)

// launchFlags are the flags that describe a session, the same for new, run, resume and
// plan.
type launchFlags struct {
	name, model, thinking, image, platform, profile string
	allow, limits                                   []string
}

func addLaunchFlags(cmd *cobra.Command) *launchFlags {
	l := &launchFlags{}
	f := cmd.Flags()
	names, help := limits.Keys()
	f.StringVar(&l.name, "name", "", "a name for the session")
	f.StringVar(&l.model, "model", "", "PROVIDER/MODEL; demo/tour needs no key")
	f.StringVar(&l.thinking, "thinking", "", "thinking level: "+strings.Join(pi.ThinkingLevels, ", "))
	f.StringSliceVar(&l.allow, "allow", nil, "let the sandbox reach HOST[:PORT] (443 when no port); may be repeated")
	f.StringSliceVar(&l.limits, limitFlag, nil, "KEY=VALUE, such as memory=4G; the keys are "+strings.Join(names, ", ")+"; may be repeated")
	f.StringVar(&l.image, "image", "", "image to use: the beginning of its digest, or pi-VERSION")
	f.StringVar(&l.platform, "platform", "", "how gVisor catches system calls: systrap (default) or kvm")
	f.StringVar(&l.profile, profileFlag, "", "take what other flags leave open from this profile of the configuration file")
	fromEnvironment(f, profileFlag, "model", "thinking", "allow", limitFlag, "image", "platform")
	completeProfile(cmd)
	completeFlag(cmd, "thinking", pi.ThinkingLevels...)
	completeFlag(cmd, "platform", runsc.Systrap, runsc.KVM)
	var keys []string
	for i, n := range names {
		keys = append(keys, n+"=\t"+help[i])
	}
	completeFlag(cmd, limitFlag, keys...)
	var models []string
	for _, m := range demo.Models() {
		models = append(models, demo.Provider+"/"+m.ID+"\t"+m.Name)
	}
	completeFlag(cmd, "model", models...)
	return l
}

func (l *launchFlags) request(workspace, startedBy string) engine.Request {
	return engine.Request{
		Workspace: workspace, Name: l.name, Model: l.model, Thinking: l.thinking,
		Allow: l.allow, Limits: l.limits, Image: l.image, Platform: l.platform,
		StartedBy: startedBy,
	}
}

// launch plans and starts a session, showing its phases while that takes.
func (a *app) launch(ctx context.Context, r engine.Request) (api.Session, error) {
	e, err := a.engine()
	if err != nil {
		return api.Session{}, err
	}
	launch, err := a.plan(ctx, e, r)
	if err != nil {
		return api.Session{}, err
	}
	return a.start(ctx, e, launch)
}

// plan plans a session whose sandbox can't write patio's configuration.
func (a *app) plan(ctx context.Context, e *engine.Engine, r engine.Request) (*engine.Launch, error) {
	launch, err := e.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	return launch, a.guardSettings(launch.Session.Workspace)
}

// workspaceArgument is the directory that a command works in.
func workspaceArgument(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// phaseLine shows what a start is doing: one line on a terminal that goes away when it
// is done, nothing elsewhere.
type phaseLine struct {
	a     *app
	fancy bool
	shown bool
}

func (a *app) phases() *phaseLine {
	_, fancy := a.fancy(a.stderr)
	return &phaseLine{a: a, fancy: fancy}
}

var phaseWords = map[api.Phase]string{
	api.PhaseNew:       "planned",
	api.PhasePreparing: "preparing files and network …",
	api.PhaseStarting:  "starting the sandbox, waiting for Pi …",
	api.PhaseReady:     "ready",
	api.PhaseStopping:  "stopping …",
}

func (p *phaseLine) show(s api.Session) {
	words := phaseWords[s.Phase]
	if !p.fancy || words == "" {
		return
	}
	p.shown = true
	_, _ = fmt.Fprintf(p.a.stderr, "\r\x1b[K%s: %s", cleanLine(s.ID), words)
}

func (p *phaseLine) clear() {
	if p.shown {
		_, _ = fmt.Fprint(p.a.stderr, "\r\x1b[K")
		p.shown = false
	}
}
