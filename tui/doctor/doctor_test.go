package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/themes"
	"patio/tui/pane"
	"patio/tui/panetest"
	"patio/tui/style"
)

var healthy = []Finding{
	{Name: "machine", Status: OK, Found: "linux/amd64, kernel 6.12.0"},
	{Name: "runsc", Status: OK, Found: "release-20260101.0 at /opt/patio/libexec/runsc"},
	{Name: "image", Status: OK, Found: "pi-0.84.2, Pi 0.84.2, Node 22.12.0"},
	{Name: "image tools", Status: OK, Found: "all there"},
}

var ill = []Finding{
	healthy[0], healthy[1],
	{Name: "image", Status: Bad, Found: "there is no image", Meaning: "it holds Pi and what Pi works with", Fix: "patio image build"},
	{Name: "image tools", Status: Warning, Found: "missing: mkfs.erofs, mmdebstrap", Meaning: "only needed to build another image", Fix: "sudo apt-get install erofs-utils mmdebstrap"},
	{Name: "id mapping", Status: OK, Found: "65536 user ids from 100000, 65536 group ids from 100000"},
	{Name: "user namespaces", Status: OK, Found: "allowed, tried"},
	{
		Name: "network device", Status: Bad, Found: "open /dev/net/tun: permission denied",
		Meaning: "it carries the sandbox's network to patio's gateway; opening it gives no rights in the host's own network",
		Fix:     "sudo chmod 0666 /dev/net/tun\necho 'KERNEL==\"tun\", MODE=\"0666\"' | sudo tee /etc/udev/rules.d/90-patio-tun.rules",
	},
	{Name: "limits", Status: Warning, Found: "no cgroups are mounted", Meaning: "memory and CPU of a session are not bounded here"},
	{Name: "disk space", Status: OK, Found: "80 GiB free for images, 80 GiB for sessions"},
	{Name: "directories", Status: OK, Found: "state /work/state, images /work/data, sockets /run/user/1000/patio"},
}

// machine is a Checker that finds what it is told.
type machine struct {
	findings []Finding
	err      error
	runs     int
}

func (m *machine) Check(done func([]Finding, error) tea.Msg) tea.Cmd {
	m.runs++
	return func() tea.Msg { return done(m.findings, m.err) }
}

func opened(m *machine, w, h int, s *style.Styles) *Doctor {
	d := New(m)
	d.SetStyles(s)
	d.SetSize(w, h)
	return d
}

func examined(m *machine, w, h int, s *style.Styles) *Doctor {
	d := opened(m, w, h, s)
	d.Update(d.Open()())
	return d
}

func TestGolden(t *testing.T) {
	for name, open := range map[string]func(w, h int, s *style.Styles) *Doctor{
		"new":     func(w, h int, s *style.Styles) *Doctor { return opened(&machine{}, w, h, s) },
		"healthy": func(w, h int, s *style.Styles) *Doctor { return examined(&machine{findings: healthy}, w, h, s) },
		"ill":     func(w, h int, s *style.Styles) *Doctor { return examined(&machine{findings: ill}, w, h, s) },
		"running": func(w, h int, s *style.Styles) *Doctor {
			d := opened(&machine{}, w, h, s)
			d.Open()
			d.Tick()
			return d
		},
		"again": func(w, h int, s *style.Styles) *Doctor {
			d := examined(&machine{findings: ill}, w, h, s)
			panetest.Press(d, "ggjjjjjjr")
			return d
		},
		"failed": func(w, h int, s *style.Styles) *Doctor {
			return examined(&machine{err: api.Errorf(api.CodeInternal, "set HOME, or XDG_STATE_HOME", "there is no home directory")}, w, h, s)
		},
	} {
		panetest.Golden(t, name, "\n", func(w, h int, s *style.Styles) string { return open(w, h, s).View() })
	}
}

func TestWorstIsSelectedAndKept(t *testing.T) {
	m := &machine{findings: ill}
	d := examined(m, 80, 20, panetest.Styles(t, themes.DefaultDark))
	f, ok := d.selected()
	require.True(t, ok)
	require.Equal(t, "image", f.Name)
	require.Equal(t, 2, d.Count())
	require.Equal(t, pane.CopyMsg{Text: "patio image build", What: "the fix"}, panetest.Press(d, "y")())

	panetest.Press(d, "G")
	require.IsType(t, pane.NoticeMsg{}, panetest.Press(d, "y")(), "nothing is to be mended")
	cmd := panetest.Press(d, "r")
	require.Nil(t, panetest.Press(d, "r"), "it runs already")
	m.findings = append([]Finding{{Name: "new", Status: Bad}}, ill...)
	d.Update(cmd())
	f, _ = d.selected()
	require.Equal(t, "directories", f.Name)
	require.Equal(t, 2, m.runs)
}

func TestFailureKeepsWhatWasFound(t *testing.T) {
	m := &machine{findings: healthy}
	d := examined(m, 80, 20, panetest.Styles(t, themes.DefaultDark))
	m.err = errors.New("no more processes")
	d.Update(d.Open()())
	view := panetest.Plain(d.View())
	require.Contains(t, view, "The checks couldn't run: no more processes")
	require.Contains(t, view, "kernel 6.12.0")
}

func TestAnothersAnswerIsIgnored(t *testing.T) {
	d := opened(&machine{findings: ill}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	other := opened(&machine{findings: healthy}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	cmd := other.Open()
	d.Open()
	d.Update(cmd())
	require.Empty(t, d.findings)
	require.True(t, d.running)
}

func TestKeysSayWhatTheyDo(t *testing.T) {
	d := examined(&machine{findings: ill}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	panetest.Helped(t, d)
	require.Len(t, opened(&machine{}, 80, 20, panetest.Styles(t, themes.DefaultDark)).Keys(), 1)
}

func TestExport(t *testing.T) {
	d := examined(&machine{findings: ill}, 80, 20, panetest.Styles(t, themes.DefaultDark))
	msg, ok := panetest.Press(d, "e")().(pane.ExportMsg)
	require.True(t, ok)
	require.Equal(t, "patio-doctor.txt", msg.Name)
	var b bytes.Buffer
	require.NoError(t, msg.Write(&b))
	require.Contains(t, b.String(), "$ sudo chmod 0666 /dev/net/tun\n")
}

func TestMouse(t *testing.T) {
	d := examined(&machine{findings: ill}, 160, 46, panetest.Styles(t, themes.DefaultDark))
	d.Update(tea.MouseClickMsg{X: 4, Y: listTop + 1 + 6, Button: tea.MouseLeft})
	f, _ := d.selected()
	require.Equal(t, "network device", f.Name)
	d.Update(tea.MouseWheelMsg{X: 4, Y: 5, Button: tea.MouseWheelUp})
	f, _ = d.selected()
	require.Equal(t, "image tools", f.Name)
}

func TestHostileTexts(t *testing.T) {
	for name, text := range panetest.Hostile(panetest.Endless) {
		t.Run(name, func(t *testing.T) {
			for _, size := range panetest.Screens {
				d := examined(&machine{findings: []Finding{{text, Bad, text, text, text}, {text, Status(text), text, text, text + "\n" + text}}}, size[0], size[1], panetest.Styles(t, themes.DefaultDark))
				panetest.Screen(t, d.View(), size[0], size[1])
				panetest.Press(d, "j")
				panetest.Screen(t, d.View(), size[0], size[1])
				d = examined(&machine{err: &api.Error{Message: text, Hint: text}}, size[0], size[1], panetest.Styles(t, themes.DefaultDark))
				panetest.Screen(t, d.View(), size[0], size[1])
			}
		})
	}
}

func TestEverySize(t *testing.T) {
	panetest.EverySize(t, examined(&machine{findings: ill}, 80, 20, panetest.Styles(t, themes.DefaultDark)))
	panetest.EverySize(t, opened(&machine{}, 80, 20, panetest.Styles(t, themes.DefaultDark)))
}

func BenchmarkView(b *testing.B) {
	many := make([]Finding, 100)
	for i := range many {
		many[i] = ill[i%len(ill)]
		many[i].Name = fmt.Sprintf("check %d", i)
	}
	d := examined(&machine{findings: many}, 160, 46, panetest.Styles(b, themes.DefaultDark))
	for b.Loop() {
		panetest.Press(d, "j")
		_ = d.View()
	}
}
