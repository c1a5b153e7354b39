package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// put writes an image with the given content and a manifest that change may alter.
func put(t *testing.T, dir, content string, change func(*Manifest)) Image {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	m := Manifest{
		Schema: schema, Digest: sha256Hex([]byte(content)), Size: int64(len(content)), Inputs: "other",
		Created: time.Unix(1_800_000_000, 0).UTC(), Versions: map[string]string{"pi": "0.1.0"},
	}
	name := m.Digest
	if change != nil {
		change(&m)
	}
	doc, err := json.Marshal(m)
	require.NoError(t, err)
	path := filepath.Join(dir, name+imageSuffix)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+manifestSuffix), doc, 0o644))
	return Image{Manifest: m, Path: path}
}

func TestResolve(t *testing.T) {
	inputs, err := Inputs("")
	require.NoError(t, err)
	own, system := t.TempDir(), t.TempDir()
	at := func(seconds int64) time.Time { return time.Unix(1_800_000_000+seconds, 0).UTC() }
	current := put(t, own, "current", func(m *Manifest) { m.Inputs, m.Created = inputs, at(0); m.Versions["pi"] = "0.84.2" })
	newer := put(t, system, "newer", func(m *Manifest) { m.Inputs, m.Created = inputs, at(5); m.Versions["pi"] = "0.84.2" })
	other := put(t, own, "other", func(m *Manifest) { m.Created = at(9); m.Versions["pi"] = "0.99.0" })
	put(t, system, "other", func(m *Manifest) { m.Created = at(9) })
	store := &Store{Dirs: []string{own, filepath.Join(own, "missing"), system}}

	// Contents whose digests begin alike: found by trying, fixed by sha256.
	twinA, twinB := "twin-0", "twin-66"
	require.Equal(t, sha256Hex([]byte(twinA))[:2], sha256Hex([]byte(twinB))[:2])
	put(t, own, twinA, nil)
	put(t, own, twinB, nil)

	images, err := store.List()
	require.NoError(t, err)
	require.Len(t, images, 5)
	require.Equal(t, other.Path, images[0].Path, "newest first, and the first folder's copy")
	require.False(t, images[0].ReadOnly)

	for _, tt := range []struct {
		name, ref string
		want      string
		err       error
	}{
		{"current recipe, newest", "", newer.Path, nil},
		{"whole digest", current.Manifest.Digest, current.Path, nil},
		{"prefix", current.Short(), current.Path, nil},
		{"with algorithm", "sha256:" + other.Short(), other.Path, nil},
		{"alias", "pi-0.99.0", other.Path, nil},
		{"alias of two", "pi-0.84.2", newer.Path, nil},
		{"unknown alias", "pi-1.2.3", "", ErrNoImage},
		{"unknown digest", sha256Hex([]byte("unknown")), "", ErrNoImage},
		{"no digest", "latest", "", ErrNoImage},
		{"a path", "../" + current.Manifest.Digest, "", ErrNoImage},
		{"empty digest", "sha256:", "", ErrNoImage},
		{"ambiguous", sha256Hex([]byte(twinA))[:2], "", ErrAmbiguous},
	} {
		t.Run(tt.name, func(t *testing.T) {
			img, err := store.Resolve(tt.ref)
			if tt.err != nil {
				require.ErrorIs(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, img.Path)
		})
	}
}

func TestResolveNothing(t *testing.T) {
	dir := t.TempDir()
	store := &Store{Dirs: []string{dir}}
	_, err := store.Resolve("")
	require.ErrorIs(t, err, ErrNoImage)
	require.ErrorContains(t, err, "run `patio image build` or `make setup`")
	put(t, dir, "old", nil)
	_, err = store.Resolve("")
	require.ErrorContains(t, err, "(1 made by another version of patio)")
}

func TestListIgnoresUnusable(t *testing.T) {
	digest := sha256Hex([]byte("content"))
	for _, tt := range []struct {
		name   string
		change func(*Manifest)
		after  func(t *testing.T, dir string)
		warns  string
	}{
		{"torn manifest", nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, digest+manifestSuffix), 20))
		}, "unexpected end of JSON input"},
		{"empty manifest", nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, digest+manifestSuffix), 0))
		}, "unexpected end of JSON input"},
		{"newer schema", func(m *Manifest) { m.Schema = schema + 1 }, nil, "schema 2, this program knows up to 1"},
		{"no schema", func(m *Manifest) { m.Schema = 0 }, nil, "schema 0"},
		{"other digest", func(m *Manifest) { m.Digest = sha256Hex(nil) }, nil, "it names the digest"},
		{"image gone", nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, digest+imageSuffix)))
		}, "no such file"},
		{"image cut", nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, digest+imageSuffix), 3))
		}, "the image has 3 bytes, want 7"},
		{"image is a link", nil, func(t *testing.T, dir string) {
			path := filepath.Join(dir, digest+imageSuffix)
			require.NoError(t, os.Rename(path, path+".real"))
			require.NoError(t, os.Symlink(path+".real", path))
		}, "not a regular file"},
		{"image without manifest", nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, digest+manifestSuffix)))
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "content", tt.change)
			if tt.after != nil {
				tt.after(t, dir)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.json"), []byte("{"), 0o644))
			good := put(t, dir, "good", nil)
			var logged bytes.Buffer
			store := &Store{Dirs: []string{dir}, Log: slog.New(slog.NewTextHandler(&logged, nil))}
			images, err := store.List()
			require.NoError(t, err)
			require.Len(t, images, 1)
			require.Equal(t, good.Path, images[0].Path)
			if tt.warns == "" {
				require.Empty(t, logged.String())
			} else {
				require.Contains(t, logged.String(), "level=WARN")
				require.Contains(t, logged.String(), tt.warns)
			}
		})
	}
}

func TestRemoveInUse(t *testing.T) {
	dir := t.TempDir()
	store := &Store{Dirs: []string{dir}}
	img := put(t, dir, "content", nil)
	first, err := store.Use(img)
	require.NoError(t, err)
	second, err := store.Use(img)
	require.NoError(t, err)

	require.ErrorIs(t, store.Remove(img), ErrInUse)
	first()
	first()
	require.ErrorIs(t, store.Remove(img), ErrInUse)
	second()
	require.NoError(t, store.Remove(img))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)

	_, err = store.Use(img)
	require.ErrorIs(t, err, ErrNoImage)
	require.ErrorIs(t, store.Remove(img), ErrNoImage)
}

func TestUseLosesToRemoval(t *testing.T) {
	dir := t.TempDir()
	img := put(t, dir, "content", nil)
	f, err := os.Open(img.Path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.NoError(t, samePath(f, img.Path))
	require.NoError(t, os.Remove(img.Path))
	require.ErrorIs(t, samePath(f, img.Path), ErrNoImage)
	put(t, dir, "content", nil)
	require.ErrorIs(t, samePath(f, img.Path), ErrNoImage)
}

func TestRemoveReadOnly(t *testing.T) {
	own, system := t.TempDir(), t.TempDir()
	put(t, system, "content", nil)
	store := &Store{Dirs: []string{own, system}}
	images, err := store.List()
	require.NoError(t, err)
	require.True(t, images[0].ReadOnly)
	require.ErrorIs(t, store.Remove(images[0]), ErrReadOnly)
	release, err := store.Use(images[0])
	require.NoError(t, err)
	release()
}

func TestPrune(t *testing.T) {
	own, system := t.TempDir(), t.TempDir()
	inputs, err := Inputs("")
	require.NoError(t, err)
	current := put(t, own, "current", func(m *Manifest) { m.Inputs = inputs })
	used := put(t, own, "used", nil)
	kept := put(t, own, "kept", func(m *Manifest) { m.Versions["pi"] = "9.0.0" })
	old := put(t, own, "old", nil)
	shared := put(t, system, "shared", nil)
	store := &Store{Dirs: []string{own, system}}
	release, err := store.Use(used)
	require.NoError(t, err)
	defer release()
	removed, err := store.Prune(func(img Image) bool { return img.Alias() == "pi-9.0.0" })
	require.NoError(t, err)
	require.Len(t, removed, 1)
	require.Equal(t, old.Path, removed[0].Path)
	for _, img := range []Image{current, used, kept, shared} {
		require.FileExists(t, img.Path)
	}
}

func TestVerifyDigest(t *testing.T) {
	dir := t.TempDir()
	store := &Store{Dirs: []string{dir}}
	img := put(t, dir, "content", nil)
	var done, total int64
	require.NoError(t, store.VerifyDigest(t.Context(), img, func(d, n int64) { done, total = d, n }))
	require.Equal(t, int64(7), done)
	require.Equal(t, int64(7), total)

	require.NoError(t, os.WriteFile(img.Path, []byte("c0ntent"), 0o644))
	err := store.VerifyDigest(t.Context(), img, nil)
	require.ErrorIs(t, err, ErrDigestMismatch)
	require.ErrorContains(t, err, sha256Hex([]byte("c0ntent")))
	require.ErrorContains(t, err, sha256Hex([]byte("content")))
	require.ErrorContains(t, err, "run `patio image build`")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, store.VerifyDigest(ctx, img, nil), context.Canceled)
	require.NoError(t, os.Remove(img.Path))
	require.ErrorIs(t, store.VerifyDigest(t.Context(), img, nil), os.ErrNotExist)
}

func TestVerifyTools(t *testing.T) {
	img := Image{Manifest: Manifest{Digest: sha256Hex(nil), Tools: []Tool{
		{"node", []string{"node", "--version"}, "24.21.0"}, {"git", []string{"git", "--version"}, "2.47.3"}, {"rg", []string{"rg"}, "14.1.1"},
	}}}
	broken := errors.New("no such file")
	answers := map[string]string{"node": "v24.21.0\n", "git": "git version 2.50.0\n"}
	run := func(_ context.Context, argv []string) ([]byte, error) {
		out, ok := answers[argv[0]]
		if !ok {
			return nil, broken
		}
		return []byte(out), nil
	}
	reports, err := VerifyTools(t.Context(), img, run)
	require.ErrorIs(t, err, ErrToolMismatch)
	require.ErrorIs(t, err, broken)
	require.Len(t, reports, 3)
	require.NoError(t, reports[0].Err)
	require.ErrorContains(t, reports[1].Err, `git is "2.50.0", the image was built with "2.47.3"`)
	require.ErrorIs(t, reports[2].Err, broken)

	answers["git"], answers["rg"] = "git version 2.47.3", "ripgrep 14.1.1 (rev x)"
	_, err = VerifyTools(t.Context(), img, run)
	require.NoError(t, err)

	_, err = VerifyTools(t.Context(), Image{}, run)
	require.ErrorContains(t, err, "lists no tools")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = VerifyTools(ctx, img, run)
	require.ErrorIs(t, err, context.Canceled)
}

func TestVersion(t *testing.T) {
	for output, want := range map[string]string{
		"v24.21.0\n":                        "24.21.0",
		"0.84.2\n":                          "0.84.2",
		"ripgrep 14.1.1\n\nfeatures:+pcre2": "14.1.1",
		"GNU bash, version 5.2.37(1)-release (x86_64-pc-linux-gnu)": "5.2.37",
		"OpenSSH_10.0p2 Debian-7+deb13u4, OpenSSL 3.5.1":            "10.0p2",
		"curl 8.14.1 (x86_64-pc-linux-gnu) libcurl/8.14.1":          "8.14.1",
		"warning:\nversion 1.2-\n":                                  "1.2",
		"148":                                                       "148",
		"none":                                                      "",
		"":                                                          "",
	} {
		require.Equal(t, want, Version([]byte(output)), output)
	}
}
