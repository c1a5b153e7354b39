package importer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"patio/engine/api"
	"patio/sessions"
	"patio/sessions/catalog"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/style"
	"patio/tui/table"
)

const (
	// settle is how long the cursor rests before a file is read.
	settle = 150 * time.Millisecond
	// settleChanged is the same for the file under it that is being written.
	settleChanged = time.Second
)

// subject is what is read: a state of a file, and an entry of it.
type subject struct {
	path, entry string
	size        int64
	changed     time.Time
}

// reader shows one file.
type reader struct {
	open  bool // it has the keys, and all the room where that is narrow
	moved int  // generation of the selection

	wanted  subject // what was asked for
	shown   subject // what preview is of
	preview Preview
	err     error
	reading bool

	checked  subject // what report is of
	report   *sessions.Report
	checkErr error
	checking bool

	top     int // first line shown; -1 is where the reading begins
	version int // of what is shown
	lines   lines
}

// lines are the drawn lines of what is shown, kept until something else is.
type lines struct {
	version, width int
	styles         *style.Styles
	all            []string
	at             int // where the entry that was asked for begins
}

type settled struct {
	importer *Importer
	move     int
}

type readMsg struct {
	importer *Importer
	of       subject
	preview  Preview
	err      error
}

type checkedMsg struct {
	importer *Importer
	of       subject
	report   sessions.Report
	err      error
}

func (r *reader) forget() { r.version++ }

// subject is what the cursor is on.
func (m *Importer) subject() (subject, catalog.Summary, bool) {
	s, ok := m.Selected()
	if !ok {
		return subject{}, s, false
	}
	about := subject{path: s.Path, size: s.Size, changed: s.ModTime}
	if m.hits.shown() {
		match, _ := m.hits.match()
		about.entry = match.EntryID
	}
	return about, s, true
}

// moved takes note of where the cursor is; the command comes back when it stays there.
func (m *Importer) moved() tea.Cmd {
	about, s, ok := m.subject()
	if !ok {
		return nil
	}
	m.selected = s.Path
	if about == m.reader.wanted || !m.beside() && !m.reader.open {
		return nil
	}
	wait := settle
	if about.path == m.reader.wanted.path && about.entry == m.reader.wanted.entry {
		wait = settleChanged
	}
	m.reader.moved++
	move := m.reader.moved
	return m.tick(wait, func(time.Time) tea.Msg { return settled{m, move} })
}

// read asks for what the cursor is on.
func (m *Importer) read() tea.Cmd {
	about, s, ok := m.subject()
	r := &m.reader
	if !ok || !m.beside() && !r.open {
		return nil
	}
	var cmds []tea.Cmd
	if about != r.wanted {
		if about.path != r.wanted.path || about.entry != r.wanted.entry {
			r.top = -1
		}
		r.wanted, r.reading = about, true
		cmds = append(cmds, m.source.Preview(about.path, about.entry, func(p Preview, err error) tea.Msg { return readMsg{m, about, p, err} }))
	}
	file := about
	file.entry = ""
	// A whole file is read through when there is a reason to, or somebody looks closer.
	if (s.Broken != "" || s.Torn || r.open) && file != r.checked && !r.checking {
		r.checking = true
		cmds = append(cmds, m.source.Check(about.path, func(report sessions.Report, err error) tea.Msg { return checkedMsg{m, file, report, err} }))
	}
	return tea.Batch(cmds...)
}

// readNow reads without waiting for the cursor to rest.
func (m *Importer) readNow() tea.Cmd {
	m.reader.moved++
	m.reader.top = -1
	return m.read()
}

func (m *Importer) takePreview(msg readMsg) {
	r := &m.reader
	if msg.of != r.wanted {
		return
	}
	r.reading = false
	r.shown, r.preview, r.err = msg.of, msg.preview, msg.err
	r.version++
}

func (m *Importer) takeReport(msg checkedMsg) tea.Cmd {
	r := &m.reader
	r.checking = false
	r.checked, r.report, r.checkErr = msg.of, &msg.report, msg.err
	if len(msg.report.Problems) > maxProblems {
		r.report.Problems = msg.report.Problems[:maxProblems:maxProblems]
	}
	r.version++
	if about, _, ok := m.subject(); ok && about.path != msg.of.path {
		return m.read() // the cursor went on meanwhile
	}
	return nil
}

// maxProblems bounds what is drawn of a report, which has a hundred of each kind.
const maxProblems = 200

func (m *Importer) readerKey(msg tea.KeyPressMsg) tea.Cmd {
	r, move := &m.reader, table.DefaultKeys()
	_, height := m.readerRoom()
	page := max(height-1, 1)
	switch {
	case key.Matches(msg, m.keys.close, m.keys.open):
		return m.escape()
	case m.act(msg):
		s, _ := m.Selected()
		return m.do(msg, s)
	case key.Matches(msg, move.Down):
		m.scroll(1)
	case key.Matches(msg, move.Up):
		m.scroll(-1)
	case key.Matches(msg, move.PageDown), msg.Code == tea.KeySpace:
		m.scroll(page)
	case key.Matches(msg, move.PageUp):
		m.scroll(-page)
	case key.Matches(msg, move.Top):
		r.top = 0
	case key.Matches(msg, move.Bottom):
		m.scroll(1 << 30)
	case key.Matches(msg, m.keys.mark):
		return pane.Notice(pane.Info, "esc first: marks are for the list")
	}
	return nil
}

func (r *reader) wheel(msg tea.MouseWheelMsg) {
	if len(r.lines.all) == 0 {
		return
	}
	if msg.Button == tea.MouseWheelUp {
		r.top = max(r.from()-3, 0)
	}
	if msg.Button == tea.MouseWheelDown {
		r.top = min(r.from()+3, len(r.lines.all)-1)
	}
}

// from is the first line that is shown.
func (r *reader) from() int {
	if r.top >= 0 {
		return r.top
	}
	return r.lines.at
}

// scroll moves by lines. They are drawn by View; before the first there are none.
func (m *Importer) scroll(n int) {
	_, height := m.readerRoom()
	m.draw()
	r := &m.reader
	most := max(len(r.lines.all)-height, 0)
	r.top = max(min(min(r.from(), most)+n, most), 0)
}

// draw makes the lines, unless they are there.
func (m *Importer) draw() {
	width, height := m.readerRoom()
	r := &m.reader
	about, s, ok := m.subject()
	if r.lines.styles == m.styles && r.lines.width == width && r.lines.version == r.version && r.lines.all != nil {
		return
	}
	r.lines = lines{version: r.version, width: width, styles: m.styles}
	if !ok || about.path != r.shown.path || about.entry != r.shown.entry {
		return
	}
	p := page{styles: m.styles, width: width, zone: m.now().Location()}
	p.report(m, &s, r)
	start := len(p.lines)
	if r.err == nil {
		r.lines.at = p.conversation(&r.preview)
	}
	if start > 0 && r.shown.entry == "" {
		r.lines.at = 0 // what is wrong comes first
	} else if r.shown.entry == "" {
		r.lines.at = max(len(p.lines)-height, 0)
	}
	r.lines.all = p.lines
}

// page collects drawn lines.
type page struct {
	styles *style.Styles
	zone   *time.Location
	width  int
	lines  []string
}

func (p *page) add(line string) { p.lines = append(p.lines, line) }

// wrap adds a text with a hanging indent, of at most so many lines; it reports whether all of it is there.
func (p *page) wrap(indent, text string, most int, render func(...string) string) bool {
	rows := safe.Wrap(safe.Text(clip(text, 8<<10)), max(p.width-safe.Width(indent), 1))
	whole := len(rows) <= most
	if !whole {
		rows = rows[:most]
	}
	for _, row := range rows {
		p.add(render(indent + row))
	}
	return whole
}

// report says what is wrong, and what an import would do.
func (p *page) report(m *Importer, s *catalog.Summary, r *reader) {
	st := p.styles
	if o, ok := m.outcomes[s.Path]; ok && o.result.Status == Refused {
		p.wrap("", "✗ It was refused: "+o.result.Error, 6, st.Bad.Render)
		p.add("")
	} else if ok && o.result.Notes != "" {
		p.wrap("", "✓ "+o.result.Notes, 6, st.Good.Render)
		p.add("")
	}
	report := r.report
	if r.checked.path != s.Path {
		report = nil
	}
	if r.err != nil && (report == nil || errors.Is(r.err, sessions.ErrNoSession)) {
		p.wrap("", "✗ It can't be read: "+api.AsError(r.err).Message, 4, st.Bad.Render)
	} else if s.Broken != "" && (report == nil || len(report.Problems) == 0) {
		p.wrap("", "✗ "+s.Broken, 4, st.Bad.Render)
	}
	if report == nil {
		return
	}
	if r.checkErr != nil {
		p.wrap("", "✗ It can't be checked: "+api.AsError(r.checkErr).Message, 4, st.Bad.Render)
		return
	}
	if len(report.Problems) == 0 {
		return
	}
	for _, line := range verdict(report) {
		p.wrap("", line, 4, st.Text.Render)
	}
	p.add("")
	p.add(st.Header.Render(fmt.Sprintf("What is wrong · %s", plural(len(report.Problems), "problem"))))
	for _, problem := range report.Problems {
		sign, render := "·", st.Muted.Render
		switch problem.Severity {
		case sessions.Fatal:
			sign, render = "✗", st.Bad.Render
		case sessions.Repairable:
			sign, render = "~", st.Warning.Render
		case sessions.Note:
		}
		where := "the file"
		if problem.Line > 0 {
			where = fmt.Sprintf("line %d", problem.Line)
		}
		p.wrap("", sign+" "+where+": "+problem.Text, 4, render)
		if problem.Action != "" {
			p.wrap("    ", "→ "+problem.Action, 3, st.Text.Render)
		}
	}
	p.add("")
}

// verdict is what an import does about a report.
func verdict(r *sessions.Report) []string {
	if hopeless, ok := r.Hopeless(); ok {
		return []string{"i and c refuse it: no copy could mend that (" + hopeless.String() + ")."}
	}
	if fatal, ok := r.Fatal(); ok {
		return []string{"i refuses it as it is (" + fatal.String() + ").", "c imports a mended copy; the file stays as it is."}
	}
	text := "i imports it as it is."
	if r.Fixes(sessions.FixTail) {
		text = "i imports it as it is; a resume first mends its end, and keeps what it cuts off."
	}
	if r.Fixes(sessions.FixCopy) {
		return []string{text, "c imports a copy in which the rest is mended too."}
	}
	return []string{text}
}

// conversation adds what was said, and returns where the turn that was asked for begins.
func (p *page) conversation(v *Preview) int {
	st := p.styles
	at := 0
	rule := func(text string) {
		p.add(st.Border.Render("── ") + st.Muted.Render(safe.Cut(text, max(p.width-4, 1))))
	}
	if v.Before > 0 {
		rule(plural(v.Before, "entry") + " before")
	}
	if len(v.Turns) == 0 {
		p.add(st.Muted.Render("Nothing was said."))
	}
	for i := range v.Turns {
		if i == v.At {
			at = len(p.lines)
		}
		p.turn(&v.Turns[i], i == v.At)
	}
	if v.After > 0 {
		rule(plural(v.After, "entry") + " after")
	}
	return at
}

func (p *page) turn(t *Turn, found bool) {
	st := p.styles
	name, color := who(t.Role, "note"), st.Muted
	switch t.Role {
	case sessions.RoleUser:
		color = st.User
	case sessions.RoleAssistant:
		color = st.Agent
	case sessions.RoleToolResult, sessions.RoleBash:
		color = st.Tool
	}
	head := color.Bold(true).Render(safe.Fit(name, 20))
	if !t.Time.IsZero() {
		head += st.Muted.Render("  " + t.Time.In(p.zone).Format("2006-01-02 15:04"))
	}
	if found {
		head = st.Match.Render("▶") + " " + head
	}
	p.add(safe.Cut(head, p.width))
	for _, b := range t.Blocks {
		p.block(&b)
	}
	p.add("")
}

// Lines of a block that are drawn: of what was said, and of what only went along.
const (
	mostSaid  = 40
	mostAside = 6
)

func (p *page) block(b *Block) {
	st := p.styles
	whole := true
	switch b.Kind {
	case sessions.BlockText:
		whole = p.wrap("", b.Text, mostSaid, st.Text.Render)
	case sessions.BlockThinking:
		whole = p.wrap("  ", b.Text, mostAside, st.Thinking.Render)
	case sessions.BlockCall:
		sign, render := "● ", st.Tool.Render
		if b.Failed {
			sign, render = "✗ ", st.Bad.Render
		}
		p.wrap("", sign+firstLine(b.Title), 2, render)
		if b.Text != "" {
			whole = p.wrap("  ", b.Text, mostAside, st.Muted.Render)
		}
	case sessions.BlockImage:
		p.wrap("", "▣ a picture ("+firstLine(b.Title)+")", 1, st.Info.Render)
	case sessions.BlockError:
		whole = p.wrap("", "✗ "+b.Text, mostAside, st.Bad.Render)
	case sessions.BlockChange, sessions.BlockOther:
		whole = p.wrap("", "· "+strings.TrimSpace(firstLine(b.Title)+" "+b.Text), 2, st.Muted.Render)
	case sessions.BlockSummary:
		p.wrap("", "≡ "+firstLine(b.Title), 1, st.Info.Render)
		whole = p.wrap("  ", b.Text, mostAside*2, st.Muted.Render)
	default:
		whole = p.wrap("", b.Text, mostAside, st.Muted.Render)
	}
	if !whole || b.Cut {
		p.add(st.Muted.Render("  …"))
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
