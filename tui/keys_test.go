package tui

import "charm.land/bubbles/v2/key"

// keyed is one key of a binding.
type keyed struct{ name, help string }

func keysOf(bindings []key.Binding) []keyed {
	var all []keyed
	for _, b := range bindings {
		if !b.Enabled() {
			continue
		}
		for _, name := range b.Keys() {
			all = append(all, keyed{name, b.Help().Desc})
		}
	}
	return all
}
