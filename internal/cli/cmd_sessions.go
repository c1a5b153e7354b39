package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"patio/engine/api"
	"patio/sessions"
	"patio/sessions/catalog"
)

func sessionsCommand(a *app) *cobra.Command {
	return parent("sessions", "Pi's session files: list, search, show, check, import, export",
		sessionsListCommand(a), sessionsSearchCommand(a), sessionsShowCommand(a), sessionsCheckCommand(a), sessionsImportCommand(a), sessionsExportCommand(a))
}

func sessionsListCommand(a *app) *cobra.Command {
	var filter catalog.Filter
	var dirs []string
	var since, until string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List Pi's session files, the latest first",
		Long: `ls lists the session files of your own Pi and of patio, the latest first. "patio resume
FILE" goes on with any of them.`,
		Args: arguments(cobra.NoArgs),
	}
	o := addListOutput(cmd)
	cmd.Flags().StringVar(&filter.Project, "project", "", "only conversations in this directory or below it")
	cmd.Flags().StringVar(&filter.Model, "model", "", "only those whose last model has this in its name")
	addPeriod(cmd, &since, &until)
	cmd.Flags().StringSliceVar(&dirs, "dir", nil, "also look in this directory; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if filter.Project != "" {
			var err error
			if filter.Project, err = filepath.Abs(filter.Project); err != nil {
				return err
			}
		}
		if err := setPeriod(&filter, since, until, time.Now()); err != nil {
			return err
		}
		e, err := a.engine()
		if err != nil {
			return err
		}
		list, err := e.SessionFiles(cmd.Context(), dirs...)
		if err != nil {
			return causeOf(cmd.Context(), err)
		}
		var shown []catalog.Summary
		for _, s := range list.Sessions {
			if filter.Match(s) {
				shown = append(shown, s)
			}
		}
		for _, p := range list.Problems {
			a.note("%v", p)
		}
		return fileListing(time.Now()).write(a, o, shown)
	}
	return cmd
}

// fileListing is the table of sessions ls.
func fileListing(now time.Time) listing[catalog.Summary] {
	home, _ := os.UserHomeDir()
	return listing[catalog.Summary]{
		id: func(s catalog.Summary) string { return s.Path },
		columns: []column[catalog.Summary]{
			{title: "ID", least: 8, cell: func(s catalog.Summary) string { return firstNonEmpty(s.ID, "-") }},
			{title: "AGE", right: true, cell: func(s catalog.Summary) string { return formatAge(now.Sub(s.LastActivity)) }},
			{title: "TITLE", least: 16, cell: func(s catalog.Summary) string {
				if s.Broken != "" {
					return "broken: " + s.Broken
				}
				return firstNonEmpty(s.Title, "-")
			}},
			{title: "DIRECTORY", least: 12, keepEnd: true, cell: func(s catalog.Summary) string { return firstNonEmpty(homePath(s.Cwd, home), "-") }},
			{title: "MODEL", least: 12, keepEnd: true, drop: 2, cell: func(s catalog.Summary) string { return firstNonEmpty(s.Model, "-") }},
			{title: "MESSAGES", right: true, drop: 3, cell: func(s catalog.Summary) string {
				if s.Exact {
					return strconv.Itoa(s.Messages)
				}
				return "~" + strconv.Itoa(s.Messages)
			}},
			{title: "SIZE", right: true, drop: 4, cell: func(s catalog.Summary) string { return formatBytes(s.Size) }},
		},
	}
}

// withSessionFile opens the session file that a command names.
func (a *app) withSessionFile(ctx context.Context, ref string, do func(*sessions.File) error) error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	path, err := e.FindSessionFile(ctx, ref)
	if err != nil {
		return err
	}
	f, err := sessions.Open(path)
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "session file: %w", err)
	}
	return errors.Join(do(f), f.Close())
}

func sessionsShowCommand(a *app) *cobra.Command {
	var o sessions.ExportOptions
	var full bool
	cmd := &cobra.Command{
		Use:   "show FILE|ID|SESSION",
		Short: "Print a conversation with its branches",
		Args:  arguments(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&o.Leaf, "leaf", "", "show the branch that ends at this entry")
	cmd.Flags().BoolVar(&full, "full", false, "don't cut long texts")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !full {
			o.Limit = shownBytes
		}
		return a.withSessionFile(cmd.Context(), args[0], func(f *sessions.File) error {
			return f.WriteText(a.display(), o)
		})
	}
	return cmd
}

// shownBytes is what sessions show prints of one text.
const shownBytes = 4 << 10

func sessionsCheckCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE|ID|SESSION",
		Short: "Say what is wrong with a session file, changing nothing",
		Long: `check reads a session file and names its problems, with their lines. It exits with 3 when
one of them forbids a resume, with 0 otherwise.`,
		Args: arguments(cobra.ExactArgs(1)),
	}
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return a.checkFile(cmd.Context(), args[0], o)
	}
	return cmd
}

func (a *app) checkFile(ctx context.Context, ref string, o *output) error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	path, err := e.FindSessionFile(ctx, ref)
	if err != nil {
		return err
	}
	report, err := sessions.Validate(path)
	if err != nil {
		return api.Errorf(api.CodeConfig, "", "session file: %w", err)
	}
	if report.Problems == nil {
		report.Problems = []sessions.Problem{}
	}
	err = o.object(a, report, func(w io.Writer) error {
		if len(report.Problems) == 0 {
			_, err := fmt.Fprintln(w, "nothing is wrong with it")
			return err
		}
		return writeProblems(w, "", report.Problems)
	})
	if err != nil {
		return err
	}
	if p, hopeless := report.Hopeless(); hopeless {
		return api.Errorf(api.CodeConfig, "the file was not changed", "%s can't be resumed: %s", path, p)
	}
	if p, fatal := report.Fatal(); fatal {
		return api.Errorf(api.CodeConfig, "`patio sessions import --copy` makes a mended copy", "%s can't be resumed as it is: %s", path, p)
	}
	return nil
}

// writeProblems writes what is wrong with a file, and what would be done about it.
func writeProblems(w io.Writer, indent string, problems []sessions.Problem) error {
	for _, p := range problems {
		text := p.String()
		if p.Action != "" {
			text += " (" + p.Action + ")"
		}
		if _, err := fmt.Fprintf(w, "%s%-10s %s\n", indent, p.Severity, cleanLine(text)); err != nil {
			return err
		}
	}
	return nil
}

func sessionsExportCommand(a *app) *cobra.Command {
	var o sessions.ExportOptions
	var format, to string
	var force bool
	cmd := &cobra.Command{
		Use:   "export FILE|ID|SESSION",
		Short: "Write a conversation as one HTML page, or as Markdown",
		Long: `export writes a conversation to a file, or to stdout. The HTML page needs nothing else and
can run nothing, whatever the conversation says.`,
		Args: arguments(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&format, "as", "", "html or markdown (default: what the file's name says, else html)")
	cmd.Flags().StringVarP(&to, "output", "o", "", "the file to write (default: stdout)")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file")
	cmd.Flags().StringVar(&o.Leaf, "leaf", "", "export the branch that ends at this entry")
	completeFlag(cmd, "as", "html", "markdown")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if format == "" && (filepath.Ext(to) == ".md" || filepath.Ext(to) == ".markdown") {
			format = "markdown"
		}
		write := (*sessions.File).WriteHTML
		switch format {
		case "", "html":
		case "markdown", "md":
			write = (*sessions.File).WriteMarkdown
		default:
			return api.Errorf(api.CodeUsage, "", "unknown format %q: html or markdown", format)
		}
		return a.withSessionFile(cmd.Context(), args[0], func(f *sessions.File) error {
			if to == "" || to == "-" {
				return write(f, a.display(), o)
			}
			return exportTo(to, force, func(w io.Writer) error { return write(f, w, o) })
		})
	}
	return cmd
}

// exportTo writes a file whole or not at all, and overwrites only when asked.
func exportTo(path string, force bool, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return api.Errorf(api.CodeConflict, "use --force to overwrite it", "%s is there already", path)
	}
	out, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o600))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := write(out); err != nil {
		return errors.Join(fmt.Errorf("export: %w", err), out.Cleanup())
	}
	return out.CloseAtomicallyReplace()
}

func sessionsSearchCommand(a *app) *cobra.Command {
	var o catalog.SearchOptions
	var project, since, until string
	var dirs []string
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find text in all conversations",
		Args:  arguments(cobra.ExactArgs(1)),
	}
	out := addOutput(cmd)
	f := cmd.Flags()
	f.StringVar(&project, "project", "", "only conversations in this directory or below it")
	f.StringVar(&o.Filter.Model, "model", "", "only those whose last model has this in its name")
	addPeriod(cmd, &since, &until)
	f.BoolVarP(&o.Regexp, "regexp", "E", false, "TEXT is a regular expression")
	f.BoolVar(&o.CaseSensitive, "case", false, "upper and lower case differ")
	f.StringSliceVar(&dirs, "dir", nil, "also look in this directory; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if args[0] == "" {
			return api.Errorf(api.CodeUsage, "", "the text to find is empty")
		}
		o.Query = args[0]
		if project != "" {
			var err error
			if o.Filter.Project, err = filepath.Abs(project); err != nil {
				return err
			}
		}
		if err := setPeriod(&o.Filter, since, until, time.Now()); err != nil {
			return err
		}
		return a.searchFiles(cmd.Context(), o, dirs, out)
	}
	return cmd
}

func (a *app) searchFiles(ctx context.Context, o catalog.SearchOptions, dirs []string, out *output) error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	list, err := e.SessionFiles(ctx, dirs...)
	if err != nil {
		return causeOf(ctx, err)
	}
	o.Sessions = list.Sessions
	if o.Sessions == nil {
		o.Sessions = []catalog.Summary{} // none is not all
	}
	matches := []catalog.Match{}
	stats, err := catalog.Search(ctx, o, func(m catalog.Match) error {
		if out.format != outputTable {
			matches = append(matches, m)
			return nil
		}
		_, err := fmt.Fprintf(a.display(), "%s:%d: %s: %s\n", cleanLine(m.Session.Path), m.Line, firstNonEmpty(m.Role, m.Type), cleanLine(m.Snippet))
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return causeOf(ctx, err)
		}
		return api.Errorf(api.CodeUsage, "", "search: %w", err)
	}
	for _, p := range append(list.Problems, stats.Problems...) {
		a.note("%v", p)
	}
	if out.format != outputTable {
		return out.object(a, matches, nil)
	}
	a.note("%d found in %d files", stats.Matches, stats.Files)
	return nil
}
