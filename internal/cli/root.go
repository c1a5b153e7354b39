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
	a.root = root
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
		{groupTalk, []*cobra.Command{attachCommand(a), sendCommand(a), abortCommand(a), waitCommand(a), execCommand(a), rpcCommand(a)}},
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

// bare is patio without a command: the terminal UI, where there is a terminal.
func (a *app) bare(cmd *cobra.Command) error {
	if a.screen() {
		return a.openUI(cmd.Context(), "", false)
	}
	cmd.SetOut(a.errors())
	if err := cmd.Help(); err != nil {
		return err
	}
	return &exitStatus{exitCode(api.CodeUsage)}
}

// prepare runs before every command: the environment and the configuration file fill in
// flags, and flags that are the same everywhere take effect.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.applySettings(cmd); err != nil {
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

// envAnnotation marks a flag that the environment and the configuration file can set.
const envAnnotation = "patio_environment"

// fromEnvironment lets PATIO_NAME, and NAME in the configuration file, set the flag NAME
// when the command line doesn't, and says so in the help. Only flags that describe a session or its output take part: an
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

// bindFlags fills in the flags that the command line doesn't set: from the environment,
// the profile, or the file, in this order.
func (a *app) bindFlags(flags *pflag.FlagSet, s *settings) error {
	a.origins = map[string]origin{}
	var errs []error
	bind := func(f *pflag.Flag, profile string) {
		variable := f.Annotations[envAnnotation]
		if len(variable) == 0 {
			return
		}
		if f.Changed {
			a.origins[f.Name] = origin{From: fromFlag}
			return
		}
		value, from := a.resolve(s, f.Name, variable[0], profile)
		a.origins[f.Name] = from
		if err := setFlag(f, value, from); err != nil {
			errs = append(errs, err)
		}
	}
	profile := ""
	if f := flags.Lookup(profileFlag); f != nil {
		bind(f, "")
		profile = f.Value.String()
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != profileFlag {
			bind(f, profile)
		}
	})
	return errors.Join(errs...)
}

// setFlag gives a flag its value past the flag set, for which it would be as if the user
// had typed it: a value that is always there must not clash with a flag that excludes
// this one.
func setFlag(f *pflag.Flag, value setting, from origin) error {
	if from.From == fromDefault {
		return nil
	}
	if from.From == fromVariable {
		if err := f.Value.Set(value.values[0]); err != nil {
			return usageError("unset it or correct it", "%s: %w", from.Where, err)
		}
		return nil
	}
	var err error
	if list, ok := f.Value.(pflag.SliceValue); ok {
		err = list.Replace(value.values)
	} else if v := value.values[0]; v != "" || f.Value.Type() == "string" {
		err = f.Value.Set(v)
	}
	if err != nil {
		return api.Errorf(api.CodeConfig, "`patio config edit` opens it", "%s, line %d: %s: %w", settingsName, from.Line, f.Name, err)
	}
	return nil
}
