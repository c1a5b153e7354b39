package image

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// npmFlags keep npm to the one job: no scripts, no reports, no registry addresses in files, and packages for the image
// instead of for the host. Registry, proxies and cache are the user's own configuration.
func (b *build) npmFlags() []string {
	return []string{
		"--ignore-scripts", "--omit=dev", "--include=optional", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress",
		"--omit-lockfile-registry-resolved", "--workspaces=false", "--global=false", "--install-strategy=hoisted",
		"--os=linux", "--cpu=" + npmCPU(b.recipe.Arch), "--libc=glibc",
		// One line per download, for the progress.
		"--loglevel=http",
	}
}

// npmInstall puts Pi, Node and the adapter into the tree, every package checked against the lock file's hashes, and
// returns that lock file.
func (b *build) npmInstall(ctx context.Context) ([]byte, error) {
	dir := filepath.Join(b.root(), filepath.FromSlash(PiDir))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("install npm packages: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(b.recipe.PackageJSON), 0o644); err != nil {
		return nil, fmt.Errorf("install npm packages: %w", err)
	}
	lockPath := filepath.Join(dir, "package-lock.json")
	if b.recipe.PackageLock == "" {
		b.report(-1, "resolving Pi "+b.recipe.Pi)
		args := append([]string{"install", "--package-lock-only"}, b.npmFlags()...)
		if err := b.npm(dir, args, nil).run(ctx); err != nil {
			return nil, fmt.Errorf("resolve Pi %s: %w", b.recipe.Pi, err)
		}
	} else if err := os.WriteFile(lockPath, []byte(b.recipe.PackageLock), 0o644); err != nil {
		return nil, fmt.Errorf("install npm packages: %w", err)
	}
	raw, err := os.ReadFile(lockPath)
	if err != nil {
		return nil, fmt.Errorf("install npm packages: %w", err)
	}
	lock, err := parseLock(raw)
	if err != nil {
		return nil, fmt.Errorf("install npm packages: %w", err)
	}
	if err := lock.check(b.recipe.Pi == ""); err != nil {
		return nil, fmt.Errorf("install npm packages: %w", err)
	}
	if skipped := lock.scripted(b.recipe.ScriptsAllowed); len(skipped) > 0 {
		b.log.Debug("install scripts not run", "packages", strings.Join(skipped, " "))
	}
	if err := b.npmCI(ctx, dir, len(lock.Packages)); err != nil {
		return nil, err
	}
	// Not every package is for this architecture, and npm passes over an optional one that failed.
	node, err := nodePackage(b.recipe.Arch)
	if err != nil {
		return nil, err
	}
	for _, must := range []string{node + "/bin/node", piPackage + "/dist/cli.js", adapterPackage + "/package.json"} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(must))); err != nil {
			return nil, fmt.Errorf("install npm packages: npm reported success, but: %w", err)
		}
	}
	b.lock = lock
	return raw, normalizeModes(dir)
}

func (b *build) npmCI(ctx context.Context, dir string, packages int) error {
	fetched := 0
	onLine := func(line string) {
		// "npm http fetch GET 200 ADDRESS" and "npm http cache ADDRESS": the address stays out of sight.
		if !strings.HasPrefix(line, "npm http ") {
			return
		}
		fetched++
		b.report(min(0.95, float64(fetched)/float64(2*packages)), fmt.Sprintf("%d fetched", fetched))
	}
	if err := b.npm(dir, append([]string{"ci"}, b.npmFlags()...), onLine).run(ctx); err != nil {
		return fmt.Errorf("install npm packages: %w", err)
	}
	if len(b.recipe.ScriptsAllowed) == 0 {
		return nil
	}
	args := append([]string{"rebuild"}, b.recipe.ScriptsAllowed...)
	if err := b.npm(dir, args, nil).run(ctx); err != nil {
		return fmt.Errorf("run allowed install scripts: %w", err)
	}
	return nil
}

func (b *build) npm(dir string, args []string, onLine func(string)) command {
	return command{path: b.tools["npm"], args: args, dir: dir, onLine: onLine}
}

// normalizeModes gives files 0644 or 0755 and folders 0755: npm applies the builder's umask.
func normalizeModes(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			return nil
		case info.IsDir() || info.Mode()&0o111 != 0:
			return os.Chmod(path, 0o755) //nolint:gosec // G122: the tree is this build's own, nobody else can write there
		default:
			return os.Chmod(path, 0o644) //nolint:gosec // G122: the tree is this build's own, nobody else can write there
		}
	})
	if err != nil {
		return fmt.Errorf("set modes below %s: %w", dir, err)
	}
	return nil
}
