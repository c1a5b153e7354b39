package resources

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize"

	"patio/tui/chart"
	"patio/tui/safe"
)

// The least room of a chart with its frame, and where two are beside each other.
const (
	gridWidth   = 100
	leastHeight = 9
	mostHeight  = 18
)

// head is the first line: the ranges, and where the figures come from.
func (p *Pane) head() string {
	s := p.styles
	if p.meters.last == nil {
		return s.Title.Render(safe.Cut(" Resources", p.width))
	}
	var b strings.Builder
	b.WriteByte(' ')
	for i, r := range spans {
		if i == p.span {
			b.WriteString(s.ChipOn.Render("[" + r.name + "]"))
		} else {
			b.WriteString(s.ChipOff.Render(" " + r.name + " "))
		}
	}
	left := b.String()
	right := "each second from " + p.meters.last.Source
	if p.session.Phase.Final() {
		right = "ended; until " + p.meters.last.Time.In(p.now().Location()).Format("15:04:05")
	} else if age := p.now().Sub(p.meters.last.Time); age > 5*time.Second {
		right = "⚠ no figures for " + chart.Ago(age)
	}
	room := p.width - safe.Width(left) - 2
	if room < 8 {
		return safe.Pad(left, p.width)
	}
	return left + s.Muted.Render(safe.PadLeft(safe.Fit(right, room), room+1)) + " "
}

// figure is one chart: what it shows, its scale and its limit.
type figure struct {
	title  string
	now    string   // the figures, the most important first
	lines  []legend // the series
	format func(float64) string
	ceil   func(float64) float64
	limit  float64
	bound  string // what the limit is called
	gauge  bool
}

type legend struct {
	name   string
	series *chart.Series
	area   bool
	colour int
}

// most bounds figures, so that none overflows where it becomes a whole number.
const most = 1 << 60

func bytesOf(v float64) string {
	if math.IsNaN(v) || v < 0 {
		return "–"
	}
	return humanize.IBytes(uint64(min(v, most)))
}

func perSecond(v float64) string { return bytesOf(v) + "/s" }

func percent(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	if v < 10 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64) + " %"
	}
	return humanize.Comma(int64(math.Round(min(v, most)))) + " %"
}

func count(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return humanize.Comma(int64(math.Round(min(v, most))))
}

// figures are the four charts.
func (p *Pane) figures() []figure {
	m, u := &p.meters, p.meters.last
	cpus := p.session.Plan.Limits.CPUs
	cpu := figure{
		title: "CPU", format: percent, ceil: chart.Ceil, gauge: true,
		lines: []legend{{"CPU", &m.cpu, true, 0}},
		limit: cpus * 100, bound: "limit " + percent(cpus*100),
		now: percent(u.CPUPercent) + " of one CPU now · " + percent(m.cpu.Peak()) + " peak · " + cpuTime(u.CPUSeconds) + " in all",
	}
	memory := figure{
		title: "Memory", format: bytesOf, ceil: chart.CeilBytes, gauge: true,
		lines: []legend{{"programs inside", &m.inside, true, 1}, {"with gVisor's own", &m.memory, false, 2}},
		limit: float64(u.MemoryLimit), bound: "limit " + bytesOf(float64(u.MemoryLimit)),
		now: bytesOf(float64(u.Memory)) + " now · " + bytesOf(m.memory.Peak()) + " peak",
	}
	if m.inside.Len() > 0 {
		memory.now += " · " + bytesOf(float64(u.SandboxMemory)) + " inside"
	}
	pids := figure{
		title: "Tasks", format: count, ceil: chart.Ceil, gauge: true,
		lines: []legend{{"processes and threads inside", &m.pids, true, 3}},
		limit: float64(u.PidsLimit), bound: "limit " + count(float64(u.PidsLimit)),
		now: count(float64(u.Pids)) + " now · " + count(m.pids.Peak()) + " peak",
	}
	in, _ := m.in.Last()
	out, _ := m.out.Last()
	network := figure{
		title: "Network", format: perSecond, ceil: chart.CeilBytes,
		lines: []legend{{"in", &m.in, true, 4}, {"out", &m.out, false, 2}},
		now:   "↓ " + perSecond(in) + "  ↑ " + perSecond(out) + " · ↓ " + humanize.IBytes(u.NetworkIn) + "  ↑ " + humanize.IBytes(u.NetworkOut) + " in all",
	}
	return []figure{cpu, memory, pids, network}
}

func cpuTime(seconds float64) string {
	if seconds < 60 {
		return strconv.FormatFloat(max(seconds, 0), 'f', 1, 64) + "s"
	}
	return chart.Ago(time.Duration(min(seconds, 9e9)) * time.Second)
}

// draw makes all lines below the head.
func (p *Pane) draw() []string {
	figures := p.figures()
	limits := p.limits(p.width)
	room := p.height - 1
	var lines []string
	if p.width >= gridWidth {
		h := min(max((room-len(limits)-1)/2, leastHeight+1), mostHeight)
		left := p.width / 2
		for i := 0; i < len(figures); i += 2 {
			a, b := p.box(figures[i], left, h), p.box(figures[i+1], p.width-left, h)
			lines = append(lines, strings.Split(lipgloss.JoinHorizontal(lipgloss.Top, a, b), "\n")...)
		}
	} else {
		h := min(max(room/2, leastHeight), mostHeight)
		for _, f := range figures {
			lines = append(lines, strings.Split(p.box(f, p.width, h), "\n")...)
		}
	}
	return append(lines, limits...)
}

// box is one chart in its frame: the figures, the gauge, the plot.
func (p *Pane) box(f figure, width, height int) string {
	s := p.styles
	inner := max(width-4, 1)
	lines := []string{s.Strong.Render(safe.Cut(f.now, inner))}
	switch {
	case f.gauge && f.limit > 0:
		lines = append(lines, p.gauge(f, inner))
	case f.gauge:
		lines = append(lines, s.Muted.Render(safe.Cut("no limit is known", inner)))
	default:
		lines = append(lines, p.legend(f, inner))
	}
	plot := p.plot(f, inner, height-2-len(lines))
	if len(f.lines) > 1 && f.gauge && height > leastHeight {
		plot = append([]string{p.legend(f, inner)}, p.plot(f, inner, height-3-len(lines))...)
	}
	lines = append(lines, plot...)
	for i := range lines {
		lines[i] = " " + safe.Cut(lines[i], inner)
	}
	return s.Box(f.title, strings.Join(lines, "\n"), width, height)
}

// legend names the series, each by its colour and by its shape.
func (p *Pane) legend(f figure, width int) string {
	var parts []string
	for _, l := range f.lines {
		sign := "⠒⠒"
		if l.area {
			sign = "⣿⣿"
		}
		parts = append(parts, p.colour(l.colour).Render(sign)+" "+p.styles.Muted.Render(l.name))
	}
	return safe.Cut(strings.Join(parts, "   "), width)
}

func (p *Pane) colour(i int) lipgloss.Style {
	c := p.styles.Chart
	if len(c) == 0 {
		return p.styles.Accent
	}
	return c[i%len(c)]
}

// gauge is the share of the limit that is in use, as a bar and as a figure.
func (p *Pane) gauge(f figure, width int) string {
	s := p.styles
	now, _ := f.lines[len(f.lines)-1].series.Last()
	share := 0.0
	if !math.IsNaN(now) {
		share = now / f.limit
	}
	text := fmt.Sprintf(" %s of %s", percent(math.Round(share*100)), f.format(f.limit))
	st := p.colour(f.lines[len(f.lines)-1].colour)
	switch {
	case share >= 0.9:
		st, text = s.Bad, text+" ⚠ at the limit"
	case share >= 0.75:
		st, text = s.Warning, text+" ⚠ near the limit"
	}
	bar := width - safe.Width(text)
	if bar < 6 {
		return s.Text.Render(safe.Cut(strings.TrimSpace(text), width))
	}
	full := int(math.Ceil(min(max(share, 0), 1) * float64(bar)))
	return st.Render(strings.Repeat("━", full)) + s.Border.Render(strings.Repeat("╌", bar-full)) + s.Text.Render(text)
}

// plot draws the series. The axis reaches to the limit when what is used comes near it,
// or when that was asked for; otherwise to what was used, and the limit is said to be above.
func (p *Pane) plot(f figure, width, height int) []string {
	s := p.styles
	end := p.meters.end(p.now(), p.session.Phase.Final())
	of := spans[p.span].of
	if of == 0 {
		of = max(p.meters.cpu.Life(end), time.Minute)
	}
	top := 0.0
	lines := make([]chart.Line, 0, len(f.lines))
	for _, l := range f.lines {
		values := l.series.Window(end, of, chart.Columns(width))
		top = max(top, chart.Largest(values))
		lines = append(lines, chart.Line{Values: values, Style: p.colour(l.colour), Area: l.area})
	}
	plot := chart.Plot{
		Width: width, Height: height, Max: f.ceil(top), Format: f.format, Span: of, End: "now",
		Axis: s.Muted, Bound: s.Warning, Hot: s.Bad,
	}
	if p.session.Phase.Final() {
		plot.End = "end"
	}
	if f.limit > 0 {
		plot.Limit, plot.LimitLabel = f.limit, f.bound
		switch {
		case p.whole || top*2 >= f.limit:
			plot.Max = f.limit
			if top > f.limit {
				plot.Max = max(f.ceil(top), f.limit)
			}
		case plot.Max < f.limit:
			plot.LimitLabel += " is above ↑"
		}
	}
	return plot.Lines(lines...)
}
