package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
)

// keyMap are the root's own keys. Views have theirs, which never are among these: a test
// holds them apart.
type keyMap struct {
	Quit, Help, Palette         key.Binding
	NextTab, PreviousTab        key.Binding
	Back, Detach                key.Binding
	New, Import, Doctor, Themes key.Binding
	Attach, Shell, Stop, Delete key.Binding
	Mouse, Interrupt, Suspend   key.Binding
}

// action is one entry of the key map, as it can be configured and run from the palette.
type action struct {
	name string // in the configuration
	keys []string
	help string
	at   func(*keyMap) *key.Binding
}

// actions is the one table of the root's keys.
var actions = []action{
	{"help", []string{"?"}, "help", func(k *keyMap) *key.Binding { return &k.Help }},
	{"palette", []string{":", "ctrl+p"}, "commands", func(k *keyMap) *key.Binding { return &k.Palette }},
	{"back", []string{"esc"}, "back", func(k *keyMap) *key.Binding { return &k.Back }},
	{"next-tab", []string{"]", "tab"}, "next tab", func(k *keyMap) *key.Binding { return &k.NextTab }},
	{"previous-tab", []string{"[", "shift+tab"}, "previous tab", func(k *keyMap) *key.Binding { return &k.PreviousTab }},
	{"new", []string{"n"}, "new session", func(k *keyMap) *key.Binding { return &k.New }},
	{"attach", []string{"a"}, "open the session", func(k *keyMap) *key.Binding { return &k.Attach }},
	{"shell", []string{"s"}, "shell inside", func(k *keyMap) *key.Binding { return &k.Shell }},
	{"stop", []string{"x"}, "stop", func(k *keyMap) *key.Binding { return &k.Stop }},
	{"delete", []string{"ctrl+d"}, "delete", func(k *keyMap) *key.Binding { return &k.Delete }},
	{"import", []string{"I"}, "import", func(k *keyMap) *key.Binding { return &k.Import }},
	{"doctor", []string{"D"}, "doctor", func(k *keyMap) *key.Binding { return &k.Doctor }},
	{"themes", []string{"t"}, "themes", func(k *keyMap) *key.Binding { return &k.Themes }},
	{"mouse", []string{"m"}, "mouse on or off", func(k *keyMap) *key.Binding { return &k.Mouse }},
	{"detach", []string{"ctrl+]"}, "leave; the session goes on", func(k *keyMap) *key.Binding { return &k.Detach }},
	{"quit", []string{"q"}, "quit; sessions go on", func(k *keyMap) *key.Binding { return &k.Quit }},
	{"interrupt", []string{"ctrl+c"}, "quit", func(k *keyMap) *key.Binding { return &k.Interrupt }},
	{"suspend", []string{"ctrl+z"}, "suspend", func(k *keyMap) *key.Binding { return &k.Suspend }},
}

// newKeyMap makes the key map, with the user's keys in place of the defaults.
func newKeyMap(configured map[string][]string) (*keyMap, error) {
	k := &keyMap{}
	taken := map[string]string{}
	for name := range configured {
		if !slices.ContainsFunc(actions, func(a action) bool { return a.name == name }) {
			var names []string
			for _, a := range actions {
				names = append(names, a.name)
			}
			return nil, fmt.Errorf("no action %q for a key: %s", name, strings.Join(names, ", "))
		}
	}
	for _, a := range actions {
		keys := a.keys
		if own, ok := configured[a.name]; ok {
			keys = own
		}
		if len(keys) == 0 && a.name == "interrupt" {
			return nil, fmt.Errorf("the action %q needs a key: nothing else leaves a view that takes text", a.name)
		}
		for _, name := range keys {
			if other, ok := taken[name]; ok {
				return nil, fmt.Errorf("the key %q is both %s and %s", name, other, a.name)
			}
			taken[name] = a.name
		}
		*a.at(k) = key.NewBinding(key.WithKeys(keys...), key.WithHelp(strings.Join(first(keys, 2), "/"), a.help))
	}
	return k, nil
}

func first(keys []string, n int) []string { return keys[:min(len(keys), n)] }
