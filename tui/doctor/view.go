package doctor

import (
	"fmt"
	"strings"

	"patio/tui/safe"
)

const (
	// listTop is the first line of the list, below the verdict.
	listTop = 2
	// wide is from where on the details stand beside the list.
	wide = 110
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (d *Doctor) beside() bool { return d.width >= wide }

func (d *Doctor) listWidth() int {
	if d.beside() {
		return d.width * 55 / 100
	}
	return d.width
}

// arrange gives the list what the details leave.
func (d *Doctor) arrange() {
	room := max(d.height-listTop, 0)
	if !d.beside() {
		// The list has its rows where there is room, and at least some of them.
		room = max(min(room-7, len(d.findings)+1), min(room, 5))
	}
	d.table.SetSize(d.listWidth(), room)
}

// View implements pane.Pane.
func (d *Doctor) View() string {
	if d.width <= 0 || d.height <= 0 || d.styles == nil {
		return ""
	}
	top := d.verdict() + "\n\n"
	if len(d.findings) == 0 {
		return safe.Block(top+d.empty(), d.width, d.height)
	}
	list := d.table.View()
	if d.beside() {
		box := d.styles.Box("Details", indent(d.details(d.width-d.listWidth()-4)), d.width-d.listWidth(), d.height-listTop)
		l, r := strings.Split(list, "\n"), strings.Split(box, "\n")
		for i := range l {
			if i < len(r) {
				l[i] += r[i]
			}
		}
		return safe.Block(top+strings.Join(l, "\n"), d.width, d.height)
	}
	rule := d.styles.Border.Render(strings.Repeat("─", d.width))
	return safe.Block(top+list+"\n"+rule+"\n"+indent(d.details(d.width-2)), d.width, d.height)
}

func indent(lines []string) string {
	for i := range lines {
		lines[i] = " " + lines[i]
	}
	return strings.Join(lines, "\n")
}

// verdict says in a line whether sessions can run.
func (d *Doctor) verdict() string {
	st := d.styles
	switch {
	case d.running && len(d.findings) == 0:
		return " " + st.Info.Render(spinner[d.ticks%len(spinner)]+" Looking at this machine…")
	case d.err != nil:
		message, _ := failure(d.err)
		return " " + st.Bad.Render(safe.Fit("✗ The checks couldn't run: "+message, d.width-2))
	case len(d.findings) == 0:
		return " " + st.Muted.Render("Nothing was checked yet.")
	}
	bad, warnings := d.Count(), 0
	for _, f := range d.findings {
		if f.Status == Warning {
			warnings++
		}
	}
	text := st.Good.Bold(true).Render("✓ Sessions can run on this machine.")
	switch {
	case bad == 1:
		text = st.Bad.Bold(true).Render("✗ One thing has to be mended first.")
	case bad > 1:
		text = st.Bad.Bold(true).Render(fmt.Sprintf("✗ %d things have to be mended first.", bad))
	}
	switch {
	case warnings == 1:
		text += "  " + st.Warning.Render("! 1 warning")
	case warnings > 1:
		text += "  " + st.Warning.Render(fmt.Sprintf("! %d warnings", warnings))
	}
	if d.running {
		text += "  " + st.Info.Render(spinner[d.ticks%len(spinner)]+" checking again")
	}
	return " " + text
}

// empty says what will be here.
func (d *Doctor) empty() string {
	st := d.styles
	if d.err != nil {
		_, hint := failure(d.err)
		lines := []string{}
		for _, line := range safe.Wrap(safe.Text(hint), max(d.width-4, 1)) {
			lines = append(lines, "   "+st.Text.Render(line))
		}
		return strings.Join(append(lines, "   "+st.Key.Render("r")+st.Muted.Render(" tries again")), "\n")
	}
	text := "What a session needs of this machine is looked for: the sandbox, the image, " +
		"user namespaces, the network device, limits, disk space. Nothing is changed."
	var lines []string
	for _, line := range safe.Wrap(text, max(min(d.width-4, 70), 1)) {
		lines = append(lines, "   "+st.Muted.Render(line))
	}
	return strings.Join(lines, "\n")
}

// details are all there is about the selected check.
func (d *Doctor) details(w int) []string {
	f, ok := d.selected()
	if !ok || w <= 0 {
		return nil
	}
	st := d.styles
	lines := []string{d.style(f.Status).Bold(true).Render(sign(f.Status)+" "+word(f.Status)) + "  " + st.Strong.Render(safe.Fit(f.Name, max(w-12, 1)))}
	add := func(text string, render func(...string) string) {
		for _, line := range safe.Wrap(safe.Text(clip(text)), w) {
			lines = append(lines, render(line))
		}
	}
	add(f.Found, st.Text.Render)
	meaning := func() {
		if f.Meaning != "" {
			add(f.Meaning, st.Muted.Render)
		}
	}
	if d.beside() {
		meaning()
		lines = append(lines, "")
	}
	if f.Fix == "" && f.Status != OK {
		lines = append(lines, st.Muted.Render(safe.Cut("There is no command that mends it.", w)))
	}
	if f.Fix != "" {
		// Where there is little room, the command is what must be seen.
		if d.beside() {
			lines = append(lines, st.Header.Render("To mend it"))
		}
		for i, line := range strings.Split(strings.TrimSpace(clip(f.Fix)), "\n") {
			for j, part := range safe.Wrap(safe.Line(line), max(w-4, 1)) {
				prompt := " $ "
				if j > 0 {
					prompt = "   "
				}
				lines = append(lines, st.Code.Render(safe.Pad(prompt+part, w)))
			}
			if i > 100 {
				break
			}
		}
		lines = append(lines, st.Key.Render("y")+st.Muted.Render(" copies it"))
	}
	if !d.beside() {
		meaning()
	}
	return lines
}
