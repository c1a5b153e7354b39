package image

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBuildReal makes a whole image with the real tools and the network's mirrors, so it runs only when asked:
// PATIO_TEST_IMAGE_BUILD=1. PATIO_TEST_IMAGE_DIR keeps the image there, PATIO_TEST_IMAGE_CACHE the Debian tarball.
func TestBuildReal(t *testing.T) {
	if os.Getenv("PATIO_TEST_IMAGE_BUILD") != "1" {
		t.Skip("PATIO_TEST_IMAGE_BUILD is not 1: a real build takes minutes and downloads")
	}
	dir, cache := os.Getenv("PATIO_TEST_IMAGE_DIR"), os.Getenv("PATIO_TEST_IMAGE_CACHE")
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "images")
	}
	if cache == "" {
		cache = filepath.Join(t.TempDir(), "cache")
	}
	store := &Store{Dirs: []string{dir}}
	last := ""
	started := time.Now()
	img, err := Build(t.Context(), Options{
		Store: store, CacheDir: cache, Force: os.Getenv("PATIO_TEST_IMAGE_FORCE") == "1", Pi: os.Getenv("PATIO_TEST_IMAGE_PI"),
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Progress: func(p Progress) {
			require.GreaterOrEqual(t, p.Fraction, -1.0)
			require.LessOrEqual(t, p.Fraction, 1.0)
			if p.Step != last {
				last = p.Step
				t.Logf("%6.1fs %d/%d %s %s", time.Since(started).Seconds(), p.Index, p.Total, p.Step, p.Detail)
			}
		},
	})
	require.NoError(t, err)
	t.Logf("%6.1fs %s, %d bytes", time.Since(started).Seconds(), img.Path, img.Manifest.Size)

	require.NoError(t, store.VerifyDigest(t.Context(), img, nil))
	require.NoFileExists(t, filepath.Join(dir, buildDirName))
	require.Equal(t, "openrouter.ai", strings.Join(img.Manifest.Providers["openrouter"].Hosts(), " "))
	require.Equal(t, []string{"platform.claude.com"}, img.Manifest.Providers["anthropic"].OAuth.TokenHosts)
	if os.Getenv("PATIO_TEST_IMAGE_PI") == "" {
		require.Equal(t, PinnedPi(), img.Manifest.Versions["pi"])
		again, err := Build(context.Background(), Options{Store: store, CacheDir: cache})
		require.NoError(t, err)
		require.Equal(t, img.Path, again.Path)
		current, err := store.Resolve("")
		require.NoError(t, err)
		require.Equal(t, img.Manifest.Digest, current.Manifest.Digest)
	}
}

// TestBuildRealInterrupted stops a real mmdebstrap, which has processes of other ids and a large tree by then.
func TestBuildRealInterrupted(t *testing.T) {
	if os.Getenv("PATIO_TEST_IMAGE_BUILD") != "1" {
		t.Skip("PATIO_TEST_IMAGE_BUILD is not 1: a real build takes minutes and downloads")
	}
	s := newSite(t)
	// The subordinate ids of an ordinary user must be able to pass.
	for dir := s.temp; dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	for _, at := range []string{"downloading packages", "extracting archives", "unpacking git"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var asked time.Time
		b, err := newBuild(Options{Store: s.images(), CacheDir: s.cache, Progress: func(p Progress) {
			if strings.HasPrefix(p.Detail, at) && asked.IsZero() {
				asked = time.Now()
				cancel()
			}
		}})
		require.NoError(t, err)
		b.tempDir = s.temp
		_, err = b.run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		t.Logf("%s: stopped in %s: %v", at, time.Since(asked), err)
		require.Less(t, time.Since(asked), stopGrace)
		require.Empty(t, s.leftovers(t))
		entries, err := os.ReadDir(s.cache)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}
