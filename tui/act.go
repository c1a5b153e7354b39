package tui

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/sessions"
	"patio/tui/importer"
	"patio/tui/pane"
)

func (m *model) stop(s api.Session) tea.Cmd {
	if s.Phase.Final() {
		return pane.Notice(pane.Info, title(s)+" has ended")
	}
	lost := "Pi and all that runs in the sandbox end. The conversation and the workspace stay; `patio resume` goes on."
	if s.Activity == api.ActivityWorking {
		lost = "Pi is working: its answer so far is kept, the rest never comes. " + lost
	}
	return pane.Confirm(pane.ConfirmMsg{
		Question: "Stop " + title(s) + "?", Lost: lost, Yes: "stop it",
		Then: tea.Batch(pane.Notice(pane.Info, "stopping "+title(s)+" …"), m.act(m.o.Backend.Sessions.Stop, s.ID, title(s)+" has ended")),
	})
}

func (m *model) remove(s api.Session) tea.Cmd {
	if !s.Phase.Final() {
		return pane.Notice(pane.Warning, title(s)+" is running: stop it first")
	}
	then := m.act(m.o.Backend.Sessions.Remove, s.ID, title(s)+" is deleted")
	if m.screen() == screenSession && m.o.Session == "" {
		then = tea.Sequence(pane.Back, then)
	}
	return pane.Confirm(pane.ConfirmMsg{
		Question: "Delete " + title(s) + "?",
		Lost:     "Its journal goes: traffic, egress, timeline. Pi's own session file and the workspace stay.",
		Yes:      "delete it", Then: then,
	})
}

func (m *model) resume(session string) tea.Cmd {
	return tea.Batch(pane.Notice(pane.Info, "starting a sandbox …"), m.act(m.o.Backend.Sessions.Resume, session, "the session goes on"))
}

// preview reads the end of a session's conversation for the list.
func (m *model) preview(session string) tea.Cmd {
	for _, s := range m.sessions {
		if s.ID != session || s.SessionFile == "" {
			continue
		}
		return m.files.Preview(s.SessionFile, "", func(p importer.Preview, err error) tea.Msg {
			if err != nil {
				return previewedMsg{session: session} // nothing is written before the first answer
			}
			var lines []string
			for _, t := range p.Turns {
				for _, b := range t.Blocks {
					text := b.Text
					if b.Title != "" {
						text = b.Title + " " + text
					}
					who := t.Role
					if b.Kind != sessions.BlockText {
						who = string(b.Kind)
					}
					if text = strings.TrimSpace(text); text != "" {
						lines = append(lines, who+": "+text)
					}
				}
			}
			return previewedMsg{session, lines}
		})
	}
	return nil
}

// shell runs a shell in the sandbox, with the terminal to itself.
func (m *model) shell(s api.Session) tea.Cmd {
	if s.Phase != api.PhaseReady {
		return pane.Notice(pane.Warning, "no shell: "+title(s)+" isn't running")
	}
	return tea.ExecProcess(m.o.Backend.Shell(s.ID), func(err error) tea.Msg {
		// A shell's exit code is that of its last command, and no failure of patio's.
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			return pane.ErrorMsg{Err: fmt.Errorf("shell: %w", err)}
		}
		return nil
	})
}

// editMsg is a file that is ready to be edited.
type editMsg struct {
	file string
	cmd  *exec.Cmd
	done func(text string, err error) tea.Msg
}

// edit puts a text into a file for the user's editor.
func (m *model) edit(msg pane.EditMsg) tea.Cmd {
	return func() tea.Msg {
		dir, err := os.MkdirTemp("", "patio-edit-")
		if err != nil {
			return pane.ErrorMsg{Err: fmt.Errorf("edit: %w", err)}
		}
		file := filepath.Join(dir, "message.md")
		err = os.WriteFile(file, []byte(msg.Text), 0o600)
		var cmd *exec.Cmd
		if err == nil {
			cmd, err = m.o.Backend.Editor(m.ctx, file)
		}
		if err != nil {
			return pane.ErrorMsg{Err: errors.Join(err, os.RemoveAll(dir))}
		}
		return editMsg{file: file, cmd: cmd, done: msg.Done}
	}
}

// runEditor gives the terminal to the editor, and takes the text when it is left.
func runEditor(msg editMsg) tea.Cmd {
	return tea.ExecProcess(msg.cmd, func(err error) tea.Msg {
		b, readErr := os.ReadFile(msg.file)
		err = errors.Join(err, readErr, os.RemoveAll(filepath.Dir(msg.file)))
		return msg.done(strings.TrimSuffix(string(b), "\n"), err)
	})
}

// export writes a file that isn't there yet.
func export(dir string, msg pane.ExportMsg) tea.Cmd {
	return func() tea.Msg {
		base := filepath.Base(msg.Name)
		ext := filepath.Ext(base)
		stem := strings.TrimSuffix(base, ext)
		for n := 1; n < 1000; n++ {
			path := filepath.Join(dir, base)
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				base = fmt.Sprintf("%s-%d%s", stem, n, ext)
				continue
			}
			if err != nil {
				return pane.ErrorMsg{Err: fmt.Errorf("export: %w", err)}
			}
			if err := errors.Join(msg.Write(f), f.Close()); err != nil {
				return pane.ErrorMsg{Err: errors.Join(fmt.Errorf("export: %w", err), os.Remove(path))}
			}
			return pane.NoticeMsg{Level: pane.Good, Text: "written: " + path}
		}
		return pane.ErrorMsg{Err: fmt.Errorf("export: %s is there a thousand times", msg.Name)}
	}
}

// themePicker shows each theme as the cursor comes to it.
func (m *model) themePicker() {
	before := m.styles.Palette.Name
	var all []choice
	for _, p := range m.themes {
		detail := map[bool]string{true: "dark", false: "light"}[p.Dark]
		if p.HighContrast {
			detail += ", high contrast"
		}
		if p.ColourBlind {
			detail += ", safe for the colour-blind"
		}
		all = append(all, choice{
			name: p.Name, detail: detail,
			look: func() tea.Cmd { m.setTheme(p.Name); return nil },
			run: func() tea.Cmd {
				m.setTheme(p.Name)
				m.chosen = true
				return m.keepTheme(p.Name)
			},
		})
	}
	c := newChooser("Themes", all, func() tea.Cmd { m.setTheme(before); return nil })
	c.selectName(before)
	m.overlay = c
}

// themeFile holds the name of the theme that was chosen last.
const themeFile = "theme"

func (m *model) keepTheme(name string) tea.Cmd {
	dir := m.o.StateDir
	return func() tea.Msg {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, themeFile), []byte(name+"\n"), 0o600)
		}
		if err != nil {
			return pane.ErrorMsg{Err: fmt.Errorf("keep the theme: %w", err)}
		}
		return pane.NoticeMsg{Level: pane.Good, Text: "theme " + name}
	}
}

// keptTheme is the theme that was chosen last, empty when none was.
func keptTheme(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, themeFile))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// palette lists what can be done now, and the sessions to go to.
func (m *model) palette() {
	var all []choice
	add := func(name, action string) {
		keys := ""
		for _, a := range actions {
			if a.name == action {
				keys = a.at(m.keys).Help().Key
			}
		}
		all = append(all, choice{name: name, detail: keys, run: func() tea.Cmd { cmd, _ := m.do(action); return cmd }})
	}
	if s, ok := m.selected(); ok {
		if m.screen() == screenHome {
			add("Open "+title(s), "attach")
		}
		if s.Phase.Final() {
			all = append(all, choice{name: "Resume " + title(s), run: func() tea.Cmd { return m.resume(s.ID) }})
			add("Delete "+title(s), "delete")
		} else {
			add("Shell in "+title(s), "shell")
			add("Stop "+title(s), "stop")
		}
	}
	if m.screen() == screenSession {
		for i, t := range m.shown.tabs {
			all = append(all, choice{name: "Tab: " + t.name, detail: fmt.Sprint(i + 1), run: func() tea.Cmd { m.shown.current = i; return nil }})
		}
	}
	add("New session", "new")
	add("Import session files of Pi's", "import")
	add("Doctor", "doctor")
	add("Themes", "themes")
	add("Help", "help")
	add("Mouse on or off", "mouse")
	all = append(all, choice{name: "Sessions", run: func() tea.Cmd { m.stack = []screen{screenHome}; return nil }})
	for _, s := range m.sessions {
		if m.shown != nil && m.screen() == screenSession && s.ID == m.shown.session.ID {
			continue
		}
		_, words := pane.State(&s)
		all = append(all, choice{name: "Go to " + title(s), detail: words + " · " + filepath.Base(s.Workspace), run: func() tea.Cmd { return m.open(s.ID) }})
	}
	add("Quit; sessions go on", "quit")
	m.overlay = newChooser("Commands", all, nil)
}
