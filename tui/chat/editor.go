package chat

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"

	"patio/tui/safe"
	"patio/tui/style"
)

const (
	// A paste of more than this becomes a chip: it would push the conversation away.
	pasteLines = 10
	pasteBytes = 2 << 10
	// inlineBytes bounds the text that is put into the text area at once: it draws all of it
	// at each key. Who opens a paste wants it there, and waits a little.
	inlineBytes = 4 << 10
	openBytes   = 16 << 10
)

// editor is a text area for text that is sent as it was typed, and drawn safely.
type editor struct {
	area   textarea.Model
	stands stands
	single bool // Enter isn't a line here, nor is a pasted one
	prompt string

	width, rows int
	drawn       string // for drawnWidth, unless something changed
	drawnWidth  int
}

func newEditor(prompt string) *editor {
	e := &editor{area: textarea.New(), prompt: prompt}
	a := &e.area
	a.ShowLineNumbers = false
	a.EndOfBufferCharacter = ' '
	a.CharLimit = 0
	a.DynamicHeight = true
	a.MinHeight, a.MaxHeight, a.MaxContentHeight = 1, 1, 1<<20
	a.SetVirtualCursor(false)
	// Enter sends; the system's clipboard is the terminal's to read; the rest would break
	// chips apart or is another key of this view.
	a.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("shift+enter", "alt+enter", "ctrl+j"))
	a.KeyMap.CharacterForward = key.NewBinding(key.WithKeys("right"))
	a.KeyMap.LineNext = key.NewBinding(key.WithKeys("down", "ctrl+n"))
	a.KeyMap.LinePrevious = key.NewBinding(key.WithKeys("up"))
	for _, b := range []*key.Binding{
		&a.KeyMap.Paste, &a.KeyMap.CopySelection, &a.KeyMap.TransposeCharacterBackward, &a.KeyMap.SelectAll,
		&a.KeyMap.UppercaseWordForward, &a.KeyMap.LowercaseWordForward, &a.KeyMap.CapitalizeWordForward,
	} {
		b.SetEnabled(false)
	}
	a.Focus()
	return e
}

func (e *editor) setStyles(s *style.Styles) {
	state := textarea.StyleState{
		Base: lipgloss.NewStyle(), Text: s.Text, CursorLine: s.Text, EndOfBuffer: s.Muted, Placeholder: s.Muted,
		Prompt: s.User, LineNumber: s.Muted, CursorLineNumber: s.Muted, Selection: s.Selected.Reverse(true),
	}
	blurred := state
	blurred.Prompt = s.Muted
	var cursor color.Color
	if s.Palette.Accent != "" {
		cursor = lipgloss.Color(s.Palette.Accent)
	}
	e.area.SetStyles(textarea.Styles{Focused: state, Blurred: blurred, Cursor: textarea.CursorStyle{Color: cursor, Shape: tea.CursorBar, Blink: true}})
	e.drawn = ""
	width := safe.Width(e.prompt)
	e.area.SetPromptFunc(width, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return e.prompt
		}
		return strings.Repeat(" ", width)
	})
}

// setSize gives the width, and the rows it may grow to.
func (e *editor) setSize(width, rows int) {
	if width == e.width && rows == e.rows {
		return
	}
	e.width, e.rows = width, rows
	e.area.MaxHeight = max(rows, 1)
	e.area.SetWidth(max(width, safe.Width(e.prompt)+2))
	e.settle()
}

// settle makes the text area scroll to its cursor after a change.
func (e *editor) settle() {
	e.area, _ = e.area.Update(nil)
	e.drawn = ""
}

func (e *editor) setPlaceholder(text string) {
	if e.area.Placeholder != text {
		e.area.Placeholder, e.drawn = text, ""
	}
}

func (e *editor) setFocused(on bool) {
	if on == e.area.Focused() {
		return
	}
	e.drawn = ""
	if on {
		e.area.Focus()
		return
	}
	e.area.Blur()
}

func (e *editor) height() int { return e.area.Height() }

// text is what would be sent.
func (e *editor) text() string { return e.stands.decode(e.area.Value()) }

func (e *editor) empty() bool { return e.area.Value() == "" }

// pictures are the images among the chips.
func (e *editor) pictures() []*picture {
	var all []*picture
	for _, c := range e.stands.chips(e.area.Value()) {
		if c.image != nil {
			all = append(all, c.image)
		}
	}
	return all
}

func (e *editor) hasPastes() bool {
	for _, c := range e.stands.chips(e.area.Value()) {
		if c.image == nil {
			return true
		}
	}
	return false
}

// draft is a text with its chips.
type draft struct {
	value  string
	stands stands
}

func (e *editor) save() draft { return draft{e.area.Value(), e.stands} }

func (e *editor) restore(d draft) {
	e.stands = d.stands
	e.area.SetValue(d.value)
	e.settle()
}

func (e *editor) reset() { e.restore(draft{}) }

// set replaces the text. One that is too long to edit here becomes a chip.
func (e *editor) set(text string) (removed int) {
	e.reset()
	if len(text) > inlineBytes {
		return e.addPaste(text)
	}
	return e.insert(text)
}

// insert puts text at the cursor.
func (e *editor) insert(text string) (removed int) {
	if e.single {
		text = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(text)
	}
	e.area.DeleteSelection()
	line, column := e.line()
	encoded, removed := e.stands.encode(text, string(line[:column]))
	e.area.InsertString(encoded)
	e.settle()
	return removed
}

// paste inserts what is short, and makes a chip of the rest.
func (e *editor) paste(text string) (removed int) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if len(text) > pasteBytes || strings.Count(text, "\n") >= pasteLines {
		return e.addPaste(text)
	}
	return e.insert(text)
}

func (e *editor) addPaste(text string) (removed int) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if n := strings.Count(text, "\x00") + strings.Count(text, "\x1b"); n > 0 {
		removed = n
		text = strings.NewReplacer("\x00", "", "\x1b", "").Replace(text)
	}
	n := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		n++
	}
	lines := "lines"
	if n == 1 {
		lines = "line"
	}
	e.addChip(&chip{label: []rune(fmt.Sprintf("[pasted %s %s, %s]", humanize.Comma(int64(n)), lines, humanize.IBytes(uint64(len(text))))), text: text})
	return removed
}

// addChip puts a chip at the cursor.
func (e *editor) addChip(c *chip) bool {
	value, ok := e.stands.add(c)
	if !ok {
		return false
	}
	e.area.DeleteSelection()
	e.area.InsertString(value)
	e.settle()
	return true
}

// open replaces the paste before the cursor, or else the last one, by its text. ok is
// false when that is too long to be edited here.
func (e *editor) open() (ok bool) {
	value := []rune(e.area.Value())
	var target *chip
	cursor := e.offset()
	for i, r := range value {
		if t, found := e.stands.of(r); found && t.chip != nil && t.chip.first == r && t.chip.image == nil {
			if target == nil || i < cursor {
				target = t.chip
			}
		}
	}
	if target == nil {
		return true
	}
	if len(e.area.Value())+len(target.text) > openBytes {
		return false
	}
	from := slices.Index(value, target.first)
	before, after := string(value[:from]), string(value[from+len(target.label):])
	encoded, _ := e.stands.encode(target.text, before)
	e.setValue(before+encoded+after, len([]rune(before+encoded)))
	return true
}

// line is the runes of the cursor's line, and its column.
func (e *editor) line() ([]rune, int) {
	lines := strings.Split(e.area.Value(), "\n")
	line := []rune(lines[min(e.area.Line(), len(lines)-1)])
	return line, min(e.area.Column(), len(line))
}

// offset is the cursor's place in the value, in runes.
func (e *editor) offset() int {
	lines := strings.Split(e.area.Value(), "\n")
	n := 0
	for _, l := range lines[:min(e.area.Line(), len(lines))] {
		n += len([]rune(l)) + 1
	}
	return n + e.area.Column()
}

// setValue replaces the value and puts the cursor at an offset in runes.
func (e *editor) setValue(value string, offset int) {
	runes := []rune(value)
	offset = max(min(offset, len(runes)), 0)
	// The text area leaves the cursor behind what was inserted.
	e.area.SetValue(string(runes[offset:]))
	e.area.MoveToBegin()
	e.area.InsertString(string(runes[:offset]))
	e.settle()
}

// key handles a key that edits or moves.
func (e *editor) key(msg tea.KeyPressMsg) (removed int) {
	if msg.Text != "" {
		return e.insert(msg.Text)
	}
	if e.single && key.Matches(msg, e.area.KeyMap.InsertNewline) {
		return 0
	}
	before := e.offset()
	e.area, _ = e.area.Update(msg)
	e.drawn = ""
	if len(e.stands.list) > 0 {
		e.mend(before)
	}
	return 0
}

// mend removes broken chips, and moves the cursor out of whole ones, on from where it was.
func (e *editor) mend(before int) {
	value := []rune(e.area.Value())
	offset := e.offset()
	if whole, at, changed := e.stands.whole(value, offset); changed {
		e.setValue(string(whole), at)
		return
	}
	from, to, inside := e.stands.bounds(value, offset)
	if !inside {
		return
	}
	line, column := e.line()
	to = min(column+to-offset, len(line))
	if offset < before {
		to = column + from - offset
	}
	e.area.SetCursorColumn(max(to, 0))
	e.settle()
}

// atTop says that the cursor can't go up.
func (e *editor) atTop() bool { return e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 }

// atBottom says that the cursor can't go down.
func (e *editor) atBottom() bool {
	info := e.area.LineInfo()
	return e.area.Line() >= e.area.LineCount()-1 && info.RowOffset >= info.Height-1
}

// click moves the cursor to a cell.
func (e *editor) click(x, y int) {
	e.area.BeginSelection(x, y)
	e.area.EndSelection()
	if len(e.stands.list) > 0 {
		e.mend(e.offset())
	}
	e.settle()
}

// view draws it, height() lines high.
func (e *editor) view(width int) string {
	if e.drawn == "" || e.drawnWidth != width {
		e.drawn, e.drawnWidth = safe.Block(e.stands.draw(e.area.View()), width, e.height()), width
	}
	return e.drawn
}
