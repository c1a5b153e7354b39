package cli

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

func lsCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"ps", "list"},
		Short: "List sessions",
		Args:  arguments(cobra.NoArgs),
	}
	o := addListOutput(cmd)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also those that have ended")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		e, err := a.engine()
		if err != nil {
			return err
		}
		sessions, err := e.List(cmd.Context())
		if err != nil {
			return err
		}
		shown := make([]api.Session, 0, len(sessions))
		for _, s := range sessions {
			if all || live(s) {
				shown = append(shown, s)
			}
		}
		if err := sessionListing(time.Now()).write(a, o, shown); err != nil {
			return err
		}
		if hidden := len(sessions) - len(shown); len(shown) == 0 && hidden > 0 && o.format == outputTable && !o.quiet {
			a.note("%d ended; patio ls -a shows them", hidden)
		}
		return nil
	}
	return cmd
}

// sessionListing is the table of ls.
func sessionListing(now time.Time) listing[api.Session] {
	home, _ := os.UserHomeDir()
	usage := func(f func(*api.Usage) string) func(api.Session) string {
		return func(s api.Session) string {
			if s.Usage == nil {
				return "-"
			}
			return f(s.Usage)
		}
	}
	return listing[api.Session]{
		id: func(s api.Session) string { return s.ID },
		columns: []column[api.Session]{
			{title: "ID", cell: func(s api.Session) string { return s.ID }},
			{title: "STATE", cell: stateOf},
			{title: "NAME", least: 8, drop: 1, cell: func(s api.Session) string { return firstNonEmpty(s.Name, "-") }},
			{title: "WORKSPACE", least: 16, keepEnd: true, cell: func(s api.Session) string { return homePath(s.Workspace, home) }},
			{title: "MODEL", least: 12, drop: 2, keepEnd: true, cell: func(s api.Session) string { return firstNonEmpty(s.Model.String(), "-") }},
			{title: "TURNS", right: true, drop: 5, cell: func(s api.Session) string { return strconv.Itoa(s.Turns) }},
			{title: "TOKENS", right: true, drop: 6, cell: func(s api.Session) string {
				return formatCount(s.Tokens.Input + s.Tokens.CacheRead + s.Tokens.CacheWrite + s.Tokens.Output)
			}},
			{title: "COST", right: true, drop: 4, cell: func(s api.Session) string { return formatCost(s.CostUSD) }},
			{title: "CPU", right: true, drop: 8, cell: usage(func(u *api.Usage) string { return formatPercent(u.CPUPercent) })},
			{title: "MEM", right: true, drop: 7, cell: usage(func(u *api.Usage) string { return formatBytes(u.Memory) })},
			{title: "DENIED", right: true, drop: 3, cell: func(s api.Session) string { return strconv.Itoa(s.Denied) }},
			{title: "AGE", cell: func(s api.Session) string { return ageOf(s, now) }},
		},
	}
}
