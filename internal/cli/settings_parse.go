package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"
)

// The keys that are no flags.
const (
	sessionDirsKey = "session_dirs"
	profilesKey    = "profiles"
	tuiKey         = "tui"
)

// limitFlag may be written as a table too, for each of its values is KEY=VALUE.
const limitFlag = "limit"

// settingsParser checks a configuration file. It goes on after a fault, so that one look
// at the messages is enough to mend a file.
type settingsParser struct {
	text     []byte
	flags    map[string]settable
	home     string
	places   places
	problems []settingsProblem
}

// parseSettings reads a configuration file's text. Flags are those that it may set, and
// home is what ~ means. The settings are good only without problems.
func parseSettings(text []byte, flags map[string]settable, home string) (*settings, []settingsProblem) {
	p := &settingsParser{text: text, flags: flags, home: home}
	var root map[string]any
	if err := toml.Unmarshal(text, &root); err != nil {
		return nil, []settingsProblem{syntaxProblem(text, err)}
	}
	p.places = findPlaces(text)
	s := &settings{Values: map[string]setting{}, Profiles: map[string]map[string]setting{}}
	p.root(s, root)
	slices.SortStableFunc(p.problems, func(a, b settingsProblem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return s, p.problems
}

// syntaxProblem is what is wrong with a file that isn't TOML.
func syntaxProblem(text []byte, err error) settingsProblem {
	problem := settingsProblem{Message: strings.TrimPrefix(err.Error(), "toml: ")}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		problem.Line, problem.Column = e.Position()
		problem.Text = quoteLine(text, problem.Line)
	}
	return problem
}

// at notes a problem with the value of a key.
func (p *settingsParser) at(path []string, format string, args ...any) {
	place := p.places.of(path)
	p.problems = append(p.problems, settingsProblem{Line: place.line, Column: place.column, Message: fmt.Sprintf(format, args...)})
}

func (p *settingsParser) root(s *settings, root map[string]any) {
	known := append(slices.Sorted(maps.Keys(p.flags)), sessionDirsKey, profilesKey, tuiKey)
	for name, v := range root {
		path := []string{name}
		switch flag, isFlag := p.flags[name]; {
		case isFlag:
			if value, ok := p.flag(path, flag, v); ok {
				s.Values[name] = value
			}
		case name == sessionDirsKey:
			s.SessionDirs = p.sessionDirs(path, v)
		case name == profilesKey:
			p.profiles(s, path, v)
		case name == tuiKey:
			p.tui(&s.TUI, path, v)
		default:
			p.unknown(path, known)
		}
	}
	if chosen := s.Values[profileFlag].values; len(chosen) > 0 && chosen[0] != "" {
		if _, ok := s.Profiles[chosen[0]]; !ok {
			p.at([]string{profileFlag}, "no profile %q: %s", chosen[0], oneOf(s.profiles(), "there is no [profiles.NAME]"))
		}
	}
}

// oneOf lists what there is to choose from.
func oneOf(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return "there are " + strings.Join(names, ", ")
}

// unknown notes a key that means nothing, with the one that may be meant.
func (p *settingsParser) unknown(path, known []string) {
	name := path[len(path)-1]
	_, isFlag := p.flags[name]
	switch near := closestName(name, known); {
	case len(path) > 1 && (isFlag || name == sessionDirsKey):
		// In TOML a key belongs to the table above it, wherever it seems to stand.
		p.at(path, "unknown key %q: %s belongs above the first [table]", strings.Join(path, "."), name)
	case near != "":
		p.at(path, "unknown key %q: did you mean %q?", strings.Join(path, "."), strings.Join(append(slices.Clone(path[:len(path)-1]), near), "."))
	default:
		p.at(path, "unknown key %q: the keys here are %s", strings.Join(path, "."), strings.Join(known, ", "))
	}
}

// flag reads a flag's value and checks it as far as it can be without a launch.
func (p *settingsParser) flag(path []string, flag settable, v any) (setting, bool) {
	value := setting{line: p.places.of(path).line}
	var ok bool
	switch {
	case flag.isList():
		value.values, ok = p.list(path, flag, v)
	case flag.kind == "bool":
		var b bool
		b, ok = v.(bool)
		value.values = []string{strconv.FormatBool(b)}
		p.want(ok, path, "true or false", v)
	case flag.kind == "int":
		var n int64
		n, ok = v.(int64)
		value.values = []string{strconv.FormatInt(n, 10)}
		p.want(ok, path, "an integer", v)
	default:
		var s string
		s, ok = v.(string)
		value.values = []string{s}
		p.want(ok, path, "a string", v)
	}
	if !ok {
		return value, false
	}
	check := settingChecks[flag.name]
	for i, s := range value.values {
		if check == nil || s == "" && !flag.isList() {
			continue // an empty string is the default
		}
		if err := check(s); err != nil {
			where := path
			if flag.isList() {
				where = p.places.item(path, s, i)
			}
			p.at(where, "%s: %v", strings.Join(path, "."), err)
			ok = false
		}
	}
	return value, ok
}

// want notes a value of the wrong type.
func (p *settingsParser) want(ok bool, path []string, wanted string, v any) {
	if !ok {
		p.at(path, "%s is %s, not %s", strings.Join(path, "."), typeName(v), wanted)
	}
}

// typeName is what TOML calls a value.
func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or a time"
}

// list reads the values of a flag that may be repeated.
func (p *settingsParser) list(path []string, flag settable, v any) ([]string, bool) {
	if flag.name != limitFlag {
		return p.strings(path, `a list of strings, such as ["…"]`, v)
	}
	table, ok := v.(map[string]any)
	if !ok {
		return p.strings(path, `a table, such as {memory = "4G"}, or a list of strings, such as ["memory=4G"]`, v)
	}
	var values []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		switch value := table[key].(type) {
		case string:
			values = append(values, key+"="+value)
		case int64:
			values = append(values, key+"="+strconv.FormatInt(value, 10))
		default:
			p.want(false, append(slices.Clone(path), key), "a string or an integer", value)
			ok = false
		}
	}
	return values, ok
}

// strings reads a list of strings. An empty one isn't nil: it takes back a default.
func (p *settingsParser) strings(path []string, wanted string, v any) ([]string, bool) {
	items, ok := v.([]any)
	if !ok {
		p.want(false, path, wanted, v)
		return nil, false
	}
	list := []string{}
	for i, item := range items {
		s, isString := item.(string)
		if !isString {
			p.at(p.places.item(path, "", i), "%s holds %s, not only strings", strings.Join(path, "."), typeName(item))
			ok = false
			continue
		}
		list = append(list, s)
	}
	return list, ok
}

// sessionDirs reads directories. A relative one would mean another place in each project.
func (p *settingsParser) sessionDirs(path []string, v any) []string {
	list, _ := p.strings(path, `a list of strings, such as ["~/old-sessions"]`, v)
	var dirs []string
	for i, dir := range list {
		where := p.places.item(path, "", i)
		rest, home := strings.CutPrefix(dir, "~")
		home = home && (rest == "" || rest[0] == '/')
		switch {
		case strings.ContainsFunc(dir, unicode.IsControl):
			p.at(where, "session_dirs: %q has a control character", dir)
		case home && !filepath.IsAbs(p.home):
			p.at(where, "session_dirs: %q: the home directory is unknown; set HOME", dir)
		case home:
			dirs = append(dirs, filepath.Join(p.home, rest))
		case !filepath.IsAbs(dir):
			p.at(where, "session_dirs: %q is neither absolute nor begins with ~/", dir)
		default:
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

// table reads a table of anything.
func (p *settingsParser) table(path []string, v any) map[string]any {
	t, ok := v.(map[string]any)
	p.want(ok, path, "a table", v)
	return t
}

func (p *settingsParser) profiles(s *settings, path []string, v any) {
	var known []string
	for _, name := range slices.Sorted(maps.Keys(p.flags)) {
		if p.flags[name].launch {
			known = append(known, name)
		}
	}
	for name, content := range p.table(path, v) {
		path := append(slices.Clone(path), name)
		if name == "" || strings.ContainsFunc(name, notInName) {
			p.at(path, "the profile's name %q: letters, digits, dots, hyphens and underscores only", name)
		}
		profile := map[string]setting{}
		for key, v := range p.table(path, content) {
			path := append(slices.Clone(path), key)
			if !slices.Contains(known, key) {
				p.unknown(path, known)
			} else if value, ok := p.flag(path, p.flags[key], v); ok {
				profile[key] = value
			}
		}
		s.Profiles[name] = profile
	}
}

// notInName keeps the names of profiles to what needs no quotes, in TOML and in a shell.
func notInName(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
}

func (p *settingsParser) tui(t *tuiSettings, path []string, v any) {
	for key, v := range p.table(path, v) {
		path := append(slices.Clone(path), key)
		var ok bool
		switch key {
		case "theme":
			t.Theme, ok = v.(string)
			p.want(ok, path, "a string", v)
		case "mouse":
			var mouse bool
			mouse, ok = v.(bool)
			p.want(ok, path, "true or false", v)
			t.Mouse = &mouse
		case "keys":
			t.Keys = p.keys(path, v)
		default:
			p.unknown(path, []string{"theme", "mouse", "keys"})
		}
	}
}

// keys reads the keys of each action: one, or a list.
func (p *settingsParser) keys(path []string, v any) map[string][]string {
	keys := map[string][]string{}
	for action, v := range p.table(path, v) {
		if one, ok := v.(string); ok {
			keys[action] = []string{one}
			continue
		}
		keys[action], _ = p.strings(append(slices.Clone(path), action), "a string or a list of strings", v)
	}
	return keys
}
