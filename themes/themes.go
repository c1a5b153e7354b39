// Package themes holds the colour palettes of the terminal UI as data.
package themes

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Palette is one theme. A colour is "#rrggbb", one of the terminal's own sixteen ("0" to
// "15"), or empty for the terminal's default.
type Palette struct {
	Name         string `toml:"-"` // of its file
	Title        string `toml:"title"`
	Dark         bool   `toml:"dark"`
	HighContrast bool   `toml:"high_contrast"`
	ColourBlind  bool   `toml:"colour_blind"` // no meaning hangs on red against green

	Background string `toml:"background"`
	Surface    string `toml:"surface"`   // bars, code, boxes
	Selection  string `toml:"selection"` // the selected row
	Border     string `toml:"border"`
	Text       string `toml:"text"`
	Muted      string `toml:"muted"`
	Accent     string `toml:"accent"`

	Good    string `toml:"good"`
	Warning string `toml:"warning"`
	Bad     string `toml:"bad"`
	Info    string `toml:"info"`

	User     string `toml:"user"`
	Agent    string `toml:"agent"`
	Tool     string `toml:"tool"`
	Thinking string `toml:"thinking"`

	Added   string `toml:"added"`
	Removed string `toml:"removed"`

	Chart []string `toml:"chart"` // of the lines of a chart, at least four
	Code  string   `toml:"code"`  // the name of a chroma style
}

// Default names of the themes for a dark and a light terminal.
const (
	DefaultDark  = "patio-dark"
	DefaultLight = "patio-light"
)

//go:embed palettes/*.toml
var builtin embed.FS

// maxPalette bounds the file of a palette; they have one or two kilobytes.
const maxPalette = 64 << 10

// All returns the built-in palettes and those of a directory of the user's, by name; one
// of the user's takes the place of a built-in one. The palettes are good even when the
// error isn't nil: it tells which files had to be left out, and why.
func All(dir string) ([]Palette, error) {
	found := map[string]Palette{}
	entries, err := fs.ReadDir(builtin, "palettes")
	if err != nil {
		return nil, fmt.Errorf("read themes: %w", err)
	}
	for _, e := range entries {
		b, err := fs.ReadFile(builtin, "palettes/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("read themes: %w", err)
		}
		p, err := Parse(nameOf(e.Name()), b)
		if err != nil {
			return nil, err
		}
		found[p.Name] = p
	}
	var problems []error
	if dir != "" {
		files, err := filepath.Glob(filepath.Join(globEscape(dir), "*.toml"))
		problems = append(problems, err)
		for _, file := range files {
			p, err := read(file)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			found[p.Name] = p
		}
	}
	all := make([]Palette, 0, len(found))
	for _, p := range found {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Palette) int { return cmp.Or(order(a)-order(b), strings.Compare(a.Name, b.Name)) })
	return all, errors.Join(problems...)
}

// order has the defaults first.
func order(p Palette) int {
	switch p.Name {
	case DefaultDark:
		return 0
	case DefaultLight:
		return 1
	}
	return 2
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".toml") }

func globEscape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func read(file string) (Palette, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Palette{}, fmt.Errorf("read theme: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxPalette {
		return Palette{}, fmt.Errorf("read theme: %s is no file of a theme's size", file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return Palette{}, fmt.Errorf("read theme: %w", err)
	}
	p, err := Parse(nameOf(file), b)
	if err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

var colour = regexp.MustCompile(`^(#[0-9a-fA-F]{6}|[0-9]|1[0-5])?$`)

// Parse reads a palette strictly: a key that doesn't exist and a colour that is none are
// errors, for both would be seen as a wrong colour only.
func Parse(name string, b []byte) (Palette, error) {
	p := Palette{Name: name}
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
			row, _ := strict.Errors[0].Position()
			return p, fmt.Errorf("theme %s: line %d: there is no colour %q", name, row, strings.Join(strict.Errors[0].Key(), "."))
		}
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := bad.Position()
			return p, fmt.Errorf("theme %s: line %d, column %d: %w", name, row, column, err)
		}
		return p, fmt.Errorf("theme %s: %w", name, err)
	}
	if p.Title == "" {
		p.Title = name
	}
	for key, value := range p.colours() {
		if !colour.MatchString(value) {
			return p, fmt.Errorf("theme %s: %s = %q is no colour: write #rrggbb, 0 to 15, or nothing for the terminal's own", name, key, value)
		}
	}
	if len(p.Chart) < 4 {
		return p, fmt.Errorf("theme %s: chart needs at least four colours", name)
	}
	return p, nil
}

func (p Palette) colours() map[string]string {
	all := map[string]string{
		"background": p.Background, "surface": p.Surface, "selection": p.Selection, "border": p.Border, "text": p.Text,
		"muted": p.Muted, "accent": p.Accent, "good": p.Good, "warning": p.Warning, "bad": p.Bad, "info": p.Info,
		"user": p.User, "agent": p.Agent, "tool": p.Tool, "thinking": p.Thinking, "added": p.Added, "removed": p.Removed,
	}
	for i, c := range p.Chart {
		all[fmt.Sprintf("chart[%d]", i)] = c
	}
	return all
}
