package cli

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"patio/engine"
	"patio/engine/api"
)

// settingsName is the configuration file's name in the user's directory.
const settingsName = "config.toml"

// settings is what the configuration file says. Without a file it is empty, and every
// default is in effect.
type settings struct {
	// Path is the file's, and Exists whether it is there.
	Path   string
	Exists bool
	// Values are the flags that the file sets, and Profiles the named sets of them.
	Values   map[string]setting
	Profiles map[string]map[string]setting
	// SessionDirs are absolute.
	SessionDirs []string
	TUI         tuiSettings
}

// setting is a flag's value in the file: one string, or those of a list.
type setting struct {
	values []string
	line   int
}

// tuiSettings are the terminal UI's. Only their types have been checked: what themes,
// actions and keys there are is the UI's to know.
type tuiSettings struct {
	Theme string
	// Mouse is nil when the file doesn't say.
	Mouse *bool
	// Keys are the keys of an action.
	Keys map[string][]string
}

// settable is a flag that the environment and the file can set.
type settable struct {
	name, variable, preset string
	// kind is the flag's type, as pflag names it.
	kind string
	// launch says that it describes a launch, so that a profile may hold it.
	launch bool
}

// isList reports whether the flag may be repeated.
func (s settable) isList() bool { return s.kind == "stringSlice" }

// profileFlag chooses a profile, outputFlag how a command prints. Neither is a part of a
// profile: one can't choose another, and it describes launches.
const (
	profileFlag = "profile"
	outputFlag  = "output"
)

// settableFlags collects the flags that fromEnvironment has marked in the whole tree. The
// file knows these and no others, so that a new flag needs no second list.
func settableFlags(root *cobra.Command) map[string]settable {
	flags := map[string]settable{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		launches := cmd.Flags().Lookup(profileFlag) != nil
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			variable := f.Annotations[envAnnotation]
			if len(variable) == 0 {
				return
			}
			s := settable{name: f.Name, variable: variable[0], preset: f.DefValue, kind: f.Value.Type(), launch: flags[f.Name].launch}
			if launches && f.Name != profileFlag && f.Name != outputFlag {
				s.launch = true
			}
			flags[f.Name] = s
		})
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(root)
	return flags
}

// settings returns what the configuration file says, read once. With an error it is what
// holds without a file.
func (a *app) settings() (*settings, error) {
	if a.read == nil {
		a.read, a.readErr = userSettings(a.rootCommand())
	}
	return a.read, a.readErr
}

func (a *app) rootCommand() *cobra.Command {
	if a.root == nil {
		newRoot(a)
	}
	return a.root
}

func userSettings(root *cobra.Command) (*settings, error) {
	dirs, err := engine.UserDirs()
	if err != nil {
		return &settings{}, err
	}
	return loadSettings(filepath.Join(dirs.Config, settingsName), settableFlags(root))
}

// settingsUse is what a fault in the configuration file means for a command.
type settingsUse int

const (
	// settingsNeeded stops the command.
	settingsNeeded settingsUse = iota
	// settingsWanted is told, and the command goes on without the file: it helps to find
	// the fault, or it ends what runs, which must never depend on a file's syntax.
	settingsWanted
	// settingsUnused has no use for the file, or looks at it by itself.
	settingsUnused
)

func useOfSettings(cmd *cobra.Command) settingsUse {
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	switch top.Name() {
	case "config":
		if top != cmd {
			return settingsUnused
		}
		return settingsWanted
	case "version", "help", "completion", "doctor", "stop", "abort",
		cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
		return settingsWanted
	}
	if !cmd.HasParent() {
		return settingsUnused
	}
	return settingsNeeded
}

// applySettings fills in the flags that the command line leaves open.
func (a *app) applySettings(cmd *cobra.Command) error {
	use := useOfSettings(cmd)
	s := &settings{}
	if use != settingsUnused {
		var err error
		s, err = a.settings()
		if err != nil {
			if use == settingsNeeded {
				return err
			}
			a.goOn = true
			for line := range strings.Lines(classify(err).Message) {
				a.note("patio: %s", strings.TrimSpace(line))
			}
		}
	}
	if err := a.bindFlags(cmd.Flags(), s); err != nil {
		return err
	}
	if f := cmd.Flags().Lookup(profileFlag); f != nil && use == settingsNeeded {
		return s.checkProfile(f.Value.String())
	}
	return nil
}

// origin says where a flag's value comes from.
type origin struct {
	From string `json:"from"`
	// Where is the variable's or the profile's name.
	Where string `json:"where,omitempty"`
	// Line is that of the file.
	Line int `json:"line,omitempty"`
}

// The values of origin.From.
const (
	fromFlag     = "flag"
	fromVariable = "environment"
	fromProfile  = "profile"
	fromFile     = "file"
	fromDefault  = "default"
)

// resolve finds the value of a flag that the command line doesn't set: the environment's,
// the profile's, the file's. Nothing else than these is ever asked.
func (a *app) resolve(s *settings, name, variable, profile string) (setting, origin) {
	// An empty variable is none: that is how a shell takes one back for a command.
	if v, ok := a.lookupEnv(variable); ok && v != "" {
		return setting{values: []string{v}}, origin{From: fromVariable, Where: variable}
	}
	if v, ok := s.Profiles[profile][name]; ok {
		return v, origin{From: fromProfile, Where: profile, Line: v.line}
	}
	if v, ok := s.Values[name]; ok {
		return v, origin{From: fromFile, Line: v.line}
	}
	return setting{}, origin{From: fromDefault}
}

// profiles lists the names of the profiles.
func (s *settings) profiles() []string { return slices.Sorted(maps.Keys(s.Profiles)) }

// checkProfile refuses a profile that isn't there.
func (s *settings) checkProfile(name string) error {
	if _, ok := s.Profiles[name]; ok || name == "" {
		return nil
	}
	hint := "there are none; `patio config edit` adds one as [profiles.NAME]"
	if names := s.profiles(); len(names) > 0 {
		hint = "there are: " + strings.Join(names, ", ")
	}
	return api.Errorf(api.CodeConfig, hint, "no profile %q in %s", name, s.Path)
}

// explicitly reports whether the user asked for a flag's value in this very command, by
// the flag or by a profile named in it.
func (a *app) explicitly(flags *pflag.FlagSet, name string) bool {
	return flags.Changed(name) || a.origins[name].From == fromProfile && flags.Changed(profileFlag)
}

// guardSettings refuses a workspace that holds the configuration file, as a link may have
// it: what runs inside could then open the next sandbox. The engine refuses one with the
// file's directory in it.
func (a *app) guardSettings(workspace string) error {
	s, err := a.settings()
	if err != nil || !s.Exists {
		return err
	}
	file, err := filepath.EvalSymlinks(s.Path)
	if err != nil {
		return unreadable(s.Path, err)
	}
	if physical, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = physical
	}
	if below(file, workspace) {
		return api.Errorf(api.CodeRefused, "keep it elsewhere: what runs inside could change what the next sandbox may do",
			"the configuration %s lies in the workspace %s", file, workspace)
	}
	return nil
}

// completeProfile offers the names of the profiles for a command's flag.
func completeProfile(cmd *cobra.Command) {
	err := cmd.RegisterFlagCompletionFunc(profileFlag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		s, err := userSettings(cmd.Root())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return s.profiles(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag isn't there: a slip in this package
	}
}
