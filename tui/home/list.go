package home

import (
	"fmt"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/chart"
	"patio/tui/pane"
	"patio/tui/safe"
	"patio/tui/table"
)

const filterLabel = " /"

// Widths of the columns that have no flexible one.
const (
	stateWidth      = 17 // ? needs an answer
	stateShortWidth = 9  // ● working
	sparkWidth      = 5
	useWidth        = sparkWidth + 1 + 4
	// roomy is the width from which states are written out.
	roomy = 92
)

// beside says whether there is room for the preview.
func (h *Home) beside() bool { return h.width >= wide }

func (h *Home) listWidth() int {
	if !h.beside() {
		return h.width
	}
	return h.width - h.previewWidth()
}

func (h *Home) previewWidth() int { return max(42, min(h.width*36/100, 72)) }

// top is the first line of the table.
func (h *Home) top() int {
	if h.filtering() {
		return 2
	}
	return 1
}

func (h *Home) filtering() bool { return h.typing || h.filter.Value() != "" }

// arrange makes the table for the size.
func (h *Home) arrange() {
	cursor := 0
	if h.table != nil {
		cursor = max(h.table.Cursor(), 0)
	}
	width := stateShortWidth
	if h.listWidth() >= roomy {
		width = stateWidth
	}
	h.table = table.New(h,
		table.Column{Title: "State", Width: width},
		table.Column{Title: "Name", Width: 10, Flex: 2},
		table.Column{Title: "Workspace", Width: 12, Flex: 3},
		table.Column{Title: "Model", Width: 12, Flex: 2, Rank: 4},
		table.Column{Title: "Turns", Width: 5, Right: true, Rank: 5},
		table.Column{Title: "Tokens", Width: 6, Right: true, Rank: 5},
		table.Column{Title: "Cost", Width: 7, Right: true, Rank: 1},
		table.Column{Title: "CPU", Width: useWidth, Rank: 3},
		table.Column{Title: "Memory", Width: useWidth, Rank: 3},
		table.Column{Title: "Denied", Width: 6, Right: true, Rank: 2},
		table.Column{Title: "Age", Width: 4, Right: true},
	)
	h.table.SetEmpty("")
	if h.styles != nil {
		h.table.SetStyles(h.styles)
	}
	h.table.SetSize(h.listWidth(), max(h.height-h.top(), 0))
	h.table.SetCursor(cursor)
	h.filter.SetWidth(max(h.width-20, 8))
}

// Len implements table.Source.
func (h *Home) Len() int { return len(h.shown) }

// Row implements table.Source.
func (h *Home) Row(i int) []table.Cell {
	s, st := &h.sessions[h.shown[i]], h.styles
	sign, word := pane.State(s)
	if word == "needs an answer" && h.listWidth() < roomy {
		word = "asks you"
		if stateShortWidth < 2+len(word) {
			word = "asks"
		}
	}
	text := &st.Text
	if s.Phase.Final() {
		text = &st.Muted
	}
	name, denied := &st.Strong, text
	if s.Phase.Final() {
		name = text
	}
	if s.Denied > 0 {
		denied = &st.Warning
	}
	cpu, memory := h.use(s)
	return []table.Cell{
		{Text: sign + " " + word, Style: stateStyle(s, st)},
		{Text: title(s), Style: name},
		// The table cuts at the end; the end of a path says the most.
		{Text: shorten(s.Workspace, h.home, h.pathWidth()), Style: text},
		{Text: model(s), Style: text},
		{Text: strconv.Itoa(s.Turns), Style: text},
		{Text: count(tokens(s.Tokens)), Style: text},
		{Text: cost(s.CostUSD), Style: text},
		cpu, memory,
		{Text: deniedText(s.Denied), Style: denied},
		{Text: age(h.now().Sub(s.Created)), Style: text},
	}
}

func deniedText(n int) string {
	if n == 0 {
		return "-"
	}
	return "⊘ " + count(n)
}

// model is without the provider: the preview has that.
func model(s *api.Session) string {
	if s.Model.ID == "" {
		return "-"
	}
	return s.Model.ID
}

// pathWidth is the room of the workspace's column: it has three of seven shares of what
// the others leave.
func (h *Home) pathWidth() int {
	w := h.listWidth() - 2
	fixed, flex := 0, 5
	add := func(width int) { fixed += width + 1 }
	add(stateShortWidth)
	if w+2 >= roomy {
		fixed += stateWidth - stateShortWidth
	}
	add(10)
	add(12)
	add(4)
	for _, c := range []struct{ width, flex int }{{8, 0}, {7, 0}, {2*useWidth + 2, 0}, {13, 2}, {13, 0}} {
		if fixed+c.width-1 > w {
			break
		}
		fixed += c.width
		flex += c.flex
	}
	return 12 + max(w-(fixed-1), 0)*3/flex
}

// use is what a session takes of the machine: how it went, and the figure.
func (h *Home) use(s *api.Session) (cpu, memory table.Cell) {
	st := h.styles
	past := h.history[s.ID]
	if s.Phase.Final() || s.Usage == nil || past == nil {
		return table.Cell{Text: strings.Repeat(" ", sparkWidth+4) + "-", Style: &st.Muted}, table.Cell{Text: strings.Repeat(" ", sparkWidth+4) + "-", Style: &st.Muted}
	}
	cpu = table.Cell{
		Text:  chart.Spark(newest(past.cpu, sparkWidth), sparkWidth, cpuLimit(s)) + " " + safe.PadLeft(percent(s.Usage.CPUPercent), 4),
		Style: h.heat(s.Usage.CPUPercent, cpuLimit(s)),
	}
	limit := memoryLimit(s)
	memory = table.Cell{
		Text:  chart.Spark(newest(past.memory, sparkWidth), sparkWidth, float64(limit)) + " " + safe.PadLeft(short(s.Usage.Memory), 4),
		Style: h.heat(float64(s.Usage.Memory), float64(limit)),
	}
	return cpu, memory
}

func newest(values []float64, n int) []float64 { return values[max(0, len(values)-n):] }

func percent(v float64) string { return fmt.Sprintf("%.0f%%", max(v, 0)) }

// heat is the style of a use against its limit; the figure beside says the same.
func (h *Home) heat(used, limit float64) *lipgloss.Style {
	switch {
	case limit > 0 && used >= 0.95*limit:
		return &h.styles.Bad
	case limit > 0 && used >= 0.8*limit:
		return &h.styles.Warning
	}
	return &h.styles.Info
}
