package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// place is where something stands in a file, both counted from 1; zero is nowhere.
type place struct{ line, column int }

// places says where the keys and the lists' items of a TOML file stand.
type places map[string]place

func placeKey(path []string) string { return strings.Join(path, "\x00") }

// of is the place of a key, or of the nearest table around it that has one: a value that
// was written in a way that findPlaces doesn't see is still pointed at.
func (p places) of(path []string) place {
	for n := len(path); n > 0; n-- {
		if at, ok := p[placeKey(path[:n])]; ok {
			return at
		}
	}
	return place{}
}

// item is the path to the place of a list's item. A table that stands for a list of
// KEY=VALUE has its item under the key.
func (p places) item(path []string, text string, i int) []string {
	key, _, _ := strings.Cut(text, "=")
	for _, last := range []string{strconv.Itoa(i), key} {
		item := append(slices.Clone(path), last)
		if _, ok := p[placeKey(item)]; ok {
			return item
		}
	}
	return path
}

// findPlaces reads a file that is known to be TOML.
func findPlaces(text []byte) places {
	p := places{}
	var parser unstable.Parser
	parser.Reset(text)
	add := func(path []string, raw unstable.Range) {
		key := placeKey(path)
		if _, ok := p[key]; ok {
			return
		}
		start := parser.Shape(raw).Start
		p[key] = place{start.Line, start.Column}
	}
	keys := func(table []string, it unstable.Iterator) []string {
		path := slices.Clone(table)
		for it.Next() {
			path = append(path, string(it.Node().Data))
			add(path, it.Node().Raw)
		}
		return path
	}
	var value func(path []string, v *unstable.Node)
	value = func(path []string, v *unstable.Node) {
		items := v.Children()
		for i := 0; items.Next(); {
			item := items.Node()
			switch {
			case v.Kind == unstable.InlineTable:
				value(keys(path, item.Key()), item.Value())
			case v.Kind == unstable.Array && item.Kind != unstable.Comment:
				path := append(slices.Clone(path), strconv.Itoa(i))
				if item.Raw.Length > 0 {
					add(path, item.Raw)
				}
				value(path, item)
				i++
			}
		}
	}
	var table []string
	for parser.NextExpression() {
		switch e := parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = keys(nil, e.Key())
		case unstable.KeyValue:
			value(keys(table, e.Key()), e.Value())
		default: // comments; nothing else stands at the top
		}
	}
	return p
}
