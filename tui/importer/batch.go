package importer

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/sessions/catalog"
	"patio/tui/pane"
	"patio/tui/safe"
)

// outcome is what became of a file that was imported here.
type outcome struct{ result Result }

// batch is an import that is under way: one file after the other.
type batch struct {
	paths    []string
	place    map[string]int
	copyInto bool
	next     int // the one that is imported now
	stopped  bool
	counts   map[string]int
	session  string // of the last one
	failure  string // of the first one that was refused
}

// running reports whether there is more to do. A nil batch never does.
func (b *batch) running() bool { return b != nil && b.next < len(b.paths) }

type beginMsg struct {
	importer *Importer
	paths    []string
	copyInto bool
}

type importedMsg struct {
	importer *Importer
	batch    *batch
	result   Result
	err      error
}

// mark marks a file, or takes its mark away.
func (m *Importer) mark(path string) {
	if m.marks[path] {
		delete(m.marks, path)
		return
	}
	m.marks[path] = true
}

// markProject marks all listed files of a directory, or unmarks them when all are marked.
func (m *Importer) markProject(cwd string) tea.Cmd {
	if cwd == "" {
		return pane.Notice(pane.Info, "the file doesn't say what project it is of")
	}
	var paths []string
	all := true
	for i := range m.rows.Len() {
		if s := m.rows.at(i); project(s.Cwd) == project(cwd) {
			paths = append(paths, s.Path)
			all = all && m.marks[s.Path]
		}
	}
	for _, path := range paths {
		if all {
			delete(m.marks, path)
		} else {
			m.marks[path] = true
		}
	}
	return nil
}

// targets are the marked files, in the order of the list, or the selected one.
func (m *Importer) targets() []catalog.Summary {
	if len(m.marks) == 0 {
		if s, ok := m.Selected(); ok {
			return []catalog.Summary{s}
		}
		return nil
	}
	var all []catalog.Summary
	for i := range m.update.Sessions {
		if m.marks[m.update.Sessions[i].Path] {
			all = append(all, m.update.Sessions[i])
		}
	}
	return all
}

// confirm asks before an import, and says what it does.
func (m *Importer) confirm(copyInto bool) tea.Cmd {
	if m.batch.running() {
		return pane.Notice(pane.Info, "an import is under way: esc stops it")
	}
	targets := m.targets()
	if len(targets) == 0 {
		return nil
	}
	broken, torn, known := 0, 0, 0
	paths := make([]string, len(targets))
	for i := range targets {
		paths[i] = targets[i].Path
		switch {
		case targets[i].Broken != "":
			broken++
		case targets[i].Torn:
			torn++
		}
		if m.session(paths[i]) != "" {
			known++
		}
	}
	what, it := "“"+safe.Fit(title(&targets[0]), 40)+"”", "The file stays where it is, as it is"
	if len(targets) > 1 {
		what, it = plural(len(targets), "conversation"), "Each file stays where it is, as it is"
	}
	says := []string{"Nothing is lost and nothing starts. " + it + "; a resume goes on in it."}
	if copyInto {
		says = []string{"Nothing is lost and nothing starts. " + it + "; a resume goes on in a mended copy of patio's own."}
	}
	of := func(n int, one, more string) {
		switch {
		case n == 0:
		case len(targets) == 1:
			says = append(says, "It "+one)
		default:
			says = append(says, fmt.Sprintf("%d of them %s", n, more))
		}
	}
	if !copyInto {
		of(broken, "is broken: it may be refused, but not always as a copy.", "are broken: they may be refused, but not always as copies.")
		of(torn, "ends in a torn line: a resume sets that aside.", "end in a torn line: a resume sets that aside.")
	} else {
		of(broken, "is broken: it is refused if no copy can be mended.", "are broken: they are refused if no copy can be mended.")
	}
	of(known, "is imported already, and stays one session.", "are imported already, and stay one session each.")
	return pane.Confirm(pane.ConfirmMsg{
		Question: "Import " + what + "?", Lost: strings.Join(says, " "), Yes: "import",
		Then: func() tea.Msg { return beginMsg{m, paths, copyInto} },
	})
}

// maxOutcomes bounds what is remembered of imports: the list itself says the rest.
const maxOutcomes = 20_000

func (m *Importer) begin(msg beginMsg) tea.Cmd {
	if m.batch.running() || len(msg.paths) == 0 {
		return nil
	}
	if len(m.outcomes) > maxOutcomes {
		clear(m.outcomes)
	}
	m.batch = &batch{paths: msg.paths, place: make(map[string]int, len(msg.paths)), copyInto: msg.copyInto, counts: map[string]int{}}
	for i, path := range msg.paths {
		m.batch.place[path] = i
	}
	m.arrange()
	return m.importNext()
}

func (m *Importer) importNext() tea.Cmd {
	b := m.batch
	return m.source.Import(b.paths[b.next], b.copyInto, func(r Result, err error) tea.Msg { return importedMsg{m, b, r, err} })
}

func (m *Importer) takeResult(msg importedMsg) tea.Cmd {
	b := m.batch
	if !b.running() {
		return nil
	}
	path, r := b.paths[b.next], msg.result
	if msg.err != nil {
		r = Result{Status: Refused, Error: api.AsError(msg.err).Message}
	}
	r.Error, r.Notes = clip(r.Error, 1000), clip(r.Notes, 1000)
	m.outcomes[path] = outcome{r}
	m.reader.forget()
	b.counts[r.Status]++
	if r.Status == Refused {
		if b.failure == "" {
			b.failure = r.Error
		}
	} else {
		b.session = r.Session
		delete(m.marks, path)
	}
	b.next++
	if b.running() && !b.stopped {
		return m.importNext()
	}
	done := b.next
	b.next = len(b.paths)
	m.arrange()
	return m.told(b, done)
}

// told says what became of all.
func (m *Importer) told(b *batch, done int) tea.Cmd {
	level := pane.Good
	var text string
	switch {
	case len(b.paths) == 1 && b.counts[Refused] > 0:
		return pane.Notice(pane.Bad, "refused: "+b.failure)
	case len(b.paths) == 1 && b.counts[Known] > 0:
		text = "it was imported before, as " + b.session
	case len(b.paths) == 1:
		text = "imported as " + b.session + ": o opens it, R among the sessions resumes it"
	default:
		text = fmt.Sprintf("%s imported", count(b.counts[Imported]))
		if n := b.counts[Known]; n > 0 {
			text += fmt.Sprintf(", %s known before", count(n))
		}
		if n := b.counts[Refused]; n > 0 {
			level = pane.Warning
			text += fmt.Sprintf(", %s refused: %s", count(n), b.failure)
		}
		if done < len(b.paths) {
			level = pane.Warning
			text = fmt.Sprintf("stopped after %s of %s: ", count(done), count(len(b.paths))) + text
		}
	}
	return pane.Notice(level, text)
}
