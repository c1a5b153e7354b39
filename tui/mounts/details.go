package mounts

import (
	"patio/tui/safe"
)

// layout gives the table its room.
func (p *Pane) layout() {
	p.details.SetSize(p.width, p.height, 0)
	w, h := p.details.List()
	p.table.SetSize(w, h)
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

// title is what the details are of.
func (p *Pane) title() string {
	sec, it, _ := p.selected()
	if it != nil {
		return it.name
	}
	return sec.title
}
