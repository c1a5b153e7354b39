package image

import (
	"archive/tar"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestUnpackStaysInside(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []tar.Header
	}{
		{"parent", []tar.Header{{Name: "../evil", Typeflag: tar.TypeReg}}},
		{"link out", []tar.Header{{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "../outside"}, {Name: "out/evil", Typeflag: tar.TypeReg}}},
		{"absolute link", []tar.Header{{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/OUTSIDE"}, {Name: "out/evil", Typeflag: tar.TypeReg}}},
		{"hard link", []tar.Header{{Name: "evil", Typeflag: tar.TypeLink, Linkname: "../outside/secret"}}},
		{"twice", []tar.Header{{Name: "a", Typeflag: tar.TypeReg}, {Name: "a", Typeflag: tar.TypeReg}}},
		{"unknown type", []tar.Header{{Name: "a", Typeflag: tar.TypeCont}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
			require.NoError(t, os.Mkdir(root, 0o755))
			require.NoError(t, os.Mkdir(outside, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
			tarball := filepath.Join(dir, "a.tar")
			f, err := os.Create(tarball)
			require.NoError(t, err)
			w := tar.NewWriter(f)
			for _, h := range tt.entries {
				h.Linkname = strings.ReplaceAll(h.Linkname, "/OUTSIDE", outside)
				require.NoError(t, w.WriteHeader(&h))
			}
			require.NoError(t, w.Close())
			require.NoError(t, f.Close())
			require.Error(t, unpack(t.Context(), tarball, root, func(int64, int64) {}))
			entries, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Len(t, entries, 1)
			require.NoFileExists(t, filepath.Join(dir, "evil"))
		})
	}
}

func TestAudit(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	tool := filepath.Join(dir, "bin", "tool")
	require.NoError(t, os.WriteFile(tool, nil, 0o755))
	entries, err := audit(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, 3, entries)

	require.NoError(t, os.Chmod(tool, 0o755|os.ModeSetuid))
	_, err = audit(t.Context(), dir)
	require.ErrorIs(t, err, errPrivileged)
	require.ErrorContains(t, err, "/bin/tool is setuid or setgid")
	require.NoError(t, os.Chmod(tool, 0o755))

	require.NoError(t, os.Chmod(filepath.Dir(tool), 0o755|os.ModeSetgid))
	_, err = audit(t.Context(), dir)
	require.ErrorContains(t, err, "/bin is setuid or setgid")
	require.NoError(t, os.Chmod(filepath.Dir(tool), 0o755))

	// cap_net_raw, in the kernel's format; only root may set it.
	capability := []byte{0, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(tool, "security.capability", capability, 0); err != nil {
		t.Logf("file capabilities not tried: %v", err)
		return
	}
	_, err = audit(t.Context(), dir)
	require.ErrorContains(t, err, "/bin/tool has file capabilities")
}

func TestRemoveTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	require.NoError(t, removeTree(dir))
	deep := filepath.Join(dir, "b", "c", "d")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(deep, "f"), nil, 0o400))
	for _, p := range []string{deep, filepath.Dir(deep), filepath.Dir(filepath.Dir(deep)), dir} {
		require.NoError(t, os.Chmod(p, 0))
	}
	require.NoError(t, removeTree(dir))
	require.NoDirExists(t, dir)
}

func TestCheckSpace(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a", "not", "yet"), filepath.Join(dir, "b")
	require.NoError(t, os.Mkdir(b, 0o755))
	free := func(devices map[string]uint64, have uint64) func(string) (uint64, uint64, error) {
		return func(d string) (uint64, uint64, error) { return devices[d], have, nil }
	}
	apart := map[string]uint64{dir: 1, b: 2}
	require.NoError(t, checkSpace(free(apart, 100), []need{{a, 100}, {b, 100}}))
	err := checkSpace(free(nil, 100), []need{{a, 60}, {b, 60}})
	require.ErrorIs(t, err, ErrNoSpace)
	require.ErrorContains(t, err, "need 120 B, have 100 B")
	_, have, err := freeSpace(dir)
	require.NoError(t, err)
	require.NotZero(t, have)
}

func TestCheckSubordinateIDs(t *testing.T) {
	u := &user.User{Username: "ada", Uid: "1007"}
	for _, tt := range []struct{ name, uids, gids, want string }{
		{"both", "ada:100000:65536\n", "ada:100000:65536\n", ""},
		{"by number", "1007:100000:65536\n", "1007:100000:65536\n", ""},
		{"none", "", "", `as root, add the line "ada:100000:65536" to UIDS and add the line "ada:100000:65536" to GIDS`},
		{"after another's", "bob:100000:65536\n", "ada:100000:65536\n", `as root, add the line "ada:165536:65536" to UIDS`},
		{"too few", "ada:100000:1000\n", "ada:100000:65536\n", `add the line "ada:101000:65536" to UIDS`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			uids, gids := filepath.Join(dir, "uids"), filepath.Join(dir, "gids")
			require.NoError(t, os.WriteFile(uids, []byte(tt.uids), 0o644))
			if tt.gids != "" {
				require.NoError(t, os.WriteFile(gids, []byte(tt.gids), 0o644))
			}
			err := checkSubordinateIDs(u, uids, gids)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrSubordinateIDs)
			require.ErrorContains(t, err, strings.NewReplacer("UIDS", uids, "GIDS", gids).Replace(tt.want))
		})
	}
}

func TestFindTools(t *testing.T) {
	all := func(name string) (string, error) { return "/tools/" + name, nil }
	tools, err := findTools(all, true)
	require.NoError(t, err)
	require.Equal(t, "/tools/npm", tools["npm"])
	require.NotContains(t, tools, "newuidmap")
	none := func(string) (string, error) { return "", errNotFound }
	_, err = findTools(none, true)
	require.ErrorIs(t, err, ErrMissingTool)
	require.ErrorContains(t, err, "on Debian: apt-get install coreutils dash erofs-utils mmdebstrap mount npm util-linux")
	_, err = findTools(none, false)
	require.ErrorContains(t, err, "on Debian: sudo apt-get install coreutils dash erofs-utils mmdebstrap mount npm uidmap util-linux")
	_, err = findTool("patio-no-such-tool")
	require.ErrorIs(t, err, errNotFound)
}

func TestBootstrapProgress(t *testing.T) {
	type seen struct {
		fraction float64
		detail   string
	}
	var all []seen
	p := bootstrapProgress{report: func(f float64, d string) { all = append(all, seen{f, d}) }}
	for _, line := range []string{
		"I: chroot architecture amd64 is equal to the host's architecture", "I: running apt-get update...", "Get:1 x", "I: downloading packages with apt...",
		"Get:2 y", "I: installing remaining packages inside the chroot...", "Unpacking git (1:2.47) ...", "Setting up git (1:2.47) ...",
		"I: running apt-get update...", "I: creating tarball...", "I: success in 40 seconds", "after",
	} {
		p.line(line)
	}
	for i := 1; i < len(all); i++ {
		require.GreaterOrEqual(t, all[i].fraction, all[i-1].fraction)
		require.LessOrEqual(t, all[i].fraction, 1.0)
	}
	require.Equal(t, seen{0.10, "downloading packages with apt"}, all[3])
	require.Equal(t, "unpacking git", all[6].detail)
	require.Equal(t, "setting up git", all[7].detail)
	require.Greater(t, all[6].fraction, 0.55)
	require.Equal(t, 1.0, all[len(all)-1].fraction)
}

func TestLineWriter(t *testing.T) {
	var lines []string
	w := &lineWriter{onLine: func(l string) { lines = append(lines, l) }}
	for _, part := range []string{"a", "b\nc\r", "\x1b[Kd\n\n", "tail"} {
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
	}
	w.flush()
	require.Equal(t, []string{"ab", "c", "d", "tail"}, lines)
	for range 2 * tailLines {
		_, _ = w.Write([]byte("x\n"))
	}
	require.Len(t, w.tail, tailLines)
}
