// Package figure writes numbers for a person, in few columns.
package figure

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// Size is a number of bytes, in the units and with the digits that lists have.
func Size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Bytes is a number of bytes with one decimal, so that it doesn't change its width much
// while it grows.
func Bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1000<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
