package launcher

import (
	"os"
	"strings"

	"charm.land/bubbles/v2/textinput"

	"patio/tui/safe"
	"patio/tui/style"
)

// The fields, from top to bottom.
const (
	fieldWorkspace = iota
	fieldPrompt
	fieldModel
	fieldThinking
	fieldAllow
	fieldLimits
	fieldProfile
	fieldName
)

// maxText bounds what a field takes.
const maxText = 16 << 10

// field is one line of the form.
type field struct {
	label string
	hint  string // what it is when it is empty
	input textinput.Model
}

func newFields() []*field {
	all := []*field{
		fieldWorkspace: {label: "Workspace", hint: "the directory to work in"},
		fieldPrompt:    {label: "Prompt", hint: "what to say first, or nothing"},
		fieldModel:     {label: "Model", hint: "Pi's own choice"},
		fieldThinking:  {label: "Thinking", hint: "the model's own"},
		fieldAllow:     {label: "Allow", hint: "hosts beside the model's"},
		fieldLimits:    {label: "Limits", hint: "such as memory=4G pids=1024"},
		fieldProfile:   {label: "Profile", hint: "none"},
		fieldName:      {label: "Name", hint: "none: its id"},
	}
	for _, f := range all {
		f.input = textinput.New()
		f.input.Prompt = ""
		f.input.CharLimit = maxText
		f.input.SetVirtualCursor(false)
		f.input.KeyMap.Paste.SetEnabled(false) // a terminal pastes by itself
	}
	return all
}

func (f *field) value() string { return f.input.Value() }

func (f *field) set(value string) {
	f.input.SetValue(safe.Line(clip(value, maxText)))
	f.input.CursorEnd()
}

func (f *field) setStyles(s *style.Styles) {
	f.input.SetStyles(textinput.Styles{
		Focused: textinput.StyleState{Text: s.Text, Placeholder: s.Muted, Suggestion: s.Muted, Prompt: s.Key},
		Blurred: textinput.StyleState{Text: s.Text, Placeholder: s.Muted, Suggestion: s.Muted, Prompt: s.Muted},
	})
}

// words are the values of a field that takes several. None is nil: an empty list would
// take the place of the configured one.
func words(s string) []string {
	if all := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' }); len(all) > 0 {
		return all
	}
	return nil
}

// homeDir is for ~; without one, paths stay as they are.
func homeDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// expand is what a path means in which ~ is the home directory.
func expand(path, home string) string {
	if home == "" {
		return path
	}
	if path == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return home + "/" + rest
	}
	return path
}

// clip keeps the beginning of a text.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
