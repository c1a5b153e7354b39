package panetest

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/tui/pane"
)

var (
	named = map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "tab": tea.KeyTab, "space": tea.KeySpace,
		"backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	}
	modifiers = map[string]tea.KeyMod{"ctrl+": tea.ModCtrl, "alt+": tea.ModAlt, "shift+": tea.ModShift}
)

// Key is the key of a name as bindings have it: "enter", "ctrl+o", "G".
func Key(name string) tea.KeyPressMsg {
	k := tea.KeyPressMsg{}
	for found := true; found; {
		found = false
		for prefix, mod := range modifiers {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				name, k.Mod, found = rest, k.Mod|mod, true
			}
		}
	}
	code, ok := named[name]
	switch {
	case name == "space" && k.Mod == 0:
		k.Code, k.Text = code, " "
	case ok:
		k.Code = code
	default:
		r, _ := utf8.DecodeRuneInString(name)
		k.Code = unicode.ToLower(r)
		if k.Mod == 0 {
			k.Text = name
		}
	}
	return k
}

// Press presses keys by their names, types what is none, and returns the last one's command.
func Press(p pane.Pane, keys ...string) (cmd tea.Cmd) {
	for _, name := range keys {
		if _, ok := named[name]; ok || Key(name).Mod != 0 {
			cmd = p.Update(Key(name))
			continue
		}
		for _, r := range name {
			cmd = p.Update(Key(string(r)))
		}
	}
	return cmd
}

// Run runs a command, and gives its messages; it waits as long as the command does.
func Run(cmd tea.Cmd) []tea.Msg {
	if cmd == nil {
		return nil
	}
	switch msg := cmd().(type) {
	case nil:
		return nil
	case tea.BatchMsg:
		var all []tea.Msg
		for _, c := range msg {
			all = append(all, Run(c)...)
		}
		return all
	default:
		return []tea.Msg{msg}
	}
}

// reserved are the root's keys while a session is shown.
var reserved = strings.Fields("ctrl+c ctrl+p : ? q [ ] tab shift+tab 0 1 2 3 4 5 6 7 8 9 t m n N D I x s a ctrl+d ctrl+]")

// Helped requires that a pane's keys have help.
func Helped(t testing.TB, p pane.Pane) {
	t.Helper()
	for _, b := range p.Keys() {
		require.NotEmpty(t, b.Help().Key)
		require.NotEmpty(t, b.Help().Desc)
	}
}

// OwnKeys requires that the keys of a session's tab have help, and are neither the root's
// nor two things at once. It returns what each is for.
func OwnKeys(t testing.TB, p pane.Pane) map[string]string {
	t.Helper()
	Helped(t, p)
	does := map[string]string{}
	for _, b := range p.Keys() {
		require.True(t, b.Enabled())
		for _, k := range b.Keys() {
			require.NotContains(t, reserved, k, "it is the root's")
			require.NotContains(t, does, k, "it is two things")
			does[k] = b.Help().Desc
		}
	}
	return does
}
