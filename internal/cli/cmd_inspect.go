package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

func inspectCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "inspect ID",
		Short:             "Everything about one session",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions(false, everySession),
	}
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		_, s, err := a.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return o.object(a, s, func(w io.Writer) error { return writeSession(w, s, time.Now()) })
	}
	return cmd
}

// writeSession writes all that is known of a session.
func writeSession(w io.Writer, s api.Session, now time.Time) error {
	pairs := [][2]string{
		{"Session", s.ID},
		{"Name", s.Name},
		{"State", stateOf(s)},
		{"Workspace", s.Workspace},
		{"Model", s.Model.String()},
		{"Model's name", s.Model.Name},
		{"Endpoint", s.Model.BaseURL},
		{"Thinking", s.Model.Thinking},
		{"Created", stamp(s.Created, now)},
	}
	if s.Ready != nil {
		pairs = append(pairs, [2]string{"Ready after", formatSpan(s.Ready.Sub(s.Created))})
	}
	if s.Ended != nil {
		pairs = append(pairs, [2]string{"Ended", stamp(*s.Ended, now)})
	}
	pairs = append(pairs,
		[2]string{"Started by", s.StartedBy},
		[2]string{"Session file", s.SessionFile},
		[2]string{"Turns", strconv.Itoa(s.Turns)},
		[2]string{"Tokens", formatTokens(s.Tokens) + contextShare(s)},
		[2]string{"Cost", formatCost(s.CostUSD)},
		[2]string{"Refused", fmt.Sprintf("%d connections or lookups", s.Denied)},
	)
	if u := s.Usage; u != nil {
		pairs = append(pairs,
			[2]string{"CPU", formatPercent(u.CPUPercent) + " now, " + formatSpan(time.Duration(u.CPUSeconds*float64(time.Second))) + " in all"},
			[2]string{"Memory", formatShare(u.Memory, u.MemoryLimit)},
			[2]string{"Processes", strconv.FormatInt(u.Pids, 10)},
			[2]string{"Network", formatBytes(int64(u.NetworkIn)) + " in, " + formatBytes(int64(u.NetworkOut)) + " out"},
			[2]string{"Measured by", u.Source},
		)
	}
	if s.SupervisorPID != 0 {
		pairs = append(pairs, [2]string{"Supervisor", "process " + strconv.Itoa(s.SupervisorPID)})
	}
	pairs = append(pairs, [2]string{"Journal", fmt.Sprintf("%d records", s.Seq)})
	if err := fields(w, pairs...); err != nil {
		return err
	}
	if err := writeEnd(w, s); err != nil {
		return err
	}
	for _, q := range s.Questions {
		if err := section(w, "Question ("+q.Method+", "+q.ID+")", questionLines(q)...); err != nil {
			return err
		}
	}
	return writePlan(w, s.Plan)
}

func contextShare(s api.Session) string {
	if s.Tokens.Context == 0 || s.Model.ContextWindow == 0 {
		return ""
	}
	return fmt.Sprintf(", context %s of %s", formatCount(s.Tokens.Context), formatCount(s.Model.ContextWindow))
}

func stamp(t, now time.Time) string {
	return t.Local().Format("2006-01-02 15:04:05") + " (" + formatAge(now.Sub(t)) + " ago)"
}

func writeEnd(w io.Writer, s api.Session) error {
	var lines []string
	if s.Error != nil {
		lines = append(lines, s.Error.Message)
		if s.Error.Hint != "" {
			lines = append(lines, "what to do: "+s.Error.Hint)
		}
	}
	if s.End != nil {
		if s.Error == nil {
			lines = append(lines, s.End.Reason)
		}
		status := "exit " + strconv.Itoa(s.End.ExitCode)
		if s.End.Signal != "" {
			status += ", signal " + s.End.Signal
		}
		lines = append(lines, status)
		if s.End.Stderr != "" {
			lines = append(lines, "stderr:")
			for line := range strings.Lines(s.End.Stderr) {
				lines = append(lines, "  "+strings.TrimRight(line, "\n"))
			}
		}
	}
	return section(w, "End", lines...)
}

func questionLines(q api.Question) []string {
	lines := []string{q.Title}
	if q.Message != "" {
		lines = append(lines, q.Message)
	}
	if len(q.Options) > 0 {
		lines = append(lines, "options: "+strings.Join(q.Options, " | "))
	}
	return lines
}
