package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"patio/engine/api"
)

// How figures look in tables: short, one unit, the same everywhere.

func formatBytes(n int64) string {
	if n < 0 {
		n = 0
	}
	return humanize.IBytes(uint64(n))
}

// formatShare is a use against its limit.
func formatShare(used, limit int64) string {
	if limit <= 0 {
		return formatBytes(used)
	}
	return formatBytes(used) + " / " + formatBytes(limit)
}

func formatTokens(t api.Tokens) string {
	return formatCount(t.Input+t.CacheRead+t.CacheWrite) + " in, " + formatCount(t.Output) + " out"
}

func formatCount(n int) string {
	switch {
	case n < 10_000:
		return strconv.Itoa(n)
	case n < 1_000_000:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + "k"
	default:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + "M"
	}
}

func formatCost(usd float64) string {
	if usd == 0 {
		return "-"
	}
	return fmt.Sprintf("$%.4f", usd)
}

func formatPercent(p float64) string { return strconv.FormatFloat(p, 'f', 1, 64) + "%" }

// formatAge is a duration as its largest unit, two for short ones.
func formatAge(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(math.Floor(d.Hours()/24)))
	}
}

// formatSpan is a measured time.
func formatSpan(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
