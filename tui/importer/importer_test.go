package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/sessions"
	"patio/sessions/catalog"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

// some are files of every kind.
func some() []catalog.Summary {
	file := func(name, title, cwd, model string, messages int, size int64, ago time.Duration) catalog.Summary {
		return catalog.Summary{
			Path: "/work/pi/sessions/" + name + ".jsonl", ID: name, Version: 3, Cwd: cwd, Title: title, Model: model, Messages: messages, Exact: messages < 100,
			Size: size, LastActivity: panetest.Noon.Add(-ago), ModTime: panetest.Noon.Add(-ago),
		}
	}
	all := []catalog.Summary{
		file("2026-05-04-a", "The totals are off by one cent when a discount applies", "/work/shop", "anthropic/claude-sonnet-4-5", 84, 412<<10, 3*time.Minute),
		file("2026-05-04-b", "Quarterly report for the north region", "/work/customers/north/reports", "openai/gpt-5.2", 12, 38<<10, 2*time.Hour),
		file("2026-05-03-c", "Make the importer resume", "/work/shop", "anthropic/claude-opus-4-5", 1240, 9<<20, 26*time.Hour),
		file("2026-05-01-d", "漢字とemoji 🧪 in a title", "/work/docs", "anthropic/claude-haiku-4-5", 6, 9<<10, 75*time.Hour),
		file("2026-04-11-e", "", "/work/docs", "", 0, 210, 500*time.Hour),
		file("2026-04-02-f", "", "", "", 0, 1<<10, 800*time.Hour),
	}
	all[1].Torn = true
	all[5].Broken = "the first line is no header"
	return all
}

// disk is a Source that finds what it is told.
type disk struct {
	update   catalog.Update
	err      error
	hits     Hits
	preview  Preview
	readErr  error
	report   sessions.Report
	results  map[string]Result
	searched []string
	read     []string
	checked  []string
	imports  []string
	copies   int
}

func (d *disk) Watch(done func(catalog.Update, error) tea.Msg) tea.Cmd {
	return func() tea.Msg { return done(d.update, d.err) }
}

func (d *disk) Search(query string, in []catalog.Summary, done func(Hits, error) tea.Msg) tea.Cmd {
	if query == "" {
		return nil
	}
	d.searched = append(d.searched, fmt.Sprintf("%s in %d", query, len(in)))
	return func() tea.Msg { return done(d.hits, d.err) }
}

func (d *disk) Preview(path, entry string, done func(Preview, error) tea.Msg) tea.Cmd {
	d.read = append(d.read, path+"#"+entry)
	return func() tea.Msg { return done(d.preview, d.readErr) }
}

func (d *disk) Check(path string, done func(sessions.Report, error) tea.Msg) tea.Cmd {
	d.checked = append(d.checked, path)
	return func() tea.Msg { return done(d.report, nil) }
}

func (d *disk) Import(path string, copyInto bool, done func(Result, error) tea.Msg) tea.Cmd {
	d.imports = append(d.imports, path)
	if copyInto {
		d.copies++
	}
	return func() tea.Msg {
		r, ok := d.results[path]
		if !ok {
			return done(Result{}, errors.New("no space left on device"))
		}
		return done(r, nil)
	}
}

var talk = Preview{
	At: -1, Before: 12, Branches: 2, Usage: sessions.Usage{Input: 80_000, Output: 12_000, CacheRead: 300_000},
	Turns: []Turn{
		{Role: sessions.RoleUser, Time: panetest.Noon.Add(-9 * time.Minute), Blocks: []Block{{Kind: sessions.BlockText, Text: "The totals are off by one cent when a discount applies.\nFind out why."}}},
		{Role: sessions.RoleAssistant, Time: panetest.Noon.Add(-8 * time.Minute), Blocks: []Block{
			{Kind: sessions.BlockThinking, Text: "Rounding, most likely: each line, then the sum."},
			{Kind: sessions.BlockText, Text: "I'll look at how the totals are made."},
			{Kind: sessions.BlockCall, Title: "bash go test ./cart/..."},
			{Kind: sessions.BlockText, Text: "ok  shop/cart 0.2s"},
			{Kind: sessions.BlockCall, Title: "read cart/totals.go", Failed: true},
			{Kind: sessions.BlockText, Text: "there is no such file"},
		}},
		{Blocks: []Block{{Kind: sessions.BlockChange, Text: "model: anthropic/claude-sonnet-4-5"}}},
		{Role: sessions.RoleUser, Time: panetest.Noon.Add(-4 * time.Minute), Blocks: []Block{{Kind: sessions.BlockImage, Title: "image/png"}, {Kind: sessions.BlockText, Text: "This is what it looks like."}}},
		{Role: sessions.RoleAssistant, Time: panetest.Noon.Add(-3 * time.Minute), Blocks: []Block{
			{Kind: sessions.BlockSummary, Title: "compaction of 80000 tokens", Text: "The discount is rounded for each line."},
			{Kind: sessions.BlockError, Text: "overloaded"},
			{Kind: sessions.BlockText, Text: strings.Repeat("It is rounded twice. ", 8), Cut: true},
		}},
	},
}

var wrong = sessions.Report{Problems: []sessions.Problem{
	{Line: 1, Severity: sessions.Fatal, Text: "the header has no id", Fix: sessions.FixCopy, Action: "a copy gets an id of its own"},
	{Line: 14, Severity: sessions.Repairable, Text: "the last line is torn", Fix: sessions.FixTail, Action: "what is torn is cut off and kept beside the file"},
	{Line: 9, Severity: sessions.Note, Text: "an entry has no time"},
}}

var found = func() Hits {
	all := some()
	hit := func(s catalog.Summary, line int, role, snippet, word string) catalog.Match {
		start := strings.Index(snippet, word)
		return catalog.Match{Session: s, Line: line, EntryID: fmt.Sprint(line), Role: role, Type: "message", Time: panetest.Noon.Add(-time.Hour), Hits: 1, Snippet: snippet, Start: start, End: start + len(word)}
	}
	return Hits{Files: 6, Unread: 1, Problem: "/work/x: permission denied", Matches: []catalog.Match{
		hit(all[0], 4, "user", "the totals are off by one cent when a discount applies, find out why", "discount"),
		hit(all[0], 9, "assistant", "the code that makes the totals of an order rounds the discount of each line before the sum is made", "discount"),
		hit(all[2], 311, "toolResult", "discount.go:14: unused", "discount"),
	}}
}()

func live(all []catalog.Summary) catalog.Update {
	return catalog.Update{List: catalog.List{Sessions: all}, Live: true, Every: time.Minute}
}

func opened(d *disk, w, h int, s *style.Styles) *Importer {
	m := New(d, panetest.Clock)
	m.tick = func(_ time.Duration, f func(time.Time) tea.Msg) tea.Cmd {
		return func() tea.Msg { return f(panetest.Noon) }
	}
	m.SetStyles(s)
	m.SetSize(w, h)
	return m
}

// listed has its first list, and what is selected is read.
func listed(d *disk, w, h int, s *style.Styles) *Importer {
	if d.update.Sessions == nil {
		d.update = live(some())
	}
	m := opened(d, w, h, s)
	m.Open()
	settleDown(m, m.Update(updatedMsg{m, d.update, nil}))
	return m
}

// settleDown does what a command asks for, but for waiting: for the next list, or a while.
func settleDown(m *Importer, cmd tea.Cmd) {
	for _, msg := range run(cmd) {
		if _, ok := msg.(updatedMsg); !ok {
			settleDown(m, m.Update(msg))
		}
	}
	settleNow(m)
}

func settleNow(m *Importer) {
	for _, msg := range run(m.Update(settled{m, m.reader.moved})) {
		m.Update(msg)
	}
}

// run runs a command and gives its messages, but for those of a while that is over.
func run(cmd tea.Cmd) []tea.Msg {
	return slices.DeleteFunc(panetest.Run(cmd), func(msg tea.Msg) bool { _, ok := msg.(settled); return ok })
}

func TestGolden(t *testing.T) {
	for name, open := range map[string]func(w, h int, s *style.Styles) *Importer{
		"loading": func(w, h int, s *style.Styles) *Importer { return opened(&disk{}, w, h, s) },
		"empty": func(w, h int, s *style.Styles) *Importer {
			return listed(&disk{update: catalog.Update{List: catalog.List{Sessions: []catalog.Summary{}}, Every: 5 * time.Second, Why: "no inotify here"}}, w, h, s)
		},
		"failed": func(w, h int, s *style.Styles) *Importer {
			m := opened(&disk{}, w, h, s)
			m.Update(updatedMsg{m, catalog.Update{}, api.Errorf(api.CodeInternal, "set HOME", "there is no home directory")})
			return m
		},
		"list": func(w, h int, s *style.Styles) *Importer {
			m := listed(&disk{preview: talk}, w, h, s)
			m.SetSessions([]api.Session{{ID: "k3v9qa2d", ImportedFrom: some()[3].Path}})
			panetest.Press(m, "*")
			return m
		},
		"polled": func(w, h int, s *style.Styles) *Importer {
			u := live(some())
			u.Live, u.Every, u.Why = false, 5*time.Second, "the limit of watches is used up"
			u.Problems = []catalog.Problem{{Path: "/work/old", Err: errors.New("permission denied")}, {Path: "/work/older", Err: errors.New("permission denied")}}
			return listed(&disk{update: u, preview: talk}, w, h, s)
		},
		"read": func(w, h int, s *style.Styles) *Importer {
			m := listed(&disk{preview: talk}, w, h, s)
			settleDown(m, panetest.Press(m, "enter"))
			return m
		},
		"broken": func(w, h int, s *style.Styles) *Importer {
			m := listed(&disk{preview: Preview{At: -1}, report: wrong}, w, h, s)
			settleDown(m, panetest.Press(m, "G"))
			settleDown(m, panetest.Press(m, "enter"))
			return m
		},
		"filter": func(w, h int, s *style.Styles) *Importer {
			m := listed(&disk{preview: talk}, w, h, s)
			panetest.Press(m, "/")
			for _, k := range []string{"s", "h", "o", "p"} {
				settleDown(m, panetest.Press(m, k))
			}
			return m
		},
		"search": func(w, h int, s *style.Styles) *Importer {
			p := talk
			p.At = 1
			m := listed(&disk{preview: p, hits: found}, w, h, s)
			panetest.Press(m, "f", "discount")
			settleDown(m, panetest.Press(m, "enter"))
			settleDown(m, panetest.Press(m, "down"))
			return m
		},
		"search-nothing": func(w, h int, s *style.Styles) *Importer {
			m := listed(&disk{preview: talk, hits: Hits{Files: 6}}, w, h, s)
			panetest.Press(m, "f", "unicorn")
			settleDown(m, panetest.Press(m, "enter"))
			return m
		},
		"importing": func(w, h int, s *style.Styles) *Importer {
			all := some()
			m := listed(&disk{preview: talk, results: map[string]Result{all[0].Path: {Status: Refused, Error: "the header has no id"}, all[1].Path: {Status: Imported, Session: "p8m2xz7c"}}}, w, h, s)
			for range 4 {
				panetest.Press(m, "space")
			}
			panetest.Press(m, "g")
			settleNow(m)
			msg := panetest.Press(m, "i")().(pane.ConfirmMsg)
			cmd := m.Update(msg.Then())
			cmd = m.Update(cmd())
			m.Update(cmd())
			return m
		},
	} {
		panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string { return open(w, h, s).View() })
	}
}

func TestConfirmationSaysWhatHappens(t *testing.T) {
	dark := panetest.Styles(t, themes.DefaultDark)
	m := listed(&disk{}, 80, 20, dark)
	one := panetest.Press(m, "i")().(pane.ConfirmMsg)
	require.Equal(t, "Import “The totals are off by one cent when a d…”?", one.Question)
	require.Equal(t, "Nothing is lost and nothing starts. The file stays where it is, as it is; a resume goes on in it.", one.Lost)

	for range 6 {
		panetest.Press(m, "space")
	}
	m.SetSessions([]api.Session{{ID: "k3v9qa2d", SessionFile: some()[0].Path}})
	all := panetest.Press(m, "i")().(pane.ConfirmMsg)
	require.Equal(t, "Import 6 conversations?", all.Question)
	require.Contains(t, all.Lost, "1 of them are broken: they may be refused, but not always as copies.")
	require.Contains(t, all.Lost, "1 of them end in a torn line: a resume sets that aside.")
	require.Contains(t, all.Lost, "1 of them are imported already, and stay one session each.")
	require.Contains(t, panetest.Press(m, "c")().(pane.ConfirmMsg).Lost, "a resume goes on in a mended copy of patio's own")
}

func TestImport(t *testing.T) {
	all := some()
	d := &disk{results: map[string]Result{
		all[0].Path: {Status: Imported, Session: "aaaaaaaa"}, all[1].Path: {Status: Known, Session: "bbbbbbbb"},
		all[2].Path: {Status: Refused, Error: "it goes in a circle"},
	}}
	m := listed(d, 80, 20, panetest.Styles(t, themes.DefaultDark))
	for range 4 {
		panetest.Press(m, "space")
	}
	cmd := m.Update(panetest.Press(m, "c")().(pane.ConfirmMsg).Then())
	require.True(t, m.batch.running())
	require.True(t, m.Escapes())
	require.IsType(t, pane.NoticeMsg{}, panetest.Press(m, "i")(), "one after the other")
	for range 4 {
		cmd = m.Update(cmd())
	}
	require.False(t, m.batch.running())
	require.Equal(t, pane.NoticeMsg{Level: pane.Warning, Text: "1 imported, 1 known before, 2 refused: it goes in a circle"}, cmd())
	require.Equal(t, []string{all[0].Path, all[1].Path, all[2].Path, all[3].Path}, d.imports)
	require.Equal(t, 4, d.copies)
	require.Equal(t, map[string]bool{all[2].Path: true, all[3].Path: true}, m.marks, "those that were refused stay marked")
	view := panetest.Plain(m.View())
	require.Equal(t, 2, strings.Count(view, "✓ imported"))
	require.Equal(t, 2, strings.Count(view, "✗ refused"))

	panetest.Press(m, "u", "g")
	require.Empty(t, m.marks)
	require.Equal(t, pane.OpenMsg{Session: "aaaaaaaa"}, panetest.Press(m, "o")())
	panetest.Press(m, "G")
	require.IsType(t, pane.NoticeMsg{}, panetest.Press(m, "o")())
}

func TestImportOfOne(t *testing.T) {
	all := some()
	for name, c := range map[string]struct {
		result Result
		want   pane.NoticeMsg
	}{
		"imported": {Result{Status: Imported, Session: "aaaaaaaa"}, pane.NoticeMsg{Level: pane.Good, Text: "imported as aaaaaaaa: o opens it, R among the sessions resumes it"}},
		"known":    {Result{Status: Known, Session: "aaaaaaaa"}, pane.NoticeMsg{Level: pane.Good, Text: "it was imported before, as aaaaaaaa"}},
		"refused":  {Result{Status: Refused, Error: "no header"}, pane.NoticeMsg{Level: pane.Bad, Text: "refused: no header"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := listed(&disk{results: map[string]Result{all[0].Path: c.result}}, 80, 20, panetest.Styles(t, themes.DefaultDark))
			cmd := m.Update(panetest.Press(m, "i")().(pane.ConfirmMsg).Then())
			require.Equal(t, c.want, m.Update(cmd())())
		})
	}
}

func TestImportStopsAfterTheFileThatIsUnderWay(t *testing.T) {
	all := some()
	d := &disk{results: map[string]Result{all[0].Path: {Status: Imported, Session: "aaaaaaaa"}}}
	m := listed(d, 80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(m, "space", "space", "space")
	cmd := m.Update(panetest.Press(m, "i")().(pane.ConfirmMsg).Then())
	require.Nil(t, panetest.Press(m, "esc"))
	require.Contains(t, panetest.Plain(m.View()), "stopping")
	require.Equal(t, pane.NoticeMsg{Level: pane.Warning, Text: "stopped after 1 of 3: 1 imported"}, m.Update(cmd())())
	require.Len(t, d.imports, 1)
	require.Len(t, m.marks, 2)
}

func TestMarks(t *testing.T) {
	m := listed(&disk{}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(m, "*")
	require.Len(t, m.marks, 2, "both of the shop")
	panetest.Press(m, "*")
	require.Empty(t, m.marks)
	panetest.Press(m, "G", "space")
	require.Len(t, m.marks, 1)
	require.IsType(t, pane.NoticeMsg{}, panetest.Press(m, "*")(), "it is of no project")
	u := live(some()[:3])
	m.Update(updatedMsg{m, u, nil})
	require.Empty(t, m.marks, "the file is gone")
}

func TestCursorStaysOnItsFile(t *testing.T) {
	m := listed(&disk{}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(m, "down", "down")
	before, _ := m.Selected()
	newer := some()
	newer = append([]catalog.Summary{{Path: "/work/pi/new.jsonl", Title: "new"}}, newer...)
	m.Update(updatedMsg{m, live(newer), nil})
	after, _ := m.Selected()
	require.Equal(t, before.Path, after.Path)
}

func TestFilter(t *testing.T) {
	m := listed(&disk{}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(m, "/")
	require.True(t, m.Typing())
	require.NotNil(t, m.Cursor())
	late := panetest.Press(m, "x")
	settleDown(m, panetest.Press(m, "q"))
	m.Update(tea.PasteMsg{Content: "\x1b[2J\u202e"})
	require.Equal(t, "xq[2J", m.filter.Value())
	for _, msg := range run(late) {
		m.Update(msg)
	}
	require.Equal(t, "xq", m.rows.query, "what comes late doesn't count")
	settleDown(m, panetest.Press(m, "esc"))
	require.False(t, m.Typing())
	require.Equal(t, 6, m.rows.Len())
	panetest.Press(m, "/")
	settleDown(m, panetest.Press(m, "report"))
	panetest.Press(m, "enter")
	s, ok := m.Selected()
	require.True(t, ok)
	require.Equal(t, "2026-05-04-b", s.ID, "what fits best is selected")
	require.True(t, m.Escapes())
	settleDown(m, panetest.Press(m, "esc"))
	require.False(t, m.Escapes())
	require.Equal(t, 6, m.rows.Len())
}

func TestSearch(t *testing.T) {
	d := &disk{hits: found}
	m := listed(d, 160, 46, panetest.Styles(t, themes.DefaultDark))
	panetest.Press(m, "f", "discount")
	cmd := panetest.Press(m, "enter")
	require.Contains(t, panetest.Plain(m.View()), "Searching")
	settleDown(m, cmd)
	require.Equal(t, []string{"discount in 6"}, d.searched)
	require.Equal(t, found.Matches[0].Session.Path+"#4", d.read[len(d.read)-1], "the entry that has it is read")
	settleDown(m, panetest.Press(m, "down", "down"))
	s, _ := m.Selected()
	require.Equal(t, "2026-05-03-c", s.ID)
	panetest.Press(m, "esc")
	require.Equal(t, 6, m.length())
	s, _ = m.Selected()
	require.Equal(t, "2026-05-04-a", s.ID, "the list is as it was")

	panetest.Press(m, "f", "again")
	late := panetest.Press(m, "enter")
	panetest.Press(m, "esc")
	for _, msg := range run(late) {
		m.Update(msg)
	}
	require.False(t, m.hits.shown())

	d.err = errors.New("it broke")
	panetest.Press(m, "f", "again")
	settleDown(m, panetest.Press(m, "enter"))
	require.Contains(t, panetest.Plain(m.View()), "it broke")
	panetest.Press(m, "f", "esc")
	require.False(t, m.Typing())
}

func TestReading(t *testing.T) {
	d := &disk{preview: talk}
	narrow := listed(d, 100, 30, panetest.Styles(t, themes.DefaultDark))
	require.Empty(t, d.read, "there is no room for it")
	settleDown(narrow, panetest.Press(narrow, "enter"))
	require.Len(t, d.read, 1)
	require.Equal(t, []string{some()[0].Path}, d.checked, "who looks closer is told all")
	require.NotContains(t, panetest.Plain(narrow.View()), "Quarterly report")
	bottom := panetest.Plain(narrow.View())
	panetest.Press(narrow, "g")
	top := panetest.Plain(narrow.View())
	require.NotEqual(t, top, bottom)
	panetest.Press(narrow, "G")
	require.Equal(t, bottom, panetest.Plain(narrow.View()))
	panetest.Press(narrow, "up", "pgup", "pgdown", "down")
	narrow.Update(tea.MouseWheelMsg{X: 5, Y: 5, Button: tea.MouseWheelUp})
	require.NotEqual(t, bottom, panetest.Plain(narrow.View()))
	require.IsType(t, pane.ConfirmMsg{}, panetest.Press(narrow, "i")())
	require.Equal(t, pane.CopyMsg{Text: some()[0].Path, What: "the path"}, panetest.Press(narrow, "y")())
	panetest.Press(narrow, "esc")
	require.Contains(t, panetest.Plain(narrow.View()), "Quarterly report")

	d = &disk{preview: talk}
	side := listed(d, 160, 46, panetest.Styles(t, themes.DefaultDark))
	require.Len(t, d.read, 1)
	require.Empty(t, d.checked)
	settleDown(side, panetest.Press(side, "down"))
	require.Len(t, d.read, 2)
	require.Len(t, d.checked, 1, "it is torn")
	same := live(some())
	settleDown(side, side.Update(updatedMsg{side, same, nil}))
	require.Len(t, d.read, 2, "nothing changed")
	same.Sessions[1].Size++
	settleDown(side, side.Update(updatedMsg{side, same, nil}))
	require.Len(t, d.read, 3, "it was written")
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		problems []sessions.Problem
		want     []string
	}{
		"note":      {[]sessions.Problem{{Severity: sessions.Note, Text: "odd"}}, []string{"i imports it as it is."}},
		"torn":      {[]sessions.Problem{{Severity: sessions.Repairable, Text: "torn", Fix: sessions.FixTail}}, []string{"i imports it as it is; a resume first mends its end, and keeps what it cuts off."}},
		"mendable":  {[]sessions.Problem{{Line: 3, Severity: sessions.Fatal, Text: "a circle", Fix: sessions.FixCopy}}, []string{"i refuses it as it is (line 3: a circle).", "c imports a mended copy; the file stays as it is."}},
		"hopeless":  {[]sessions.Problem{{Severity: sessions.Fatal, Text: "no header"}}, []string{"i and c refuse it: no copy could mend that (no header)."}},
		"copyworth": {[]sessions.Problem{{Severity: sessions.Note, Text: "lost", Fix: sessions.FixCopy}}, []string{"i imports it as it is.", "c imports a copy in which the rest is mended too."}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, verdict(&sessions.Report{Problems: c.problems})) })
	}
}

func TestKeysSayWhatTheyDo(t *testing.T) {
	d := &disk{hits: found, preview: talk}
	m := listed(d, 80, 20, panetest.Styles(t, themes.DefaultDark))
	check := func() {
		require.NotEmpty(t, m.Keys())
		panetest.Helped(t, m)
	}
	check()
	panetest.Press(m, "enter")
	check()
	panetest.Press(m, "esc", "/")
	check()
	require.Empty(t, opened(&disk{}, 80, 20, panetest.Styles(t, themes.DefaultDark)).Keys())
	for _, k := range []string{"enter", "space", "*", "u", "i", "c", "y", "o", "/", "f", "esc", "down"} {
		require.Nil(t, panetest.Press(opened(&disk{}, 80, 20, panetest.Styles(t, themes.DefaultDark)), k), k)
	}
}

func TestMouse(t *testing.T) {
	m := listed(&disk{preview: talk}, 160, 20, panetest.Styles(t, themes.DefaultDark))
	m.Update(tea.MouseClickMsg{X: 4, Y: 1 + 1 + 3, Button: tea.MouseLeft})
	require.Equal(t, 3, m.rows.table.Cursor())
	m.Update(tea.MouseWheelMsg{X: 4, Y: 5, Button: tea.MouseWheelUp})
	require.Equal(t, 0, m.rows.table.Cursor())
	m.View()
	m.Update(tea.MouseWheelMsg{X: 140, Y: 5, Button: tea.MouseWheelUp})
	require.Equal(t, 0, m.rows.table.Cursor())
	require.GreaterOrEqual(t, m.reader.top, 0)
}

func TestOutdatedListSaysSo(t *testing.T) {
	m := listed(&disk{}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	m.Update(updatedMsg{m, catalog.Update{}, errors.New("too many\x1b[2J files")})
	require.Contains(t, panetest.Plain(m.View()), "not up to date: too many[2J files")
	require.NotNil(t, m.Open(), "it is tried again")
}

func TestHostileTexts(t *testing.T) {
	for name, text := range panetest.Hostile(panetest.Endless) {
		t.Run(name, func(t *testing.T) {
			all := some()
			for i := range all {
				s := &all[i]
				s.Title, s.Cwd, s.Model, s.Thinking, s.Broken = text, "/work/"+text, text+"/"+text, text, text
				if i%2 == 0 {
					s.Title, s.Broken, s.Path = "", "", text
				}
			}
			d := &disk{
				update:  catalog.Update{List: catalog.List{Sessions: all, Problems: []catalog.Problem{{Path: text, Err: errors.New(text)}}}, Why: text},
				report:  sessions.Report{Problems: []sessions.Problem{{Line: 1, Severity: sessions.Fatal, Text: text, Action: text}, {Text: text, Severity: sessions.Note}}},
				results: map[string]Result{all[1].Path: {Status: Refused, Error: text}, all[2].Path: {Status: Imported, Session: text, Notes: text}},
			}
			for _, kind := range []sessions.BlockKind{sessions.BlockText, sessions.BlockThinking, sessions.BlockCall, sessions.BlockImage, sessions.BlockChange, sessions.BlockSummary, sessions.BlockError, sessions.BlockOther, "new"} {
				d.preview.Turns = append(d.preview.Turns, Turn{Role: text, Blocks: []Block{{Kind: kind, Title: text, Text: text}}})
			}
			for i := range all {
				d.hits.Matches = append(d.hits.Matches, catalog.Match{Session: all[i], EntryID: text, Type: text, Role: text, Snippet: text, Start: 1, End: len(text)})
			}
			d.hits.Problem = text
			for _, size := range [][2]int{{60, 12}, {160, 46}} {
				m := listed(d, size[0], size[1], panetest.Styles(t, themes.DefaultDark))
				ok := func() { panetest.Screen(t, m.View(), size[0], size[1]) }
				ok()
				settleDown(m, panetest.Press(m, "enter"))
				ok()
				panetest.Press(m, "G")
				ok()
				panetest.Press(m, "esc", "down", "space", "space")
				cmd := m.Update(panetest.Press(m, "i")().(pane.ConfirmMsg).Then())
				ok()
				cmd = m.Update(cmd())
				m.Update(cmd())
				settleDown(m, panetest.Press(m, "enter"))
				ok()
				panetest.Press(m, "esc", "f", "x")
				ok()
				settleDown(m, panetest.Press(m, "enter"))
				ok()
			}
		})
	}
}

func TestEverySize(t *testing.T) {
	d := &disk{preview: talk, hits: found, report: wrong}
	m := listed(d, 160, 46, panetest.Styles(t, themes.DefaultDark))
	panetest.EverySize(t, m)
	settleDown(m, panetest.Press(m, "enter"))
	panetest.EverySize(t, m)
	panetest.Press(m, "esc", "f", "discount")
	panetest.EverySize(t, m)
	settleDown(m, panetest.Press(m, "enter"))
	panetest.EverySize(t, m)
	panetest.EverySize(t, opened(&disk{}, 80, 20, panetest.Styles(t, themes.DefaultDark)))
}

func many(n int) []catalog.Summary {
	base, all := some(), make([]catalog.Summary, n)
	for i := range all {
		all[i] = base[i%len(base)]
		all[i].Path = fmt.Sprintf("/work/pi/sessions/%05d.jsonl", i)
		all[i].Title = fmt.Sprintf("%s, number %d", all[i].Title, i)
	}
	return all
}

// A list of ten thousand files that is replaced four times a second, and drawn.
func BenchmarkListOf10000(b *testing.B) {
	d := &disk{preview: talk, update: live(many(10_000))}
	m := listed(d, 160, 46, panetest.Styles(b, themes.DefaultDark))
	settleDown(m, panetest.Press(m, "G"))
	for b.Loop() {
		m.Update(updatedMsg{m, d.update, nil})
		_ = m.View()
	}
}

func BenchmarkMoveIn10000(b *testing.B) {
	m := listed(&disk{preview: talk, update: live(many(10_000))}, 160, 46, panetest.Styles(b, themes.DefaultDark))
	for b.Loop() {
		panetest.Press(m, "down")
		_ = m.View()
	}
}

// The filter itself, which runs beside the UI.
func BenchmarkFilterOf10000(b *testing.B) {
	m := listed(&disk{update: live(many(10_000))}, 160, 46, panetest.Styles(b, themes.DefaultDark))
	panetest.Press(m, "/", "shop")
	for b.Loop() {
		m.Update(m.refilter()())
	}
}
