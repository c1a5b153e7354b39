package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
)

// settingsHome makes the calling user's directories a test's own and returns the path of
// the configuration file, which isn't there yet.
func settingsHome(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if s, ok := t.(*testing.T); ok {
		s.Setenv("HOME", filepath.Join(dir, "home"))
		s.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")) // root's is the system's without
		s.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
		for _, name := range []string{"PATIO_MODEL", "PATIO_ALLOW", "PATIO_LIMIT", "PATIO_PROFILE", "PATIO_OUTPUT", "PATIO_TIMEOUT"} {
			s.Setenv(name, "")
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "config", "patio"), 0o700))
	return filepath.Join(dir, "config", "patio", settingsName)
}

func writeSettings(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// applied is a command of the tree with its flags as a run would have them.
func applied(t *testing.T, env map[string]string, args ...string) (*app, *cobra.Command, error) {
	t.Helper()
	a := &app{stdout: io.Discard, stderr: io.Discard, lookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	cmd, rest, err := newRoot(a).Find(args)
	require.NoError(t, err)
	require.NoError(t, cmd.ParseFlags(rest))
	return a, cmd, a.applySettings(cmd)
}

func TestPrecedence(t *testing.T) {
	path := settingsHome(t)
	const file = `
model = "file/m"
allow = ["file.example", "b.example"]
limit = {memory = "2G", pids = 100}
timeout = "5m"
output = "yaml"
`
	const profiles = `
[profiles.work]
model = "work/m"
allow = ["work.example"]
timeout = "7m"
[profiles.bare]
model = ""
allow = []
timeout = ""
`
	for name, c := range map[string]struct {
		file string
		env  map[string]string
		args []string
		flag string
		want string // as pflag writes it
		from origin
	}{
		"default":                     {"", nil, []string{"new"}, "model", "", origin{From: fromDefault}},
		"default list":                {"", nil, []string{"new"}, "allow", "[]", origin{From: fromDefault}},
		"file":                        {file, nil, []string{"new"}, "model", "file/m", origin{From: fromFile, Line: 2}},
		"file list":                   {file, nil, []string{"run"}, "allow", "[file.example,b.example]", origin{From: fromFile, Line: 3}},
		"file table":                  {file, nil, []string{"resume"}, "limit", "[memory=2G,pids=100]", origin{From: fromFile, Line: 4}},
		"file duration":               {file, nil, []string{"run"}, "timeout", "5m0s", origin{From: fromFile, Line: 5}},
		"file output":                 {file, nil, []string{"sessions", "ls"}, "output", "yaml", origin{From: fromFile, Line: 6}},
		"another command's flag":      {`image = "pi-1"`, nil, []string{"demo"}, "image", "pi-1", origin{From: fromFile, Line: 1}},
		"profile of the file":         {`profile = "work"` + file + profiles, nil, []string{"plan"}, "model", "work/m", origin{fromProfile, "work", 9}},
		"profile of the environment":  {file + profiles, map[string]string{"PATIO_PROFILE": "work"}, []string{"plan"}, "allow", "[work.example]", origin{fromProfile, "work", 10}},
		"profile by its flag":         {`profile = "bare"` + file + profiles, map[string]string{"PATIO_PROFILE": "bare"}, []string{"run", "--profile=work"}, "timeout", "7m0s", origin{fromProfile, "work", 11}},
		"profile says nothing":        {file + profiles, nil, []string{"run", "--profile=work"}, "limit", "[memory=2G,pids=100]", origin{From: fromFile, Line: 4}},
		"profile empties":             {file + profiles, nil, []string{"run", "--profile=bare"}, "model", "", origin{fromProfile, "bare", 13}},
		"profile empties a list":      {file + profiles, nil, []string{"run", "--profile=bare"}, "allow", "[]", origin{fromProfile, "bare", 14}},
		"profile empties a duration":  {file + profiles, nil, []string{"run", "--profile=bare"}, "timeout", "0s", origin{fromProfile, "bare", 15}},
		"no profile for other flags":  {`profile = "work"` + file + profiles, nil, []string{"demo"}, "image", "", origin{From: fromDefault}},
		"environment over profile":    {file + profiles, map[string]string{"PATIO_MODEL": "env/m"}, []string{"run", "--profile=work"}, "model", "env/m", origin{From: fromVariable, Where: "PATIO_MODEL"}},
		"environment's list":          {file + profiles, map[string]string{"PATIO_ALLOW": "e.example,f.example"}, []string{"run"}, "allow", "[e.example,f.example]", origin{From: fromVariable, Where: "PATIO_ALLOW"}},
		"empty environment":           {file, map[string]string{"PATIO_MODEL": ""}, []string{"run"}, "model", "file/m", origin{From: fromFile, Line: 2}},
		"flag over all":               {file + profiles, map[string]string{"PATIO_MODEL": "env/m"}, []string{"run", "--profile=work", "--model=flag/m"}, "model", "flag/m", origin{From: fromFlag}},
		"flag's list":                 {file + profiles, nil, []string{"run", "--profile=work", "--allow=x.example"}, "allow", "[x.example]", origin{From: fromFlag}},
		"an empty flag is a flag too": {file, nil, []string{"run", "--model="}, "model", "", origin{From: fromFlag}},
		"environment's profile loses": {file + profiles, map[string]string{"PATIO_PROFILE": "nope"}, []string{"run", "--profile=work"}, "model", "work/m", origin{fromProfile, "work", 9}},
		"a flag of no configuration":  {file, map[string]string{"PATIO_NAME": "x"}, []string{"run"}, "name", "", origin{}},
	} {
		t.Run(name, func(t *testing.T) {
			writeSettings(t, path, c.file)
			a, cmd, err := applied(t, c.env, c.args...)
			require.NoError(t, err)
			f := cmd.Flags().Lookup(c.flag)
			require.Equal(t, c.want, f.Value.String())
			require.Equal(t, c.from, a.origins[c.flag])
			require.Equal(t, c.from.From == fromFlag, f.Changed, "only what was typed may exclude other flags")
		})
	}
}

func TestExplicitly(t *testing.T) {
	path := settingsHome(t)
	writeSettings(t, path, "profile = 'work'\n[profiles.work]\nmodel = 'a/b'\n")
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want bool
	}{
		"default profile":  {nil, nil, false},
		"named profile":    {nil, []string{"--profile=work"}, true},
		"flag":             {nil, []string{"--model=c/d"}, true},
		"environment":      {map[string]string{"PATIO_MODEL": "c/d"}, nil, false},
		"environment wins": {map[string]string{"PATIO_MODEL": "c/d"}, []string{"--profile=work"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, cmd, err := applied(t, c.env, append([]string{"resume"}, c.args...)...)
			require.NoError(t, err)
			require.Equal(t, c.want, a.explicitly(cmd.Flags(), "model"))
		})
	}
}

func TestUnknownProfile(t *testing.T) {
	path := settingsHome(t)
	writeSettings(t, path, "[profiles.work]\n[profiles.home]\n")
	_, _, err := applied(t, nil, "run", "--profile=wrk")
	e := classify(err)
	require.Equal(t, api.CodeConfig, e.Code)
	require.Equal(t, `no profile "wrk" in `+path, e.Message)
	require.Equal(t, "there are: home, work", e.Hint)

	writeSettings(t, path, "")
	_, _, err = applied(t, map[string]string{"PATIO_PROFILE": "x"}, "new")
	require.Equal(t, "there are none; `patio config edit` adds one as [profiles.NAME]", classify(err).Hint)
}

func TestSettingsProblems(t *testing.T) {
	flags := settableFlags(newRoot(&app{}))
	for name, c := range map[string]struct{ text, want string }{
		"syntax":               {"\nmodel = = 1", `2:9: unexpected character U+003D '=' at start of value: model = = 1`},
		"syntax with escapes":  {"a = \"\x1b[2J\u202e", "1:6: basic strings cannot have control characters: a = \"[2J"},
		"not TOML at all":      {`{"model": "a/b"}`, `1:1: invalid character at start of key: U+007B '{': {"model": "a/b"}`},
		"long line":            {"a = " + strings.Repeat("x", 500), "1:5: unexpected character U+0078 'x' at start of value: a = " + strings.Repeat("x", 75) + "…"},
		"key twice":            {"model = 'a/b'\nmodel = 'c/d'", `2:1: key model is already defined: model = 'c/d'`},
		"table twice":          {"[tui]\n[tui]", `2:2: table tui already exists: [tui]`},
		"unknown key":          {"\nmodell = 'a/b'", `2:1: unknown key "modell": did you mean "model"?`},
		"swapped letters":      {"alolw = []", `1:1: unknown key "alolw": did you mean "allow"?`},
		"capitals":             {"MODEL = 'a/b'", `1:1: unknown key "MODEL": did you mean "model"?`},
		"flag of no setting":   {"force = true", `1:1: unknown key "force": the keys here are allow, image, limit, model, output, platform, profile, thinking, timeout, session_dirs, profiles, tui`},
		"unknown table":        {"[tiu]\ntheme = 'x'", `1:2: unknown key "tiu": did you mean "tui"?`},
		"key below a table":    {"[tui]\nmodel = 'a/b'", `2:1: unknown key "tui.model": model belongs above the first [table]`},
		"key of the UI":        {"[tui]\nthem = 'x'", `2:1: unknown key "tui.them": did you mean "tui.theme"?`},
		"hazards in a key":     {"\"a\\u001b[31m\\u202eb\" = 1", `1:1: unknown key "a\x1b[31m\u202eb": the keys here are allow, image, limit, model, output, platform, profile, thinking, timeout, session_dirs, profiles, tui`},
		"model's type":         {"model = 3", `1:1: model is an integer, not a string`},
		"model's form":         {"model = 'opus'", `1:1: model: a model is PROVIDER/MODEL, not "opus"`},
		"thinking":             {"thinking = 'lots'", `1:1: thinking: unknown thinking level "lots": one of off, minimal, low, medium, high, xhigh, max`},
		"allow is no string":   {"allow = 'a.example'", `1:1: allow is a string, not a list of strings, such as ["…"]`},
		"allow of numbers":     {"allow = ['a.example', 443]", `1:23: allow holds an integer, not only strings`},
		"allow's form":         {"allow = [\n  'a.example',\n  '*',\n]", `3:3: allow: parse rule "*": `},
		"limit's type":         {"limit = 4", `1:1: limit is an integer, not a table, such as {memory = "4G"}, or a list of strings, such as ["memory=4G"]`},
		"limit's key":          {"[limit]\nmemry = '4G'", `2:1: limit: parse limit "memry=4G": unknown key "memry"; the keys are memory, `},
		"limit's inline key":   {"limit = {memory = '4G', pids = 'x'}", `1:25: limit: parse limit "pids=x": `},
		"limit's value":        {"limit = {memory = true}", `1:10: limit.memory is a boolean, not a string or an integer`},
		"limit in a list":      {"limit = ['memory=4G', 'memory']", `1:23: limit: parse limit "memory": want key=value`},
		"platform":             {"platform = 'ptrace'", `1:1: platform: unknown platform "ptrace": systrap or kvm`},
		"image's type":         {"image = 2026-01-01", `1:1: image is a date or a time, not a string`},
		"timeout":              {"timeout = 'soon'", `1:1: timeout: "soon" is no duration, such as 10m`},
		"timeout's type":       {"timeout = 1.5", `1:1: timeout is a float, not a string`},
		"negative timeout":     {"timeout = '-1s'", `1:1: timeout: the timeout -1s is negative`},
		"output":               {"output = 'xml'", `1:1: output: unknown output format "xml": table, json, yaml or template=GO-TEMPLATE`},
		"profile isn't there":  {"profile = 'x'", `1:1: no profile "x": there is no [profiles.NAME]`},
		"profile mistyped":     {"profile = 'x'\n[profiles.b]\n[profiles.a]", `1:1: no profile "x": there are a, b`},
		"profile is no table":  {"[profiles]\nwork = 'a/b'", `2:1: profiles.work is a string, not a table`},
		"profiles is a list":   {"[[profiles]]\nmodel = 'a/b'", `1:3: profiles is a list, not a table`},
		"profile's key":        {"[profiles.work]\nmdel = 'a/b'", `2:1: unknown key "profiles.work.mdel": did you mean "profiles.work.model"?`},
		"profile's value":      {"[profiles.work]\nallow = [1]", `2:10: profiles.work.allow holds an integer, not only strings`},
		"profile in a profile": {"[profiles.work]\nprofile = 'x'", `2:1: unknown key "profiles.work.profile": profile belongs above the first [table]`},
		"output in a profile":  {"[profiles.work]\noutput = 'json'", `2:1: unknown key "profiles.work.output": output belongs above the first [table]`},
		"profile's name":       {"[profiles.'a b']\n", `1:11: the profile's name "a b": letters, digits, dots, hyphens and underscores only`},
		"dotted key":           {"profiles.work.model = 1", `1:15: profiles.work.model is an integer, not a string`},
		"session_dirs' type":   {"session_dirs = '~/x'", `1:1: session_dirs is a string, not a list of strings, such as ["~/old-sessions"]`},
		"relative directory":   {"session_dirs = ['/x', 'old']", `1:23: session_dirs: "old" is neither absolute nor begins with ~/`},
		"another's home":       {"session_dirs = ['~root/x']", `1:17: session_dirs: "~root/x" is neither absolute nor begins with ~/`},
		"empty directory":      {"session_dirs = ['']", `1:17: session_dirs: "" is neither absolute nor begins with ~/`},
		"NUL in a directory":   {`session_dirs = ["/x\u0000"]`, `1:17: session_dirs: "/x\x00" has a control character`},
		"theme's type":         {"tui.theme = 1", `1:5: tui.theme is an integer, not a string`},
		"mouse's type":         {"tui.mouse = 'on'", `1:5: tui.mouse is a string, not true or false`},
		"keys' type":           {"[tui]\nkeys = 'q'", `2:1: tui.keys is a string, not a table`},
		"key's type":           {"[tui.keys]\nquit = 1", `2:1: tui.keys.quit is an integer, not a string or a list of strings`},
		"keys of numbers":      {"[tui.keys]\nquit = ['q', 2]", `2:14: tui.keys.quit holds an integer, not only strings`},
		"in the file's order":  {"thinking = 'x'\n[tui]\na = 1\n", "1:1: thinking: unknown thinking level \"x\": one of off, minimal, low, medium, high, xhigh, max\nf:3:1: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := parseSettings([]byte(c.text), flags, "/home/u")
			require.NotEmpty(t, problems)
			got := (&settingsError{path: "f", problems: problems}).Error()
			requireSafe(t, got)
			require.True(t, strings.HasPrefix(got, "f:"+c.want), got)
		})
	}
}

func TestManyProblems(t *testing.T) {
	var b strings.Builder
	for i := range 50 {
		b.WriteString("x" + strconv.Itoa(i) + " = 1\n")
	}
	_, problems := parseSettings([]byte(b.String()), nil, "")
	got := strings.Split((&settingsError{path: "f", problems: problems}).Error(), "\n")
	require.Len(t, got, maxProblems+1)
	require.Equal(t, "f: and 30 more", got[maxProblems])
}

func TestParsedSettings(t *testing.T) {
	s, problems := parseSettings([]byte(`
session_dirs = ["~", "~/old", "/srv/./pi/"]
[tui]
theme = "dusk"
mouse = false
keys = {quit = "q", help = ["?", "f1"], none = []}
`), settableFlags(newRoot(&app{})), "/home/u")
	require.Empty(t, problems)
	require.Equal(t, []string{"/home/u", "/home/u/old", "/srv/pi"}, s.SessionDirs)
	no := false
	require.Equal(t, tuiSettings{Theme: "dusk", Mouse: &no, Keys: map[string][]string{"quit": {"q"}, "help": {"?", "f1"}, "none": {}}}, s.TUI)

	_, problems = parseSettings([]byte(`session_dirs = ["~/old"]`), nil, "")
	require.Contains(t, problems[0].Message, "set HOME")
}

// TestSettingsFile holds what the file itself may be.
func TestSettingsFile(t *testing.T) {
	const good = `model = "a/b"`
	asRoot := os.Geteuid() == 0
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		code api.Code
		want string
		hint string
	}{
		"missing":    {func(*testing.T, string) {}, "", "", ""},
		"private":    {func(t *testing.T, path string) { writeSettings(t, path, good) }, "", "", ""},
		"empty":      {func(t *testing.T, path string) { writeSettings(t, path, "") }, "", "", ""},
		"world-read": {func(t *testing.T, path string) { writeSettings(t, path, good); chmod(t, path, 0o644) }, "", "", ""},
		"world-writable": {func(t *testing.T, path string) { writeSettings(t, path, good); chmod(t, path, 0o646) },
			api.CodeConfig, "can be written by others (mode 0646)", "chmod go-w "},
		"group-writable": {func(t *testing.T, path string) { writeSettings(t, path, good); chmod(t, path, 0o660) },
			api.CodeConfig, "can be written by others (mode 0660)", "chmod go-w "},
		"link": {func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "dotfiles.toml")
			writeSettings(t, target, good)
			require.NoError(t, os.Symlink(target, path))
		}, "", "", ""},
		"link to a writable file": {func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "dotfiles.toml")
			writeSettings(t, target, good)
			chmod(t, target, 0o666)
			require.NoError(t, os.Symlink(target, path))
		}, api.CodeConfig, "can be written by others", "chmod go-w "},
		"link to nothing": {func(t *testing.T, path string) { require.NoError(t, os.Symlink("/nonexistent/x", path)) },
			api.CodeConfig, "is a link to a file that isn't there", "mend or remove"},
		"link to itself": {func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) },
			api.CodeConfig, "can't be read: too many levels of symbolic links", ""},
		"directory": {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
			api.CodeConfig, "is no regular file", ""},
		"pipe": {func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
			api.CodeConfig, "is no regular file", ""},
		"too large": {func(t *testing.T, path string) { writeSettings(t, path, strings.Repeat("#\n", maxSettingsFile/2)+"#") },
			api.CodeConfig, "is larger than 256 KiB", ""},
		"another's": {func(t *testing.T, path string) { writeSettings(t, path, good); chown(t, asRoot, path) },
			api.CodeConfig, "belongs to the user 12345", "chown 0 "},
		"another's link": {func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "dotfiles.toml")
			writeSettings(t, target, good)
			require.NoError(t, os.Symlink(target, path))
			chown(t, asRoot, path)
		}, api.CodeConfig, "belongs to the user 12345", "chown -h 0 "},
		"link to another's file": {func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "dotfiles.toml")
			writeSettings(t, target, good)
			chown(t, asRoot, target)
			require.NoError(t, os.Symlink(target, path))
		}, api.CodeConfig, "belongs to the user 12345", "chown 0 "},
		"no directory": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(filepath.Dir(path)))
			require.NoError(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, api.CodeConfig, "can't be read: not a directory", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := settingsHome(t)
			c.make(t, path)
			s, err := loadSettings(path, settableFlags(newRoot(&app{})))
			require.Equal(t, path, s.Path)
			if c.code == "" {
				require.NoError(t, err)
				require.Equal(t, name != "missing", s.Exists)
				require.Equal(t, name != "missing" && name != "empty", len(s.Values) == 1)
				return
			}
			e := classify(err)
			require.Equal(t, c.code, e.Code)
			require.Contains(t, e.Message, c.want)
			require.Contains(t, e.Message, path)
			require.Contains(t, e.Hint, c.hint)
			require.Empty(t, s.Values)
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.Chmod(path, mode))
}

// chown gives a file to somebody else, which only root can.
func chown(t *testing.T, asRoot bool, path string) {
	t.Helper()
	if !asRoot {
		t.Skip("only root can make a file somebody else's")
	}
	require.NoError(t, os.Lchown(path, 12345, 12345))
}

func TestGuardSettings(t *testing.T) {
	path := settingsHome(t)
	dotfiles := t.TempDir()
	a := &app{lookupEnv: noEnv}
	require.NoError(t, a.guardSettings(dotfiles), "no file")

	writeSettings(t, filepath.Join(dotfiles, "patio.toml"), "")
	require.NoError(t, os.Symlink(filepath.Join(dotfiles, "patio.toml"), path))
	a = &app{lookupEnv: noEnv}
	require.NoError(t, a.guardSettings(t.TempDir()))
	alias := filepath.Join(t.TempDir(), "alias")
	require.NoError(t, os.Symlink(dotfiles, alias))
	for _, workspace := range []string{dotfiles, alias, filepath.Dir(dotfiles)} {
		e := classify(a.guardSettings(workspace))
		require.Equal(t, api.CodeRefused, e.Code)
		require.Contains(t, e.Message, "lies in the workspace")
	}
}

// commented matches a setting of the template that is commented out.
var commented = regexp.MustCompile(`(?m)^#([a-z\[])`)

// TestSettingsTemplate holds that the template changes nothing as it is, is right once its
// settings are put into effect, and names every setting.
func TestSettingsTemplate(t *testing.T) {
	flags := settableFlags(newRoot(&app{}))
	s, problems := parseSettings(settingsTemplate, flags, "/home/u")
	require.Empty(t, problems)
	require.Empty(t, s.Values)

	requireEverySetting(t, flags, commented.ReplaceAll(settingsTemplate, []byte("$1")))
}

// TestConfigurationExample holds the example of docs/configuration.md to the same.
func TestConfigurationExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "```toml\n")
	require.True(t, ok)
	example, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	flags := settableFlags(newRoot(&app{}))
	requireEverySetting(t, flags, []byte(example))
	for name := range flags {
		require.Contains(t, string(text), "`"+name+"`", "the table of settings")
	}
}

func requireEverySetting(t *testing.T, flags map[string]settable, text []byte) {
	t.Helper()
	s, problems := parseSettings(text, flags, "/home/u")
	require.Empty(t, problems)
	for name := range flags {
		require.Contains(t, s.Values, name)
	}
	require.NotEmpty(t, s.SessionDirs)
	require.NotEmpty(t, s.Profiles)
	require.NotEmpty(t, s.TUI.Theme)
	require.NotNil(t, s.TUI.Mouse)
	require.NotEmpty(t, s.TUI.Keys)
}

// TestSettableFlags holds what the mechanism rests on: one type for each name, of those
// that the file can hold, and a check for what isn't any text.
func TestSettableFlags(t *testing.T) {
	root := newRoot(&app{})
	flags := settableFlags(root)
	launch := []string{}
	for name, f := range flags {
		require.Contains(t, []string{"string", "stringSlice", "duration", "bool", "int"}, f.kind, name)
		require.False(t, f.kind == "duration" && settingChecks[name] == nil, name)
		if f.launch {
			launch = append(launch, name)
		}
	}
	slices.Sort(launch)
	require.Equal(t, []string{"allow", "image", "limit", "model", "platform", "thinking", "timeout"}, launch)
	for name := range settingChecks {
		require.Contains(t, flags, name)
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if len(f.Annotations[envAnnotation]) > 0 {
				require.Equal(t, flags[f.Name].kind, f.Value.Type(), "%s --%s", cmd.CommandPath(), f.Name)
			}
		})
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(root)
}

func TestEnvironmentShowsNoSecrets(t *testing.T) {
	flags := settableFlags(newRoot(&app{}))
	require.Equal(t, map[string]string{"PATIO_MODEL": "a/b", "PATIO_TOKEN": notOurs, "PATIO_RUNSC": "/x"},
		patioEnvironment([]string{"PATIO_MODEL=a/b", "PATIO_TOKEN=hunter2", "PATIO_RUNSC=/x", "HOME=/h"}, flags))
}

func TestEditor(t *testing.T) {
	env := map[string]string{"EDITOR": "nano", "VISUAL": "code --wait"}
	a := &app{stdin: strings.NewReader(""), lookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	editor, err := a.editor()
	require.NoError(t, err)
	require.Equal(t, "code --wait", editor)
	delete(env, "VISUAL")
	editor, err = a.editor()
	require.NoError(t, err)
	require.Equal(t, "nano", editor)
	delete(env, "EDITOR")
	_, err = a.editor()
	require.Equal(t, api.CodeMissing, classify(err).Code)
}

func FuzzSettings(f *testing.F) {
	flags := settableFlags(newRoot(&app{}))
	f.Add(string(settingsTemplate))
	f.Add(string(commented.ReplaceAll(settingsTemplate, []byte("$1"))))
	f.Add("limit = {a.b = 1, c = [{d = 2}]}\n[[x.y]]\n\"\\u001b\" = ''")
	f.Add("session_dirs = [ # c\n 'a', # d\n [1], {b = 2}]")
	f.Add("allow = \"\"\"\n\x1b\"\"\"")
	f.Fuzz(func(t *testing.T, text string) {
		s, problems := parseSettings([]byte(text), flags, "/home/u")
		if len(problems) == 0 {
			for _, dir := range s.SessionDirs {
				require.True(t, filepath.IsAbs(dir))
			}
			return
		}
		for _, p := range problems {
			require.LessOrEqual(t, p.Line, strings.Count(text, "\n")+1)
			require.NotContains(t, p.Text, "\n")
		}
		got := (&settingsError{path: "f", problems: problems}).Error()
		requireSafe(t, got)
		require.LessOrEqual(t, strings.Count(got, "\n"), maxProblems)
	})
}
