package launcher

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"patio/engine/api"
	"patio/tui/safe"
	"patio/tui/style"
)

// planLines are the drawn lines of the plan, kept until there is another one.
type planLines struct {
	plan   *api.Session
	styles *style.Styles
	width  int
	all    []string
}

func (p *planLines) stale() { p.plan = nil }

func (l *Launcher) planTitle() string {
	switch {
	case l.starting:
		return "Starting"
	case l.planning:
		return "Plan " + l.spin()
	case l.planErr != nil:
		return "Plan ✗"
	}
	return "Plan"
}

// planLines are what of the plan is seen.
func (l *Launcher) planLines(width, height int) []string {
	var head []string
	switch {
	// Beside the form there is room for these below it.
	case l.starting && !l.beside():
		head = l.phases()
	case l.startErr != nil && !l.beside():
		head = l.failure("It didn't start", l.startErr, width)
	case l.planErr != nil:
		head = l.failure("It can't start", l.planErr, width)
	case l.plan == nil && l.planning:
		return []string{l.styles.Muted.Render(safe.Cut("What it would see, reach and use is being worked out…", width))}
	case l.plan == nil:
		return []string{l.styles.Muted.Render(safe.Cut("Nothing is planned yet.", width))}
	}
	if len(head) > 0 {
		// Two blanks are the form's margin.
		for i := range head {
			head[i] = strings.TrimPrefix(head[i], "  ")
		}
		if l.plan == nil || l.planErr != nil {
			return head[:min(len(head), max(height, 0))]
		}
		head = append(head, "")
	}
	if height < littleRoom && len(head) == 0 && l.top == 0 {
		return l.inShort(width)[:min(2, max(height, 0))]
	}
	all := append(head, l.drawn(width)...)
	from := max(min(l.top, len(all)-height), 0)
	lines := append([]string(nil), all[from:min(from+height, len(all))]...)
	if rest := len(all) - from - height; rest > 0 && len(lines) > 1 {
		lines[len(lines)-1] = l.styles.Muted.Render(safe.Cut(fmt.Sprintf("↓ %d more lines: pgdn", rest+1), width))
	}
	return lines
}

// littleRoom is the height below which a plan is told in short.
const littleRoom = 4

// inShort is the plan in two lines.
func (l *Launcher) inShort(width int) []string {
	st, p := l.styles, l.plan.Plan
	writable, allowed := 0, 0
	for _, m := range p.Mounts {
		if m.Mode == api.ReadWrite {
			writable++
		}
	}
	for _, r := range p.Egress {
		if r.Action == api.ActionAllow {
			allowed++
		}
	}
	unkept := 0
	for _, e := range p.Enforced {
		if !e.Enforced {
			unkept++
		}
	}
	hosts := fmt.Sprintf("%d hosts", allowed)
	switch allowed {
	case 0:
		hosts = "no host"
	case 1:
		hosts = "1 host"
	}
	first := fmt.Sprintf("writes %d, reads %d paths · reaches %s", writable, len(p.Mounts)-writable, hosts)
	var second []string
	for _, c := range []struct {
		n    int
		text string
	}{{len(p.LeftOut), "– %d left out"}, {unkept, "✗ %d limits not kept"}, {len(p.Notes), "! %d to note"}} {
		if c.n > 0 {
			second = append(second, fmt.Sprintf(c.text, c.n))
		}
	}
	return []string{st.Text.Render(safe.Cut(first, width)), st.Warning.Render(safe.Cut(strings.Join(second, " · "), width))}
}

// scroll moves the plan.
func (l *Launcher) scroll(n int) {
	if l.styles == nil || l.plan == nil {
		return
	}
	most := max(len(l.drawn(l.planWidth()))-l.planHeight(), 0)
	l.top = max(min(l.top+n, most), 0)
}

func (l *Launcher) drawn(width int) []string {
	c := &l.lines
	if c.plan != l.plan || c.styles != l.styles || c.width != width {
		d := drawing{styles: l.styles, width: width, home: l.home}
		d.plan(l.plan)
		*c = planLines{plan: l.plan, styles: l.styles, width: width, all: d.lines}
	}
	return c.all
}

// drawing collects the lines of a plan.
type drawing struct {
	styles *style.Styles
	width  int
	home   string
	lines  []string
}

func (d *drawing) heading(text string) {
	if len(d.lines) > 0 {
		d.lines = append(d.lines, "")
	}
	d.lines = append(d.lines, d.styles.Header.Render(text))
}

// entry is a sign, a text, and why, which gives way first.
func (d *drawing) entry(sign string, signStyle *lipgloss.Style, text, why string) {
	room := max(d.width-safe.Width(sign)-3, 1)
	text = safe.Fit(text, room)
	line := "  " + signStyle.Render(sign) + " " + d.styles.Text.Render(text)
	if left := room - safe.Width(text) - 2; why != "" && left >= 8 {
		line += "  " + d.styles.Muted.Render(safe.Fit(why, left))
	}
	d.lines = append(d.lines, line)
}

func (d *drawing) wrapped(sign, text string, s *lipgloss.Style) {
	for i, row := range safe.Wrap(safe.Text(clip(text, 2000)), max(d.width-4, 1)) {
		if i > 0 {
			sign = " "
		}
		d.lines = append(d.lines, "  "+s.Render(sign)+" "+d.styles.Text.Render(row))
	}
}

// most bounds each list: what is longer is told in full by `patio plan`.
const most = 200

func (d *drawing) plan(s *api.Session) {
	st, p := d.styles, s.Plan
	model := s.Model.String()
	if model == "" {
		model = "Pi's own choice"
	}
	if s.Model.Thinking != "" {
		model += " · thinking " + s.Model.Thinking
	}
	d.lines = append(d.lines, st.Strong.Render(safe.Fit(s.Workspace, d.width)), st.Muted.Render(safe.Fit(model, d.width)))

	d.heading("Sees")
	if len(p.Mounts) == 0 {
		d.entry("·", &st.Muted, "nothing of this machine", "")
	}
	for _, m := range p.Mounts[:min(len(p.Mounts), most)] {
		path := m.Destination
		if m.Source != m.Destination {
			path = clip(m.Source, 4096) + " at " + clip(m.Destination, 4096)
		}
		if m.Mode == api.ReadWrite {
			d.entry("rw", &st.Warning, path, m.Reason)
		} else {
			d.entry("ro", &st.Good, path, m.Reason)
		}
	}

	d.heading("Reaches")
	if len(p.Egress) == 0 {
		d.entry("⊘", &st.Muted, "no host", "")
	}
	for _, r := range p.Egress[:min(len(p.Egress), most)] {
		r.Host = clip(r.Host, 300)
		why := ""
		if r.Source != "" {
			why = "from " + clip(r.Source, 300)
		}
		if r.Action == api.ActionAllow {
			d.entry("✓", &st.Good, r.String(), why)
		} else {
			d.entry("⊘", &st.Bad, "not "+r.String(), why)
		}
	}

	d.limits(p)
	d.environment(p)

	if p.Image.Digest != "" {
		d.heading("Image")
		versions := ""
		if p.Image.Pi != "" {
			versions = "Pi " + clip(p.Image.Pi, 100) + ", Node " + clip(p.Image.Node, 100)
		}
		d.entry("·", &st.Muted, clip(p.Image.Digest, 300), versions)
	}
	if len(p.LeftOut) > 0 {
		d.heading("Left out")
		for _, out := range p.LeftOut[:min(len(p.LeftOut), most)] {
			d.entry("–", &st.Warning, out.Path, out.Reason)
		}
	}
	if len(p.Notes) > 0 {
		d.heading("Notes")
		for _, note := range p.Notes[:min(len(p.Notes), most)] {
			d.wrapped("!", note, &st.Warning)
		}
	}
}

// limits are told as what is kept here, where that is known.
func (d *drawing) limits(p api.Plan) {
	st := d.styles
	d.heading("Uses at most")
	if len(p.Enforced) == 0 {
		for _, row := range safe.Wrap(safe.Line(p.Limits.String()), max(d.width-2, 1)) {
			d.lines = append(d.lines, "  "+st.Text.Render(row))
		}
		return
	}
	for _, e := range p.Enforced[:min(len(p.Enforced), most)] {
		text := clip(e.Name, 100) + " " + clip(e.Requested, 100)
		if e.Enforced {
			d.entry("✓", &st.Good, text, e.By)
		} else {
			d.entry("✗", &st.Warning, text+", not kept", e.Why)
		}
	}
}

// environment names variables; values of secrets aren't in a plan.
func (d *drawing) environment(p api.Plan) {
	if len(p.Env) == 0 {
		return
	}
	st := d.styles
	d.heading("Environment")
	var plain []string
	for _, e := range p.Env[:min(len(p.Env), most)] {
		if e.Secret {
			d.entry("◆", &st.Warning, clip(e.Name, 300), "a secret; "+clip(e.Reason, 300))
		} else {
			plain = append(plain, safe.Fit(e.Name, 100))
		}
	}
	if len(plain) > 0 {
		for _, row := range safe.Wrap(strings.Join(plain, " "), max(d.width-4, 1)) {
			d.lines = append(d.lines, "    "+st.Muted.Render(row))
		}
	}
}
