package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"time"
)

// Options say what to build and where.
type Options struct {
	// Store gets the image, in its first folder.
	Store *Store
	// CacheDir keeps the Debian tarball, so that an interrupted build resumes.
	CacheDir string
	// Pi is an exact version other than the pinned one. The image is made beside the pinned one; its dependencies are
	// resolved during the build instead of being pinned.
	Pi string
	// Force builds from scratch although the store has the image; without it such a build returns that one.
	Force bool
	// Progress, which may be nil, is called as the build goes, one call at a time.
	Progress func(Progress)
	// Log nil means slog.Default.
	Log *slog.Logger
}

// Progress is how far a build is.
type Progress struct {
	// Step is a short name for people.
	Step string
	// Index counts steps from 1 to Total. Index 0 is the wait for another build to end.
	Index, Total int
	// Fraction is how much of the step is done, 0 to 1, or -1 when that is unknown.
	Fraction float64
	// Detail is what the step does at the moment; may be empty.
	Detail string
}

// build is one build under way, with what tests replace.
type build struct {
	Options
	recipe   recipe
	log      *slog.Logger
	mirrors  []string
	rootless bool
	cacheDir string
	tempDir  string
	// dir is the build folder, emptied at the start and removed at the end.
	dir   string
	tools toolset
	// lock is set by npmInstall.
	lock lockfile

	now       func() time.Time
	find      func(string) (string, error)
	free      func(dir string) (device, bytes uint64, err error)
	checkIDs  func() error
	step      string
	stepIndex int
	stepTotal int
}

// Build makes the image, unless the store has it, and puts it into the store. Two builds into one folder run one after
// the other. When ctx ends, nothing half made stays but the cached Debian tarball. PATIO_DEBIAN_MIRROR in the
// environment replaces the Debian mirrors, and SOURCE_DATE_EPOCH the time of creation in the manifest.
func Build(ctx context.Context, opts Options) (Image, error) {
	b, err := newBuild(opts)
	if err != nil {
		return Image{}, fmt.Errorf("build image: %w", err)
	}
	img, err := b.run(ctx)
	if err != nil {
		return Image{}, fmt.Errorf("build image: %w", err)
	}
	return img, nil
}

func newBuild(opts Options) (*build, error) {
	if opts.Store == nil || len(opts.Store.Dirs) == 0 || opts.CacheDir == "" {
		return nil, errors.New("no store or no cache folder given")
	}
	if opts.Pi == PinnedPi() {
		opts.Pi = ""
	}
	r, err := newRecipe(opts.Pi)
	if err != nil {
		return nil, err
	}
	// Tools run elsewhere, so relative names would mean something else to them.
	dir, err := filepath.Abs(opts.Store.Dirs[0])
	if err != nil {
		return nil, err
	}
	cacheDir, err := filepath.Abs(opts.CacheDir)
	if err != nil {
		return nil, err
	}
	b := &build{
		Options:  opts,
		recipe:   r,
		log:      opts.Log,
		mirrors:  splitMirrors(os.Getenv(mirrorVariable)),
		rootless: os.Geteuid() != 0,
		cacheDir: cacheDir,
		tempDir:  os.TempDir(),
		dir:      filepath.Join(dir, buildDirName),
		now:      time.Now,
		find:     findTool,
		free:     freeSpace,
	}
	if b.log == nil {
		b.log = slog.Default()
	}
	b.checkIDs = func() error {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("look up this user: %w", err)
		}
		return checkSubordinateIDs(u, subuidFile, subgidFile)
	}
	return b, nil
}

// root is the scratch tree that becomes the image.
func (b *build) root() string { return filepath.Join(b.dir, "root") }

func (b *build) storeDir() string { return filepath.Dir(b.dir) }

func (b *build) report(fraction float64, detail string) {
	if b.Progress != nil {
		b.Progress(Progress{Step: b.step, Index: b.stepIndex, Total: b.stepTotal, Fraction: fraction, Detail: detail})
	}
}

func (b *build) run(ctx context.Context) (img Image, err error) {
	inputs, err := b.recipe.inputs()
	if err != nil {
		return Image{}, err
	}
	if img, err := b.stored(inputs); !errors.Is(err, ErrNoImage) {
		return img, err
	}
	if err := b.preflight(); err != nil {
		return Image{}, err
	}
	if err := os.MkdirAll(b.storeDir(), 0o755); err != nil {
		return Image{}, fmt.Errorf("make store: %w", err)
	}
	unlock, err := b.lockStore(ctx)
	if err != nil {
		return Image{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	// Another build may have made it during the wait.
	if img, err := b.stored(inputs); !errors.Is(err, ErrNoImage) {
		return img, err
	}
	if err := b.sweep(); err != nil {
		return Image{}, err
	}
	if err := b.space(); err != nil {
		return Image{}, err
	}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		return Image{}, fmt.Errorf("make build folder: %w", err)
	}
	defer func() { err = errors.Join(err, removeTree(b.dir)) }()
	return b.make(ctx, inputs)
}

// stored is an image that the same inputs made, in any folder of the store. It fails with ErrNoImage when there is none
// and when the caller wants a new one anyway.
func (b *build) stored(inputs string) (Image, error) {
	if b.Force {
		return Image{}, ErrNoImage
	}
	images, err := b.Store.List()
	if err != nil {
		return Image{}, err
	}
	return b.Store.byInputs(images, inputs)
}

// preflight finds everything that can be told to be missing before anything is made.
func (b *build) preflight() error {
	lock, err := parseLock(packageLock)
	if err != nil {
		return err
	}
	if err := lock.check(true); err != nil {
		return err
	}
	if b.tools, err = findTools(b.find, !b.rootless); err != nil {
		return err
	}
	if b.rootless {
		return b.checkIDs()
	}
	return nil
}

func (b *build) space() error {
	return checkSpace(b.free, []need{
		{b.storeDir(), scratchSpace}, {b.cacheDir, tarballSpace}, {b.tempDir, bootstrapSpace},
	})
}

// make goes through the steps and stores the result.
func (b *build) make(ctx context.Context, inputs string) (Image, error) {
	file := filepath.Join(b.dir, "image"+imageSuffix)
	m := Manifest{
		Schema: schema, Arch: b.recipe.Arch, Suite: b.recipe.Suite, Inputs: inputs, Pinned: b.recipe.Pi == "",
	}
	var tarball string
	var entries int
	steps := []struct {
		name string
		run  func() error
	}{
		{"debian", func() (err error) { tarball, err = b.base(ctx); return }},
		{"unpack", func() error {
			if err := os.Mkdir(b.root(), 0o755); err != nil {
				return fmt.Errorf("make scratch tree: %w", err)
			}
			return unpack(ctx, tarball, b.root(), func(done, total int64) {
				b.report(float64(done)/float64(total), "")
			})
		}},
		{"npm", func() error {
			lock, err := b.npmInstall(ctx)
			m.LockSHA256 = sha256Hex(lock)
			return err
		}},
		{"layout", func() (err error) {
			// Before the prune, which takes dpkg's spare files.
			if m.Packages, err = readDpkg(filepath.Join(b.root(), "var/lib/dpkg/status")); err != nil {
				return err
			}
			if err := b.recipe.prune(b.root()); err != nil {
				return err
			}
			return b.recipe.layout(b.root())
		}},
		{"warm", func() error {
			if err := b.enterable(ctx); err != nil {
				return err
			}
			return b.warm(ctx)
		}},
		{"providers", func() (err error) { m.Providers, err = b.inventory(ctx); return }},
		{"tools", func() (err error) { m.Tools, err = b.probeTools(ctx); return }},
		{"pack", func() (err error) {
			if entries, err = audit(ctx, b.root()); err != nil {
				return err
			}
			return b.pack(ctx, file, entries)
		}},
		{"digest", func() (err error) {
			m.Digest, m.Size, err = fileDigest(ctx, file, func(done, total int64) {
				b.report(float64(done)/float64(total), "")
			})
			return
		}},
	}
	b.stepTotal = len(steps)
	for i, step := range steps {
		b.step, b.stepIndex = step.name, i+1
		if ctx.Err() != nil {
			return Image{}, context.Cause(ctx)
		}
		b.report(0, "")
		started := b.now()
		if err := step.run(); err != nil {
			return Image{}, err
		}
		b.log.Debug("image build step done", "step", step.name, "took", b.now().Sub(started))
		b.report(1, "")
	}
	m.Versions = b.versions(m.Packages)
	created, err := b.created()
	if err != nil {
		return Image{}, err
	}
	m.Created = created
	return b.commit(m, file)
}

// versions are those of the main parts, for people.
func (b *build) versions(packages []DebianPackage) map[string]string {
	names := map[string]string{
		"bash": "bash", "git": "git", "ripgrep": "rg", "fd-find": "fd", "python3": "python3", "curl": "curl",
		"openssh-client": "ssh", "ca-certificates": "ca-certificates", "procps": "procps", "libc6": "libc",
	}
	versions := map[string]string{
		"pi": b.lock.version(piPackage), "pi-ai": b.lock.version(piAIPackage), adapterPackage: b.lock.version(adapterPackage),
	}
	if node, err := nodePackage(b.recipe.Arch); err == nil {
		versions["node"] = b.lock.version(node)
	}
	for _, p := range packages {
		if name, ok := names[p.Name]; ok {
			versions[name] = p.Version
		}
	}
	return versions
}
