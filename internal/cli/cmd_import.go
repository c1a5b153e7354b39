package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/sessions/catalog"
)

func sessionsImportCommand(a *app) *cobra.Command {
	var r engine.ImportRequest
	var project string
	var all bool
	cmd := &cobra.Command{
		Use:   "import [FILE|ID|DIRECTORY]...",
		Short: "Make session files of Pi's sessions of patio's, to be resumed",
		Long: `import makes each session file an ended session: "patio ls -a" lists it, "patio resume"
goes on with it in a sandbox. The file stays where it is and as it is; --copy goes on in a
mended copy instead. Nothing is started or mounted. A file that can't be resumed is
refused with its faults, and the others are imported all the same; import then exits
with 3. A file that is imported again stays one session.`,
		Example: `  patio sessions import ~/.pi/agent/sessions/--work--/old.jsonl
  patio sessions import --project . --copy
  patio sessions import --all --moved /home/me/src=/home/me/projects`,
	}
	o := addOutput(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.Copy, "copy", false, "go on in a mended copy in patio's own directory")
	f.StringVar(&r.Cwd, "cwd", "", "the directory to go on in; makes a copy")
	f.StringToStringVar(&r.Moved, "moved", nil, "OLD=NEW: directories that have moved, with all below them; makes copies; may be repeated")
	f.StringVar(&project, "project", "", "import all conversations in this directory or below it")
	f.BoolVar(&all, "all", false, "import every session file that `patio sessions ls` lists")
	f.BoolVar(&r.DryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if len(args) == 0 && project == "" && !all {
			return api.Errorf(api.CodeUsage, "name files, or use --project DIR or --all", "nothing to import")
		}
		for from, to := range r.Moved {
			if !filepath.IsAbs(from) || !filepath.IsAbs(to) {
				return api.Errorf(api.CodeUsage, "write --moved /OLD=/NEW", "--moved %s=%s: both paths must be absolute", from, to)
			}
		}
		e, err := a.engine()
		if err != nil {
			return err
		}
		paths, err := a.importPaths(cmd.Context(), e, args, project, all)
		if err != nil {
			return causeOf(cmd.Context(), err)
		}
		return a.importFiles(cmd.Context(), e, paths, r, o)
	}
	return cmd
}

// importPaths are the files that the arguments mean, each once.
func (a *app) importPaths(ctx context.Context, e *engine.Engine, refs []string, project string, all bool) ([]string, error) {
	var paths []string
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	listed := func(keep func(catalog.Summary) bool, dirs ...string) error {
		list, err := e.SessionFiles(ctx, dirs...)
		if err != nil {
			return err
		}
		for _, p := range list.Problems {
			a.note("%v", p)
		}
		for _, s := range list.Sessions {
			if keep(s) {
				add(s.Path)
			}
		}
		return nil
	}
	for _, ref := range refs {
		if fi, err := os.Stat(ref); err == nil && fi.IsDir() {
			dir, err := filepath.Abs(ref)
			if err == nil {
				dir, err = filepath.EvalSymlinks(dir)
			}
			if err != nil {
				return nil, err
			}
			if err := listed(func(s catalog.Summary) bool { return below(s.Path, dir) }, dir); err != nil {
				return nil, err
			}
			continue
		}
		path, err := e.FindSessionFile(ctx, ref)
		if err != nil {
			return nil, err
		}
		add(path)
	}
	if project != "" {
		dir, err := filepath.Abs(project)
		if err != nil {
			return nil, err
		}
		if err := listed(catalog.Filter{Project: dir}.Match); err != nil {
			return nil, err
		}
	}
	if all {
		if err := listed(catalog.Filter{}.Match); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// below says whether a path is a directory or lies in it.
func below(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// importFiles imports one file after the other and tells of each at once: a scan of
// thousands takes a while.
func (a *app) importFiles(ctx context.Context, e *engine.Engine, paths []string, r engine.ImportRequest, o *output) error {
	results := []engine.Imported{}
	counts := map[engine.ImportStatus]int{}
	var refusal *api.Error
	for n, path := range paths {
		if ctx.Err() != nil {
			return causeOf(ctx, ctx.Err())
		}
		done, err := e.Import(ctx, path, r)
		if err != nil {
			return causeOf(ctx, err)
		}
		counts[done.Status]++
		if done.Error != nil {
			refusal = done.Error
		}
		if o.format != outputTable {
			results = append(results, done)
			continue
		}
		counter := ""
		if len(paths) > 1 {
			counter = fmt.Sprintf("[%d/%d] ", n+1, len(paths))
		}
		if err := a.writeImported(counter, done); err != nil {
			return err
		}
	}
	if o.format != outputTable {
		if err := o.object(a, results, nil); err != nil {
			return err
		}
	}
	switch refused := counts[engine.ImportRefused]; {
	case refused == 1 && len(paths) == 1:
		return refusal
	case refused > 0:
		return api.Errorf(api.CodeConfig, "`patio sessions check FILE` says what is wrong with one", "%d of %d files were refused", refused, len(paths))
	case o.format == outputTable && len(paths) != 1:
		a.note("%d files: %d imported, %d known before", len(paths), counts[engine.ImportDone], counts[engine.ImportKnown])
	}
	return nil
}

func (a *app) writeImported(counter string, done engine.Imported) error {
	w := a.display()
	if _, err := fmt.Fprintf(w, "%s%s: %s %s\n", counter, cleanLine(done.Path), done.Status, done.Session); err != nil {
		return err
	}
	if done.Status == engine.ImportKnown {
		return nil
	}
	if err := writeProblems(w, "  ", done.Problems); err != nil {
		return err
	}
	notes := done.Notes
	if done.Error != nil {
		notes = append(notes, done.Error.Message)
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(w, "  %s\n", cleanLine(note)); err != nil {
			return err
		}
	}
	return nil
}
