package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/sandbox/limits"
)

// configuration is what is in effect for the calling user.
type configuration struct {
	// File is the configuration file, whether it is there or not, and Error why it isn't
	// in effect.
	File        string                       `json:"file"`
	Exists      bool                         `json:"exists"`
	Error       *configurationError          `json:"error,omitempty"`
	Profile     string                       `json:"profile"`
	Settings    []effective                  `json:"settings"`
	Profiles    map[string]map[string]values `json:"profiles"`
	SessionDirs []string                     `json:"session_dirs"`
	TUI         tuiConfiguration             `json:"tui"`
	State       string                       `json:"state"`
	Data        string                       `json:"data"`
	Cache       string                       `json:"cache"`
	Runtime     string                       `json:"runtime"`
	Images      []string                     `json:"images"`
	Environment map[string]string            `json:"environment"`
	Limits      string                       `json:"default_limits"`
}

// configurationError is why the file isn't in effect.
type configurationError struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// effective is a setting with where it comes from.
type effective struct {
	Name  string `json:"name"`
	Value values `json:"value"`
	origin
}

// values are those of one flag: in JSON a list for one that may be repeated, else a
// string.
type values struct {
	list  []string
	multi bool
}

// MarshalJSON implements json.Marshaler.
func (v values) MarshalJSON() ([]byte, error) {
	if v.multi {
		return json.Marshal(append([]string{}, v.list...))
	}
	return json.Marshal(v.String())
}

// String is the values as the command line has them.
func (v values) String() string { return strings.Join(v.list, ",") }

// tuiConfiguration is the terminal UI's part.
type tuiConfiguration struct {
	Theme string              `json:"theme,omitempty"`
	Mouse *bool               `json:"mouse,omitempty"`
	Keys  map[string][]string `json:"keys,omitempty"`
}

func configCommand(a *app) *cobra.Command {
	var profile string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Settings in effect, where they come from, and the directories",
		Long: `config shows the configuration file, each setting in effect with where it comes from, the
profiles, and the directories that patio uses. A flag beats the environment, which beats
the profile, which beats the top level of the file, which beats the default.

docs/configuration.md describes the file; "patio config edit" makes one to start from.`,
		Args:                       subcommandOnly,
		SuggestionsMinimumDistance: 2,
	}
	o := addOutput(cmd)
	cmd.Flags().StringVar(&profile, profileFlag, "", "show the settings with this profile")
	fromEnvironment(cmd.Flags(), profileFlag)
	completeProfile(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		c, err := a.configuration(cmd, profile)
		if err != nil {
			return err
		}
		return o.object(a, c, func(w io.Writer) error { return writeConfiguration(w, c) })
	}
	cmd.AddCommand(configPathCommand(a), configEditCommand(a), configCheckCommand(a))
	return cmd
}

// configuration collects what config shows.
func (a *app) configuration(cmd *cobra.Command, profile string) (configuration, error) {
	dirs, err := engine.UserDirs()
	if err != nil {
		return configuration{}, err
	}
	host, err := limits.HostInfo("")
	if err != nil {
		return configuration{}, err
	}
	flags := settableFlags(a.rootCommand())
	s, err := a.settings()
	c := configuration{
		File: s.Path, Exists: s.Exists, Profile: profile,
		Settings: a.effective(s, flags, profile), Profiles: map[string]map[string]values{},
		SessionDirs: append([]string{}, s.SessionDirs...), TUI: tuiConfiguration(s.TUI),
		State: dirs.State, Data: dirs.Data, Cache: dirs.Cache, Runtime: dirs.Runtime,
		Images: dirs.Images(), Environment: patioEnvironment(os.Environ(), flags),
		Limits: limits.Default(host.Memory, host.CPUs).String(),
	}
	if err != nil {
		e := classify(err)
		c.Error = &configurationError{Message: e.Message, Hint: e.Hint}
	} else if err := s.checkProfile(profile); err != nil {
		// One of the environment's is told and passed over: config has to show it.
		if cmd.Flags().Changed(profileFlag) {
			return c, err
		}
		a.note("patio: %v", err)
	}
	for name, content := range s.Profiles {
		c.Profiles[name] = map[string]values{}
		for key, v := range content {
			c.Profiles[name][key] = values{v.values, flags[key].isList()}
		}
	}
	return c, nil
}

// effective lists what each flag would be without being typed.
func (a *app) effective(s *settings, flags map[string]settable, profile string) []effective {
	var all []effective
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		f := flags[name]
		from, known := a.origins[name]
		v := setting{values: []string{profile}}
		if name != profileFlag || !known {
			chosen := ""
			if f.launch {
				chosen = profile
			}
			v, from = a.resolve(s, name, f.variable, chosen)
		}
		if from.From == fromDefault {
			v.values = nil
			if f.preset != "" && f.preset != "[]" {
				v.values = []string{f.preset}
			}
		}
		all = append(all, effective{name, values{v.values, f.isList()}, from})
	}
	return all
}

// otherVariables are read by patio and no flags.
var otherVariables = []string{"PATIO_RUNSC", "PATIO_DEBIAN_MIRROR"}

// notOurs stands for the value of a variable that patio doesn't read: it may be a secret.
const notOurs = "(not shown: patio reads no such variable)"

// patioEnvironment picks the settings out of the environment. None that patio reads is a
// secret.
func patioEnvironment(environ []string, flags map[string]settable) map[string]string {
	known := slices.Clone(otherVariables)
	for _, f := range flags {
		known = append(known, f.variable)
	}
	set := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "PATIO_") {
			if !slices.Contains(known, name) {
				value = notOurs
			}
			set[name] = value
		}
	}
	return set
}

// source says in words where a setting comes from.
func (e effective) source() string {
	words := map[string]string{
		fromFlag: "flag", fromVariable: "environment: " + e.Where, fromProfile: "profile " + e.Where, fromFile: settingsName, fromDefault: "default",
	}[e.From]
	if e.Line > 0 {
		words += ", line " + strconv.Itoa(e.Line)
	}
	return words
}

var effectiveListing = listing[effective]{columns: []column[effective]{
	{cell: func(e effective) string { return e.Name }},
	{cell: func(e effective) string { return firstNonEmpty(e.Value.String(), "-") }},
	{cell: effective.source},
}}

func writeConfiguration(w io.Writer, c configuration) error {
	file := c.File
	switch {
	case !c.Exists:
		file += " (not there: the defaults are in effect)"
	case c.Error != nil:
		file += " (NOT in effect: it has faults)"
	}
	err := fields(w,
		[2]string{"Configuration", file},
		[2]string{"Sessions, journals", c.State},
		[2]string{"Images", strings.Join(c.Images, ", ")},
		[2]string{"Caches", c.Cache},
		[2]string{"Sockets", c.Runtime},
		[2]string{"Limits by default", c.Limits},
	)
	if err != nil {
		return err
	}
	if err := sectionTable(w, "Settings", effectiveListing, c.Settings); err != nil {
		return err
	}
	var profiles []string
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		var words []string
		for _, key := range slices.Sorted(maps.Keys(c.Profiles[name])) {
			words = append(words, key+"="+shellQuote(c.Profiles[name][key].String()))
		}
		profiles = append(profiles, name+": "+firstNonEmpty(strings.Join(words, " "), "nothing"))
	}
	if err := section(w, "Profiles", profiles...); err != nil {
		return err
	}
	if err := section(w, "More session files", c.SessionDirs...); err != nil {
		return err
	}
	if err := section(w, "Terminal UI", c.TUI.lines()...); err != nil {
		return err
	}
	var lines []string
	for name, value := range c.Environment {
		lines = append(lines, name+"="+value)
	}
	slices.Sort(lines)
	return section(w, "From the environment", lines...)
}

func (t tuiConfiguration) lines() []string {
	var lines []string
	if t.Theme != "" {
		lines = append(lines, "theme: "+t.Theme)
	}
	if t.Mouse != nil {
		lines = append(lines, "mouse: "+strconv.FormatBool(*t.Mouse))
	}
	for _, action := range slices.Sorted(maps.Keys(t.Keys)) {
		lines = append(lines, "keys."+action+": "+strings.Join(t.Keys[action], ", "))
	}
	return lines
}

func configPathCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print the configuration file's path",
		Args:  arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			path, err := settingsPath()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.display(), path)
			return err
		},
	}
}

func settingsPath() (string, error) {
	dirs, err := engine.UserDirs()
	return filepath.Join(dirs.Config, settingsName), err
}
