package importer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"patio/tui/safe"
)

// clip keeps the beginning of a text, in memory of its own.
func clip(s string, most int) string {
	if len(s) <= most {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:most], "")
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return count(n) + " " + noun
}

func count(n int) string {
	if n < 10_000 {
		return strconv.Itoa(n)
	}
	return humanize.Comma(int64(n))
}

// compact is a large number in few columns.
func compact(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// age is a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	case d < 1000*24*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
	return fmt.Sprintf("%dy", int(d.Hours()/24/365))
}

// shorten makes a directory fit: the home directory becomes ~, and the end stays, for it
// says the most.
func shorten(path, home string, width int) string {
	path = safe.Line(clip(path, 4<<10))
	if home != "" && home != "/" {
		if path == home {
			path = "~"
		} else if rest, ok := strings.CutPrefix(path, home+"/"); ok {
			path = "~/" + rest
		}
	}
	for safe.Width(path) > width {
		_, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "…/"), "/"), "/")
		if !ok {
			break
		}
		path = "…/" + rest
	}
	if safe.Width(path) > width {
		path = strings.TrimPrefix(path, "…/")
	}
	return safe.Cut(path, width)
}
