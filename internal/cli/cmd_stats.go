package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
)

// refreshInterval is how often stats and top look again; supervisors sample about as
// often.
const refreshInterval = 2 * time.Second

func statsCommand(a *app) *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "stats [ID…]",
		Short: "What sessions use, against their limits",
		Long: `stats shows what running sessions use: a table that refreshes on a terminal, a row for each
session and sample elsewhere, with -o json one object a line.`,
		ValidArgsFunction: a.completeSessions(true, live),
	}
	o := addListOutput(cmd)
	cmd.Flags().BoolVar(&once, "no-stream", false, "one sample, then end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		e, err := a.engine()
		if err != nil {
			return err
		}
		named, err := selectSessions(cmd.Context(), e, args, false, live)
		if err != nil {
			return err
		}
		w := &watch{app: a, out: o, once: once, unbounded: len(args) == 0}
		return w.run(cmd.Context(), func(ctx context.Context) (frame, error) {
			rows, err := sampleSessions(ctx, e, named)
			return statsFrame(o, rows), err
		})
	}
	return cmd
}

// sample is one session's use as stats -o json gives it.
type sample struct {
	Session  string       `json:"session"`
	Name     string       `json:"name,omitempty"`
	Phase    api.Phase    `json:"phase"`
	Activity api.Activity `json:"activity,omitempty"`
	Usage    *api.Usage   `json:"usage,omitempty"`
}

// sampleSessions asks for the sessions that live: the named ones, or all.
func sampleSessions(ctx context.Context, e *engine.Engine, named []api.Session) ([]sample, error) {
	all, err := e.List(ctx)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, s := range named {
		wanted[s.ID] = true
	}
	var rows []sample
	for _, s := range all {
		if live(s) && (len(named) == 0 || wanted[s.ID]) {
			rows = append(rows, sample{Session: s.ID, Name: s.Name, Phase: s.Phase, Activity: s.Activity, Usage: s.Usage})
		}
	}
	return rows, nil
}

func statsFrame(o *output, rows []sample) frame {
	return frame{
		rows:  len(rows),
		table: func(w io.Writer, width int, headers bool) error { return statsListing.table(w, width, headers, rows) },
		objects: func(encode func(any) error) error {
			for _, r := range rows {
				if err := encode(r); err != nil {
					return err
				}
			}
			return nil
		},
		whole: func(a *app) error { return statsListing.write(a, o, rows) },
	}
}

var statsListing = listing[sample]{
	id: func(s sample) string { return s.Session },
	columns: []column[sample]{
		{title: "ID", cell: func(s sample) string { return s.Session }},
		{title: "NAME", least: 4, drop: 1, cell: func(s sample) string { return firstNonEmpty(s.Name, "-") }},
		{title: "STATE", cell: func(s sample) string { return stateOf(api.Session{Phase: s.Phase, Activity: s.Activity}) }},
		{title: "CPU", right: true, cell: measured(func(u *api.Usage) string { return formatPercent(u.CPUPercent) })},
		{title: "CPU TIME", right: true, drop: 3, cell: measured(func(u *api.Usage) string { return strconv.FormatFloat(u.CPUSeconds, 'f', 1, 64) + " s" })},
		{title: "MEMORY / LIMIT", right: true, cell: measured(func(u *api.Usage) string { return formatShare(u.Memory, u.MemoryLimit) })},
		{title: "PIDS", right: true, cell: measured(func(u *api.Usage) string {
			if u.PidsLimit > 0 {
				return fmt.Sprintf("%d / %d", u.Pids, u.PidsLimit)
			}
			return strconv.FormatInt(u.Pids, 10)
		})},
		{title: "NET IN / OUT", right: true, drop: 2, cell: measured(func(u *api.Usage) string {
			return formatBytes(int64(u.NetworkIn)) + " / " + formatBytes(int64(u.NetworkOut))
		})},
	},
}

func measured(f func(*api.Usage) string) func(sample) string {
	return func(s sample) string {
		if s.Usage == nil {
			return "-"
		}
		return f(s.Usage)
	}
}

func topCommand(a *app) *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:               "top ID",
		Short:             "The processes inside a session's sandbox",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSessions(false, live),
	}
	o := addListOutput(cmd)
	cmd.Flags().BoolVar(&once, "no-stream", false, "show them once, then end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		e, s, err := a.running(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		client := e.Client(s.ID, clientCLI)
		defer client.Close()
		// Only a terminal refreshes: a list of processes has no rows to go on with.
		_, refreshes := a.fancy(a.stdout)
		w := &watch{app: a, out: o, once: once || !refreshes || o.format != outputTable}
		return w.run(cmd.Context(), func(ctx context.Context) (frame, error) {
			ps, err := client.Processes(ctx)
			return frame{
				rows:  len(ps),
				table: func(w io.Writer, width int, headers bool) error { return processListing.table(w, width, headers, ps) },
				whole: func(a *app) error { return processListing.write(a, o, ps) },
			}, err
		})
	}
	return cmd
}

var processListing = listing[api.Process]{
	id: func(p api.Process) string { return strconv.Itoa(p.PID) },
	columns: []column[api.Process]{
		{title: "PID", right: true, cell: func(p api.Process) string { return strconv.Itoa(p.PID) }},
		{title: "PPID", right: true, cell: func(p api.Process) string { return strconv.Itoa(p.PPID) }},
		{title: "UID", right: true, cell: func(p api.Process) string { return strconv.Itoa(p.UID) }},
		{title: "CPU", right: true, cell: func(p api.Process) string { return formatPercent(p.CPUPercent) }},
		{title: "RSS", right: true, cell: func(p api.Process) string { return formatBytes(p.RSS) }},
		{title: "AGE", right: true, cell: func(p api.Process) string { return formatAge(time.Duration(p.Elapsed) * time.Second) }},
		{title: "COMMAND", least: 12, cell: func(p api.Process) string { return p.Command }},
	},
}

// frame is one look at something that changes.
type frame struct {
	rows    int
	table   func(w io.Writer, width int, headers bool) error
	objects func(encode func(any) error) error
	// whole writes it once, in the format that was asked for.
	whole func(*app) error
}

// watch shows frames until the context ends or, unless it is unbounded, nothing is left
// to show.
type watch struct {
	app       *app
	out       *output
	once      bool
	unbounded bool
}

func (w *watch) run(ctx context.Context, look func(context.Context) (frame, error)) error {
	f, err := look(ctx)
	if err != nil {
		return causeOf(ctx, err)
	}
	if w.once {
		return f.whole(w.app)
	}
	_, fancy := w.app.fancy(w.app.stdout)
	refresh := fancy && w.out.format == outputTable && !w.out.quiet
	tick := time.NewTicker(refreshInterval)
	defer tick.Stop()
	for first := true; ; first = false {
		if f.rows == 0 && !w.unbounded {
			return nil
		}
		if err := w.show(f, refresh, first); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if f, err = look(ctx); err != nil {
			return causeOf(ctx, err)
		}
	}
}

func (w *watch) show(f frame, refresh, first bool) error {
	switch {
	case refresh:
		var b strings.Builder
		if err := f.table(&b, w.app.width(), !w.out.noHeaders); err != nil {
			return err
		}
		// Home, each line cleared to its end, and what is below: no flicker. The table's
		// cells are sanitized, these sequences are ours.
		text := "\x1b[H" + strings.ReplaceAll(clean(b.String()), "\n", "\x1b[K\n") + "\x1b[J"
		if first {
			text = "\x1b[2J" + text
		}
		_, err := io.WriteString(w.app.stdout, text)
		return err
	case w.out.format == outputJSON && f.objects != nil:
		return f.objects(json.NewEncoder(w.app.data()).Encode)
	case w.out.format == outputTable && !w.out.quiet:
		return f.table(w.app.display(), w.app.width(), first && !w.out.noHeaders)
	}
	return f.whole(w.app)
}
