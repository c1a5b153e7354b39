package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

// recordTypes are the values of --type.
var recordTypes = []string{api.RecordRPC, api.RecordEgress, api.RecordStats, api.RecordState, api.RecordStderr, api.RecordExec}

type logsFlags struct {
	follow bool
	since  uint64
	types  []string
	json   bool
	deltas bool
}

func logsCommand(a *app) *cobra.Command {
	l := &logsFlags{}
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Show a session's journal, running or ended",
		Long: `logs shows a session's journal: every line of Pi's RPC in both directions, every decision
on a connection, every change of state. Token deltas are left out unless --deltas is given,
usage figures unless --type stats is.

With --json the records come as they are in the journal, one a line.`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions(false, everySession),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logs(cmd.Context(), l, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&l.follow, "follow", "f", false, "wait for more until the session ends")
	f.Uint64Var(&l.since, "since", 0, "records after this sequence number")
	f.StringSliceVar(&l.types, "type", nil, "only these types: "+strings.Join(recordTypes, ", "))
	f.BoolVar(&l.json, "json", false, "records as they are, one a line")
	f.BoolVar(&l.deltas, "deltas", false, "also token deltas and other updates of something unfinished")
	completeFlag(cmd, "type", recordTypes...)
	return cmd
}

func (a *app) logs(ctx context.Context, l *logsFlags, ref string) error {
	for _, t := range l.types {
		if !slices.Contains(recordTypes, t) {
			return usageError("", "unknown record type %q: one of %s", t, strings.Join(recordTypes, ", "))
		}
	}
	e, s, err := a.find(ctx, ref)
	if err != nil {
		return err
	}
	client := e.Client(s.ID, clientCLI)
	defer client.Close()
	r := &records{engine: e, client: client, id: s.ID, since: l.since, types: l.types}
	print := a.writeRecord
	if !l.json {
		lines := &logLines{w: a.display(), width: a.width(), deltas: l.deltas, types: l.types, zone: time.Local}
		print = decoded(lines.show)
	}
	if l.follow && live(s) {
		return r.follow(ctx, print)
	}
	return r.once(ctx, live(s), print)
}
