package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mirrorVariable overrides mmdebstrap's own mirrors: one MIRROR argument of mmdebstrap per line (a URI, or a whole
	// "deb …" line of sources.list). A URI alone brings no security updates; name that archive on a second line.
	mirrorVariable = "PATIO_DEBIAN_MIRROR"

	// baseMaxAge is how long a cached tarball is taken: long enough to resume a build, short enough that a rebuild
	// gets the security updates of the day.
	baseMaxAge = 24 * time.Hour

	basePrefix = "debian-"
	// bootstrapNote and partialNote are files in the build folder that name mmdebstrap's temporary folder and the
	// unfinished tarball, for the sweep after a crash.
	bootstrapNote = "bootstrap-dir"
	partialNote   = "partial-tarball"
	partialSuffix = ".partial"
	// bootstrapDirPattern is the name of that folder, under the system's temporary folder: the subordinate ids that
	// write there can't enter a private home.
	bootstrapDirPattern = "patio-image-"
)

// splitMirrors is the value of mirrorVariable as arguments.
func splitMirrors(value string) []string {
	var mirrors []string
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line != "" {
			mirrors = append(mirrors, line)
		}
	}
	return mirrors
}

// base returns the tarball of a minimal Debian with the recipe's packages, from the cache when it has a fresh one.
func (b *build) base(ctx context.Context) (string, error) {
	key, err := b.recipe.baseKey(b.mirrors)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(b.cacheDir, 0o755); err != nil {
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	path := filepath.Join(b.cacheDir, basePrefix+key+".tar")
	if err := b.sweepBases(path); err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		b.log.Debug("debian tarball reused", "path", path)
		b.report(1, "reused from the cache")
		return path, nil
	}
	return path, b.bootstrap(ctx, path)
}

// sweepBases removes cached tarballs that are too old.
func (b *build) sweepBases(keep string) error {
	paths, err := filepath.Glob(filepath.Join(b.cacheDir, basePrefix+"*.tar*"))
	if err != nil {
		return fmt.Errorf("look for cached tarballs: %w", err)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		// A partial one belongs to a crashed build: this one holds the lock of the store, but another store may share
		// the cache, so it is left until it is old.
		if b.now().Sub(info.ModTime()) < baseMaxAge && (path != keep || !b.Force) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old cached tarball: %w", err)
		}
	}
	return nil
}

// bootstrap runs mmdebstrap into a temporary file beside path and renames it.
func (b *build) bootstrap(ctx context.Context, path string) (err error) {
	tmp, err := os.CreateTemp(b.cacheDir, basePrefix+"*.tar"+partialSuffix)
	if err != nil {
		return fmt.Errorf("make Debian tarball: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tmp.Close(), os.Remove(tmp.Name()))
		}
	}()
	if err := b.note(partialNote, tmp.Name()); err != nil {
		return err
	}
	work, err := b.bootstrapDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.removeBootstrapDir(work)) }()

	args := []string{
		"--variant=minbase", "--mode=unshare", "--format=tar", "--verbose",
		"--include=" + strings.Join(b.recipe.Packages, ","),
		b.recipe.Suite, "-",
	}
	progress := bootstrapProgress{report: b.report}
	cmd := command{
		path: b.tools["mmdebstrap"],
		args: append(args, b.mirrors...),
		dir:  "/",
		env: append(os.Environ(), "LC_ALL=C.UTF-8", "TMPDIR="+work,
			fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.recipe.Epoch)),
		stdout: tmp,
		onLine: progress.line,
	}
	if err := cmd.run(ctx); err != nil {
		return fmt.Errorf("make Debian tree: %w", err)
	}
	if err := tmp.Chmod(0o644); err != nil {
		return fmt.Errorf("make Debian tarball: %w", err)
	}
	if err := tmp.Sync(); err != nil {
		return fmt.Errorf("make Debian tarball: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("make Debian tarball: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("make Debian tarball: %w", err)
	}
	return nil
}

// bootstrapDir makes mmdebstrap's temporary folder and notes it in the build folder.
func (b *build) bootstrapDir() (string, error) {
	work, err := os.MkdirTemp(b.tempDir, bootstrapDirPattern)
	if err != nil {
		return "", fmt.Errorf("make temporary folder: %w", err)
	}
	// mmdebstrap makes its folder below as this user and gives it to the subordinate ids, which have to pass through.
	if err := os.Chmod(work, 0o711); err != nil {
		return "", errors.Join(fmt.Errorf("make temporary folder: %w", err), os.Remove(work))
	}
	if err := b.note(bootstrapNote, work); err != nil {
		return "", errors.Join(err, os.Remove(work))
	}
	return work, nil
}

// note writes a path into the build folder for the next build, should this one crash.
func (b *build) note(name, path string) error {
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(path), 0o600); err != nil {
		return fmt.Errorf("note temporary files: %w", err)
	}
	return nil
}

// removeBootstrapDir removes what mmdebstrap may have left, and the folder. As an ordinary user the leftovers belong
// to subordinate ids, and only mmdebstrap's own helper can empty them.
func (b *build) removeBootstrapDir(work string) error {
	entries, err := os.ReadDir(work)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var helperErr error
	if len(entries) > 0 && b.rootless {
		// Its own time: the build's context may be what ended.
		ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		args := []string{"--unshare-helper", "find"}
		for _, entry := range entries {
			args = append(args, filepath.Join(work, entry.Name()))
		}
		args = append(args, "-mount", "-mindepth", "1", "-delete")
		helperErr = command{path: b.tools["mmdebstrap"], args: args, dir: "/"}.run(ctx)
	}
	// The helper fails over entries that are this user's own, and those go now.
	if treeErr := removeTree(work); treeErr != nil {
		return errors.Join(err, helperErr, treeErr)
	}
	return nil
}

// sweepNotes removes what a crashed build noted, after checking that each path is one of the kind.
func (b *build) sweepNotes() error {
	partial, err := b.readNote(partialNote)
	if err != nil {
		return err
	}
	if filepath.Dir(partial) == b.cacheDir && strings.HasPrefix(filepath.Base(partial), basePrefix) && strings.HasSuffix(partial, partialSuffix) {
		if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove leftovers of a crashed build: %w", err)
		}
	}
	work, err := b.readNote(bootstrapNote)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if !filepath.IsAbs(work) || !strings.HasPrefix(filepath.Base(work), bootstrapDirPattern) ||
		unix.Lstat(work, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return nil
	}
	if err := b.removeBootstrapDir(work); err != nil {
		return fmt.Errorf("remove leftovers of a crashed build: %w", err)
	}
	return nil
}

// readNote is empty when there is no such note.
func (b *build) readNote(name string) (string, error) {
	path, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read note of a crashed build: %w", err)
	}
	return string(path), nil
}

// bootstrapPhases are mmdebstrap's announcements and how much of its time has gone by then.
var bootstrapPhases = []struct {
	line string
	at   float64
}{
	{"I: running apt-get update", 0.02},
	{"I: downloading packages with apt", 0.10},
	{"I: extracting archives", 0.30},
	{"I: installing essential packages", 0.40},
	{"I: installing remaining packages inside the chroot", 0.55},
	{"I: cleaning package lists and apt cache", 0.88},
	{"I: creating tarball", 0.90},
	{"I: success", 1},
}

// bootstrapProgress turns mmdebstrap's output into a fraction. Between two announcements each line takes a small part
// of what is left to the next, so that the bar moves and never runs ahead.
type bootstrapProgress struct {
	report   func(fraction float64, detail string)
	phase    int
	fraction float64
	detail   string
}

const lineShare = 0.02

func (p *bootstrapProgress) line(line string) {
	for i := p.phase; i < len(bootstrapPhases); i++ {
		if strings.HasPrefix(line, bootstrapPhases[i].line) {
			p.phase, p.fraction = i+1, bootstrapPhases[i].at
			p.detail = strings.TrimRight(strings.TrimPrefix(line, "I: "), ".")
			p.report(p.fraction, p.detail)
			return
		}
	}
	if p.phase < len(bootstrapPhases) {
		p.fraction += (bootstrapPhases[p.phase].at - p.fraction) * lineShare
	}
	detail := p.detail
	for _, verb := range []string{"Unpacking ", "Setting up "} {
		if rest, ok := strings.CutPrefix(line, verb); ok {
			name, _, _ := strings.Cut(rest, " ")
			detail = strings.ToLower(verb) + name
		}
	}
	p.report(p.fraction, detail)
}
