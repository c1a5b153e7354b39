package home

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"patio/engine/api"
	"patio/tui/safe"
)

// count is a number in at most five columns.
func count(n int) string {
	switch {
	case n < 10_000:
		return strconv.Itoa(n)
	case n < 1_000_000:
		return strconv.Itoa(n/1000) + "k"
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return strconv.Itoa(n/1_000_000_000) + "G"
}

func tokens(t api.Tokens) int { return t.Input + t.Output + t.CacheRead + t.CacheWrite }

// cost is a price in at most seven columns.
func cost(usd float64) string {
	switch {
	case usd <= 0:
		return "-"
	case usd < 10:
		return fmt.Sprintf("$%.4f", usd)
	case usd < 10_000:
		return fmt.Sprintf("$%.2f", usd)
	}
	return fmt.Sprintf("$%.0f", usd)
}

// short is a size in at most four columns.
func short(n int64) string {
	f, units := float64(max(n, 0)), "BKMGTPE"
	for f >= 1000 && len(units) > 1 {
		f, units = f/1024, units[1:]
	}
	if f < 9.95 && units[0] != 'B' {
		return fmt.Sprintf("%.1f%c", f, units[0])
	}
	return fmt.Sprintf("%.0f%c", f, units[0])
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
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// shorten makes a path fit: the home directory becomes ~, and directories in the middle
// give way, for the beginning and the end say the most.
func shorten(path, home string, width int) string {
	path = safe.Line(clip(path))
	if home != "" && home != "/" {
		if path == home {
			path = "~"
		} else if rest, ok := strings.CutPrefix(path, home+"/"); ok {
			path = "~/" + rest
		}
	}
	if safe.Width(path) <= width {
		return path
	}
	parts := strings.Split(path, "/")
	keep := 1
	if parts[0] == "" { // of an absolute path
		keep = 2
	}
	for from := keep + 1; from < len(parts); from++ {
		if s := strings.Join(parts[:keep], "/") + "/…/" + strings.Join(parts[from:], "/"); safe.Width(s) <= width {
			return s
		}
	}
	if last := "…/" + parts[len(parts)-1]; safe.Width(last) <= width {
		return last
	}
	return safe.Cut(parts[len(parts)-1], width)
}
