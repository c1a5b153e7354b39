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

// importFiles imports the files and tells of each as it is done: thousands take a while.
// What is wrong with those that are refused comes last, or it would scroll away.
func (a *app) importFiles(ctx context.Context, e *engine.Engine, paths []string, r engine.ImportRequest, o *output) error {
	progress := a.importProgress(len(paths))
	results, refused := []engine.Imported{}, []engine.Imported{}
	counts := map[engine.ImportStatus]int{}
	told := 0
	err := e.ImportMany(ctx, paths, r, func(n int, done engine.Imported) error {
		counts[done.Status]++
		told++
		if done.Status == engine.ImportRefused {
			refused = append(refused, done)
		}
		if o.format != outputTable {
			results = append(results, done)
			progress.step()
			return nil
		}
		return progress.line(func() error { return a.writeImported(progress.counter(n), done, len(paths) == 1) })
	})
	progress.end()
	if o.format != outputTable {
		// What was done is told of even when it was not all.
		if encodeErr := o.object(a, results, nil); encodeErr != nil && err == nil {
			err = encodeErr
		}
	} else if len(paths) > 1 {
		if writeErr := a.writeRefused(refused); writeErr != nil && err == nil {
			err = writeErr
		}
	}
	if o.format == outputTable && (len(paths) != 1 || err != nil) {
		a.note("%s", importSummary(len(paths), told, counts))
	}
	switch {
	case err != nil:
		return causeOf(ctx, err)
	case len(refused) == 1 && len(paths) == 1:
		return refused[0].Error
	case len(refused) > 0:
		return api.Errorf(api.CodeConfig, "`patio sessions check FILE` says what is wrong with one", "%d of %d files were refused", len(refused), len(paths))
	}
	return nil
}

// importSummary says what became of how many files; zeros are left out but for the first.
func importSummary(total, told int, counts map[engine.ImportStatus]int) string {
	text := fmt.Sprintf("%d files", total)
	if total == 1 {
		text = "1 file"
	}
	if told < total {
		text = fmt.Sprintf("%d of %s done", told, text)
	}
	first := engine.ImportDone
	if counts[engine.ImportWould] > 0 {
		first = engine.ImportWould
	}
	text += fmt.Sprintf(": %d %s", counts[first], first)
	if n := counts[engine.ImportKnown]; n > 0 {
		text += fmt.Sprintf(", %d known before", n)
	}
	if n := counts[engine.ImportRefused]; n > 0 {
		text += fmt.Sprintf(", %d refused", n)
	}
	if told < total {
		text += "; the same command goes on with the others"
	}
	return text
}

func (a *app) writeRefused(refused []engine.Imported) error {
	if len(refused) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.display(), "\nRefused:"); err != nil {
		return err
	}
	for _, done := range refused {
		if err := a.writeImported("", done, true); err != nil {
			return err
		}
	}
	return nil
}

// writeImported writes one line for a file, and one for each note. What is wrong with one
// that was refused comes with details.
func (a *app) writeImported(counter string, done engine.Imported, details bool) error {
	w := a.display()
	line := fmt.Sprintf("%s%s: %s", counter, cleanLine(done.Path), done.Status)
	if done.Session != "" {
		line += " " + done.Session
	}
	if _, err := fmt.Fprintln(w, line); err != nil {
		return err
	}
	if done.Status == engine.ImportRefused && !details {
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
