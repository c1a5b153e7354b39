package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

// completeFlag offers fixed values for a flag; "value\thelp" explains one.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // the flag isn't there: a slip in this package
	}
}

// completeSessions offers the ids of sessions, for the first argument or for each.
func (a *app) completeSessions(each bool, want func(api.Session) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !each {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		e, err := a.engine()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		all, err := e.List(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, s := range all {
			if want(s) {
				ids = append(ids, s.ID+"\t"+cleanLine(strings.TrimSpace(s.Name+" "+string(s.Phase)+" "+s.Workspace)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func live(s api.Session) bool       { return !s.Phase.Final() }
func ended(s api.Session) bool      { return s.Phase.Final() }
func everySession(api.Session) bool { return true }
