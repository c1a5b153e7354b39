package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"patio/engine/api"
)

// Groups of commands in the help.
const (
	groupSession = "session"
	groupTalk    = "talk"
	groupWatch   = "watch"
	groupMachine = "machine"
)

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "patio",
		Short: "Sessions of the coding agent Pi, each in a gVisor sandbox of its own",
		Long: `patio runs the coding agent Pi in gVisor sandboxes: no root, no Docker, no daemon.

Try it without a key:  patio demo
In a project:          patio run --model PROVIDER/MODEL "fix the failing test"`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       subcommandOnly,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.prepare(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.bare(cmd) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath()), "%w", err)
	})
	root.PersistentFlags().BoolVar(&a.debug, "debug", false, "log what patio does to stderr")
	root.AddGroup(
		&cobra.Group{ID: groupSession, Title: "Sessions:"},
		&cobra.Group{ID: groupTalk, Title: "Talking to a session:"},
		&cobra.Group{ID: groupWatch, Title: "Watching:"},
		&cobra.Group{ID: groupMachine, Title: "This machine:"},
	)
	root.SetHelpCommandGroupID(groupMachine)
	root.SetCompletionCommandGroupID(groupMachine)
	cobra.EnableCommandSorting = false // they stand in the order of their use
	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{groupSession, []*cobra.Command{newCommand(a), runCommand(a), resumeCommand(a), lsCommand(a), stopCommand(a), rmCommand(a), planCommand(a), demoCommand(a)}},
		{groupTalk, []*cobra.Command{sendCommand(a), abortCommand(a), waitCommand(a), execCommand(a), rpcCommand(a)}},
		{groupWatch, []*cobra.Command{inspectCommand(a), logsCommand(a), statsCommand(a), topCommand(a), sessionsCommand(a)}},
		{groupMachine, []*cobra.Command{imageCommand(a), doctorCommand(a), configCommand(a), versionCommand(a)}},
	} {
		for _, c := range group.commands {
			c.GroupID = group.id
			root.AddCommand(c)
		}
	}
	return root
}

// bare is patio without a command. The terminal UI opens here once there is one.
func (a *app) bare(cmd *cobra.Command) error {
	cmd.SetOut(a.errors())
	if err := cmd.Help(); err != nil {
		return err
	}
	return &exitStatus{exitCode(api.CodeUsage)}
}

// prepare runs before every command: the environment fills in flags, and flags that are
// the same everywhere take effect.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.bindEnvironment(cmd.Flags()); err != nil {
		return err
	}
	a.parsed = true
	if err := cmd.ValidateFlagGroups(); err != nil {
		return usageError("", "%w", err)
	}
	if f := cmd.Flags().Lookup("json"); f != nil && f.Value.String() == "true" {
		a.jsonErrors = true
	}
	if f := cmd.Flags().Lookup("output"); f != nil && f.Value.String() == outputJSON {
		a.jsonErrors = true
	}
	return nil
}

// subcommandOnly refuses arguments to a command that only holds others, with the ones
// that may have been meant.
func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("`%s --help` lists the commands", cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		slices.Sort(near)
		hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), strings.Join(near, "`, `"+cmd.CommandPath()+" "))
	}
	return usageError(hint, "unknown command %q for %s", args[0], cmd.CommandPath())
}

// parent is a command that only holds others.
func parent(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: subcommandOnly, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			return errors.Join(cmd.Help(), &exitStatus{exitCode(api.CodeUsage)})
		},
	}
	cmd.AddCommand(children...)
	return cmd
}

// arguments makes an argument error a usage error that shows how the command is written.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError("usage: "+cmd.UseLine(), "%w", err)
		}
		return nil
	}
}

// envAnnotation marks a flag that the environment can set.
const envAnnotation = "patio_environment"

// fromEnvironment lets PATIO_NAME set the flag NAME when the command line doesn't, and
// says so in the help. Only flags that describe a session or its output take part: an
// exported variable must not answer --force.
func fromEnvironment(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		variable := "PATIO_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		f.Usage += " [$" + variable + "]"
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[envAnnotation] = []string{variable}
	}
}

func (a *app) bindEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		variable := f.Annotations[envAnnotation]
		if f.Changed || len(variable) == 0 {
			return
		}
		value, ok := a.lookupEnv(variable[0])
		if !ok || value == "" {
			return
		}
		// Past the flag set, for which it would be as if the user had typed it: a variable
		// that is always there must not clash with a flag that excludes this one.
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, usageError("unset it or correct it", "%s: %w", variable[0], err))
		}
	})
	return errors.Join(errs...)
}
