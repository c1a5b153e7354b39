package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// gap is what stands between two columns.
const gap = "   "

// column is one column of a table.
type column[T any] struct {
	title string
	cell  func(T) string
	right bool
	// least is the width that the column may be cut to on a narrow terminal; 0 means that
	// it is never cut.
	least int
	// keepEnd cuts the beginning: of a path the end tells most.
	keepEnd bool
	// drop is the order in which columns are left out of a table that is too wide even
	// when it is cut: the highest goes first, 0 never.
	drop int
}

// table writes plain columns without borders, as docker does. With a width, columns are
// cut or left out to fit; every format but the table has them all.
func (l listing[T]) table(w io.Writer, width int, headers bool, items []T) error {
	rows := l.cells(headers, items)
	widths, fits := l.fit(rows, width)
	for !fits {
		last := l.leastWanted()
		if last < 0 {
			break // the terminal wraps; nothing is lost
		}
		l.columns = slices.Delete(slices.Clone(l.columns), last, last+1)
		for i, row := range rows {
			rows[i] = slices.Delete(row, last, last+1)
		}
		widths, fits = l.fit(rows, width)
	}
	return l.lines(w, rows, widths)
}

// leastWanted is the column to leave out next, -1 when there is none.
func (l listing[T]) leastWanted() int {
	last := -1
	for i, c := range l.columns {
		if c.drop > 0 && (last < 0 || c.drop > l.columns[last].drop) {
			last = i
		}
	}
	return last
}

func (l listing[T]) cells(headers bool, items []T) [][]string {
	var rows [][]string
	if headers {
		row := make([]string, len(l.columns))
		for i, c := range l.columns {
			row[i] = c.title
		}
		rows = append(rows, row)
	}
	for _, item := range items {
		row := make([]string, len(l.columns))
		for i, c := range l.columns {
			row[i] = cleanLine(c.cell(item))
		}
		rows = append(rows, row)
	}
	return rows
}

func (l listing[T]) lines(w io.Writer, rows [][]string, widths []int) error {
	var b strings.Builder
	for _, row := range rows {
		b.Reset()
		for i, c := range l.columns {
			if i > 0 {
				b.WriteString(gap)
			}
			cell := cut(row[i], widths[i], c.keepEnd)
			pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell))
			if c.right {
				cell, pad = pad, cell
			}
			b.WriteString(cell + pad)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// fit returns the columns' widths, and whether the table then fits.
func (l listing[T]) fit(rows [][]string, width int) ([]int, bool) {
	widths := make([]int, len(l.columns))
	total := len(gap) * (len(l.columns) - 1)
	for i := range l.columns {
		for _, row := range rows {
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
		total += widths[i]
	}
	for width > 0 && total > width {
		widest := -1
		for i, c := range l.columns {
			if c.least > 0 && widths[i] > c.least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return widths, false
		}
		widths[widest]--
		total--
	}
	return widths, true
}

// cut shortens s to width columns.
func cut(s string, width int, keepEnd bool) string {
	if runewidth.StringWidth(s) <= width {
		return s
	}
	if !keepEnd {
		return runewidth.Truncate(s, width, "…")
	}
	return runewidth.TruncateLeft(s, runewidth.StringWidth(s)-width+1, "…")
}

// fields writes aligned names and values, for one object.
func fields(w io.Writer, pairs ...[2]string) error {
	longest := 0
	for _, p := range pairs {
		if p[1] != "" {
			longest = max(longest, runewidth.StringWidth(p[0]))
		}
	}
	for _, p := range pairs {
		if p[1] == "" {
			continue
		}
		name := runewidth.FillRight(p[0]+":", longest+1)
		if _, err := fmt.Fprintf(w, "%s  %s\n", name, cleanLine(p[1])); err != nil {
			return err
		}
	}
	return nil
}
