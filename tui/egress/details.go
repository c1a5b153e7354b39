package egress

import (
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"patio/tui/figure"
	"patio/tui/safe"
)

// sheet collects the lines of the details.
type sheet struct {
	p     *Pane
	width int
	lines []string
}

// labelWidth is the room of a field's name.
const labelWidth = 12

// field is a name and a foreign text, broken where it has to be.
func (s *sheet) field(name, text string) {
	if text == "" {
		return
	}
	for i, line := range safe.Wrap(safe.Line(text), max(s.width-labelWidth, 8)) {
		label := ""
		if i == 0 {
			label = name
		}
		s.lines = append(s.lines, s.p.styles.Muted.Render(safe.Pad(label, labelWidth))+s.p.styles.Text.Render(line))
	}
}

// say is a paragraph of our own.
func (s *sheet) say(text string) {
	for _, line := range safe.Wrap(text, s.width) {
		s.lines = append(s.lines, s.p.styles.Text.Render(line))
	}
}

func (s *sheet) head(text string) {
	s.lines = append(s.lines, "", s.p.styles.Title.Render(safe.Cut(text, s.width)))
}

// sheet makes the lines of the selected decision's details.
func (p *Pane) sheet(width int) []string {
	d := p.selected()
	if d == nil {
		return []string{p.styles.Muted.Render("Nothing is selected.")}
	}
	s := &sheet{p: p, width: width}
	if d.kind == kindDropped {
		s.say("Here " + humanize.Comma(d.count) + " decisions were not recorded: there were more at once than could be written. They were decided all the same, each by the rules.")
		return s.lines
	}
	verdict, st := "✗ denied", p.styles.Bad
	if d.allowed {
		verdict, st = "✓ allowed", p.styles.Good
	}
	for _, line := range safe.Wrap(verdict+": "+safe.Line(d.text()), width) {
		s.lines = append(s.lines, st.Render(line))
	}
	s.lines = append(s.lines, "")
	s.fields(d)
	switch {
	case d.allowed:
		s.allowed(d)
	default:
		s.denied(d)
	}
	return s.lines
}

// fields are all that is known of the decision.
func (s *sheet) fields(d *decision) {
	zone := s.p.now().Location()
	const clock = "2006-01-02 15:04:05.000"
	s.field("host", d.host)
	if d.port != 0 {
		port := strconv.Itoa(int(d.port))
		if d.kind == kindDNS {
			port += " (of the name server)"
		}
		s.field("port", port)
	}
	s.field("what", d.what())
	s.field("protocol", d.protocol)
	s.field("dialed", d.address)
	s.field("rule", or(d.rule, "none"))
	s.field("reason", or(d.reason, "–"))
	s.field("time", d.time.In(zone).Format(clock))
	if !d.last.Equal(d.time) {
		s.field("last", d.last.In(zone).Format(clock))
	}
	if d.kind == kindConnection && d.allowed || d.kind == kindEnd {
		s.connection(d)
	} else if d.count > 1 {
		s.field("times", humanize.Comma(d.count))
	}
	s.field("tool call", or(strings.Join(d.calls, ", "), "none ran then"))
	s.field("connection", d.id)
	s.field("record", strconv.FormatUint(d.seq, 10))
}

func (s *sheet) connection(d *decision) {
	switch {
	case d.open:
		s.field("state", "● open; the bytes are told when it ends")
	case d.lostWithEnd:
		s.field("state", "ended with the session; its bytes are unknown")
	default:
		s.field("open for", lasting(d.duration))
		s.field("in", figure.Size(d.in)+" came into the sandbox")
		s.field("out", figure.Size(d.out)+" left the sandbox")
		if d.count > 1 {
			s.field("requests", humanize.Comma(d.count))
		}
	}
	s.field("ended by", strings.ReplaceAll(d.endReason, "_", " "))
}

func (s *sheet) allowed(d *decision) {
	switch {
	case d.reason == "service_allowed" || strings.HasPrefix(d.rule, "service:"):
		s.head("Where this went")
		s.say("Patio itself serves this name. Nothing of it left this machine on its own.")
	case d.rule != "":
		s.head("Why it was allowed")
		s.say("The rule above was there when the session began; the Mounts tab lists all of them with who set them.")
	}
}

func (s *sheet) denied(d *decision) {
	a := suggest(d)
	s.head("How to allow it")
	if a.rule == "" {
		s.say(a.why)
		return
	}
	s.say("In a new session:")
	for i, line := range safe.Wrap("patio new --allow "+a.rule, max(s.width-2, 8)) {
		if i > 0 {
			line = "  " + line
		}
		s.lines = append(s.lines, "  "+s.p.styles.Accent.Render(safe.Cut(line, s.width-2)))
	}
	s.say(a.why)
	s.lines = append(s.lines, "")
	s.say("The rules of a session that runs can't be changed: this version of patio sets them when it starts.")
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// title is what the details are of.
func (p *Pane) title() string {
	if d := p.selected(); d != nil && d.kind != kindDropped {
		return d.target()
	}
	return "Decision"
}
