package cli

import (
	"time"

	"github.com/spf13/cobra"

	"patio/engine/api"
	"patio/sessions/catalog"
)

// addPeriod adds the flags that narrow session files down by date.
func addPeriod(cmd *cobra.Command, since, until *string) {
	cmd.Flags().StringVar(since, "since", "", "only those with something said since then: a date such as 2026-01-31, or a time ago such as 24h")
	cmd.Flags().StringVar(until, "until", "", "only those begun until then, a date's whole day included")
}

func setPeriod(filter *catalog.Filter, since, until string, now time.Time) error {
	var err error
	if since != "" {
		if filter.Since, _, err = parseWhen("since", since, now); err != nil {
			return err
		}
	}
	if until != "" {
		var day bool
		if filter.Until, day, err = parseWhen("until", until, now); err != nil {
			return err
		}
		if day {
			filter.Until = filter.Until.AddDate(0, 0, 1).Add(-time.Nanosecond)
		}
	}
	return nil
}

// parseWhen reads a date of the local calendar, an instant, or a time ago.
func parseWhen(flag, value string, now time.Time) (when time.Time, day bool, err error) {
	if t, err := time.ParseInLocation(time.DateOnly, value, now.Location()); err == nil {
		return t, true, nil
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t, false, nil
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return now.Add(-d), false, nil
	}
	return time.Time{}, false, api.Errorf(api.CodeUsage, "write 2026-01-31, 2026-01-31T10:00:00Z or 24h", "--%s %q is no date and no time ago", flag, value)
}
