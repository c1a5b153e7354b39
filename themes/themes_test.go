package themes

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/charmbracelet/colorprofile"
	"github.com/stretchr/testify/require"
)

// luminance and contrast are WCAG 2's relative luminance and contrast ratio.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	require.Len(t, hex, 7)
	channel := func(s string) float64 {
		n, err := strconv.ParseUint(s, 16, 8)
		require.NoError(t, err)
		c := float64(n) / 255
		if c <= 0.03928 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(hex[1:3]) + 0.7152*channel(hex[3:5]) + 0.0722*channel(hex[5:7])
}

func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

// farthest is how far the channels of a colour are from those of the one that stands for it
// among 256.
func farthest(t *testing.T, hex string) (worst int) {
	t.Helper()
	r, g, b, _ := lipgloss.Color(hex).RGBA()
	r2, g2, b2, _ := colorprofile.ANSI256.Convert(lipgloss.Color(hex)).RGBA()
	for _, pair := range [][2]uint32{{r, r2}, {g, g2}, {b, b2}} {
		worst = max(worst, int(pair[0]>>8)-int(pair[1]>>8), int(pair[1]>>8)-int(pair[0]>>8))
	}
	return worst
}

func TestBuiltinPalettesCanBeRead(t *testing.T) {
	all, err := All("")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 6)
	require.Equal(t, DefaultDark, all[0].Name)
	require.Equal(t, DefaultLight, all[1].Name)
	var light, high, blind int
	for _, p := range all {
		t.Run(p.Name, func(t *testing.T) {
			require.Equal(t, p.Code, styles.Get(p.Code).Name, "no style of chroma's")
			if p.Name == "terminal" {
				return // its colours are the terminal's
			}
			background := p.Background
			if background == "" {
				background = map[bool]string{true: "#1a1b26", false: "#ffffff"}[p.Dark]
			}
			least := 4.5
			if p.HighContrast {
				least = 7
			}
			for key, c := range p.colours() {
				switch key {
				case "background", "surface", "selection", "border":
					continue
				}
				require.GreaterOrEqual(t, contrast(t, c, background), least, "%s %s on %s", key, c, background)
			}
			for _, c := range []string{p.Text, p.Muted} {
				require.GreaterOrEqual(t, contrast(t, c, p.Surface), 4.5, "%s on the surface", c)
			}
			require.GreaterOrEqual(t, contrast(t, p.Text, p.Selection), 4.5, "text on the selection")
			// tmux and older terminals have 256 colours, where a dark blue grey can become blue.
			for _, c := range []string{p.Surface, p.Selection} {
				require.Less(t, farthest(t, c), 32, "%s among 256 colours", c)
			}
		})
		if !p.Dark {
			light++
		}
		if p.HighContrast {
			high++
		}
		if p.ColourBlind {
			blind++
		}
	}
	require.Positive(t, light)
	require.Positive(t, high)
	require.Positive(t, blind)
}

func TestParseTellsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key": {"dark = true\ncolor = \"#ffffff\"\n", `theme x: line 2: there is no colour "color"`},
		"bad colour":  {"text = \"red\"\nchart = [\"1\", \"2\", \"3\", \"4\"]\n", `theme x: text = "red" is no colour: write #rrggbb, 0 to 15, or nothing for the terminal's own`},
		"sixteen":     {"text = \"16\"\nchart = [\"1\", \"2\", \"3\", \"4\"]\n", `theme x: text = "16" is no colour: write #rrggbb, 0 to 15, or nothing for the terminal's own`},
		"no chart":    {"text = \"1\"\n", "theme x: chart needs at least four colours"},
		"escape":      {"text = \"\\u001b[31m\"\nchart = [\"1\", \"2\", \"3\", \"4\"]\n", `theme x: text = "\x1b[31m" is no colour: write #rrggbb, 0 to 15, or nothing for the terminal's own`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x", []byte(c.text))
			require.EqualError(t, err, c.want)
		})
	}
	_, err := Parse("x", []byte("dark = maybe\n"))
	require.ErrorContains(t, err, "theme x: line 1, column")
}

func TestThemesOfTheUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*")
	require.NoError(t, os.Mkdir(dir, 0o700))
	mine := "title = \"Mine\"\ntext = \"7\"\nchart = [\"1\", \"2\", \"3\", \"4\"]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.toml"), []byte(mine), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, DefaultDark+".toml"), []byte(mine), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.toml"), []byte("text = \"no\"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "huge.toml"), make([]byte, maxPalette+1), 0o600))
	all, err := All(dir)
	require.ErrorContains(t, err, "broken.toml: theme broken: text")
	require.ErrorContains(t, err, "huge.toml is no file of a theme's size")
	names := map[string]string{}
	for _, p := range all {
		names[p.Name] = p.Title
	}
	require.Equal(t, "Mine", names["mine"])
	require.Equal(t, "Mine", names[DefaultDark], "the user's own takes its place")
	require.NotContains(t, names, "broken")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("text = \"1\"\nchart = [\"1\", \"2\", \"3\", \"4\"]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := Parse("x", b); err == nil {
			for _, c := range p.colours() {
				require.Regexp(t, colour, c)
			}
		}
	})
}
