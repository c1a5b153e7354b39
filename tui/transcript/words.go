package transcript

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}

// spanOf is a duration as precise as anyone wants to know.
func spanOf(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// tokensOf is a count of tokens in a few characters.
func tokensOf(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// controls are the sequences that programs colour their output with. They would leave
// their letters behind.
var controls = regexp.MustCompile("\x1b(\\[[0-9:;<=>?]*[ -/]*[@-~]|\\][^\x07\x1b\n]{0,999}(\x07|\x1b\\\\)|[()][0-9A-Za-z])")

// clearOf takes them out of a program's output. What it leaves isn't safe yet.
func clearOf(s string) string {
	if !strings.Contains(s, "\x1b") {
		return s
	}
	return controls.ReplaceAllString(s, "")
}
