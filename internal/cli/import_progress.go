package cli

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
)

// importBar is from how many files on a bar is drawn: a few are done before it is seen.
const importBar = 5

// importProgress shows how far an import is: a bar below the lines on a terminal, a
// counter before each line elsewhere.
type importProgress struct {
	total int
	bar   *progressbar.ProgressBar
	// below is set when the lines go to the bar's terminal.
	below bool
}

func (a *app) importProgress(total int) *importProgress {
	p := &importProgress{total: total}
	if f, ok := a.fancy(a.stderr); ok && total >= importBar {
		_, p.below = terminal(a.stdout)
		throttle := 100 * time.Millisecond
		if p.below {
			throttle = 0 // it was taken away for a line
		}
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(f),
			progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(throttle),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionSetDescription("importing"),
			progressbar.OptionSetTheme(progressbar.ThemeASCII),
		)
		_ = p.bar.RenderBlank() // a bar that can't be drawn is no failure
	}
	return p
}

// counter is what stands before the line of the nth file, from 0.
func (p *importProgress) counter(n int) string {
	if p.below || p.total == 1 {
		return ""
	}
	return fmt.Sprintf("[%d/%d] ", n+1, p.total)
}

// line writes a file's line where the bar was; the bar comes back below it.
func (p *importProgress) line(write func() error) error {
	if p.below {
		_ = p.bar.Clear()
	}
	if err := write(); err != nil {
		return err
	}
	p.step()
	return nil
}

// step moves the bar on by one file.
func (p *importProgress) step() {
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

// end takes the bar away.
func (p *importProgress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
