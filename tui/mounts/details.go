package mounts

import (
	"strings"

	"patio/tui/safe"
)

// place is where the details are.
type place int

const (
	whole place = iota // instead of the list
	below
	beside
)

func (p *Pane) place() place {
	switch {
	case p.width >= 110:
		return beside
	case p.height >= 24:
		return below
	}
	return whole
}

// detailSize is the room of the details' box.
func (p *Pane) detailSize() (width, height int) {
	switch p.place() {
	case beside:
		return min(max(p.width*2/5, 46), 72), p.height
	case below:
		return p.width, max(p.height/2, 10)
	case whole:
	}
	return p.width, p.height
}

// layout gives the table its room.
func (p *Pane) layout() {
	w, h := p.width, p.height
	if p.details {
		dw, dh := p.detailSize()
		switch p.place() {
		case beside:
			w -= dw
		case below:
			h -= dh
		case whole:
		}
	}
	p.table.SetSize(w, h)
}

// overDetails reports whether a cell is of the details.
func (p *Pane) overDetails(x, y int) bool {
	if !p.details {
		return false
	}
	w, h := p.detailSize()
	switch p.place() {
	case beside:
		return x >= p.width-w
	case below:
		return y >= p.height-h
	case whole:
	}
	return true
}

// labelWidth is the room of a fact's name.
const labelWidth = 11

// longestFact bounds what is drawn of one text: a command line may be megabytes.
const longestFact = 8 << 10

// sheet makes the lines of the details.
func (p *Pane) sheet(width int) []string {
	s := p.styles
	sec, it, ok := p.selected()
	if !ok {
		return nil
	}
	var lines []string
	say := func(text string) {
		for _, line := range safe.Wrap(text, width) {
			lines = append(lines, s.Text.Render(line))
		}
	}
	if it == nil {
		say(sec.note)
		if len(sec.items) == 0 {
			lines = append(lines, "")
			say("Here: " + sec.empty + ".")
		}
		return lines
	}
	for _, f := range it.facts {
		if f.text == "" {
			continue
		}
		for i, line := range safe.Wrap(safe.Fit(f.text, longestFact), max(width-labelWidth, 8)) {
			label := ""
			if i == 0 {
				label = f.name
			}
			lines = append(lines, s.Muted.Render(safe.Pad(safe.Fit(label, labelWidth-1), labelWidth))+s.Text.Render(line))
		}
	}
	if it.note != "" {
		lines = append(lines, "")
		say(it.note)
	}
	return lines
}

// box draws the details in their frame.
func (p *Pane) box(width, height int) string {
	sec, it, _ := p.selected()
	title := sec.title
	if it != nil {
		title = safe.Fit(it.name, max(width-8, 1))
	}
	lines := p.sheet(max(width-4, 1))
	room := max(height-2, 1)
	lines = lines[min(p.detailTop, max(len(lines)-room, 0)):]
	if len(lines) > room {
		lines = append(lines[:room-1:room-1], p.styles.Muted.Render("↓ more: J, or the wheel"))
	}
	for i := range lines {
		lines[i] = " " + safe.Cut(lines[i], max(width-4, 1))
	}
	return safe.Block(p.styles.Box(title, strings.Join(lines, "\n"), width, height), width, height)
}

// scrolls reports whether the details don't fit.
func (p *Pane) scrolls() bool {
	w, h := p.detailSize()
	return len(p.sheet(max(w-4, 1))) > max(h-2, 1)
}

// scroll moves the details by lines.
func (p *Pane) scroll(by int) {
	w, h := p.detailSize()
	p.detailTop = min(max(p.detailTop+by, 0), max(len(p.sheet(max(w-4, 1)))-max(h-2, 1), 0))
}
