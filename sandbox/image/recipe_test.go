package image

import (
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLockPinsEverything(t *testing.T) {
	lock, err := parseLock(packageLock)
	require.NoError(t, err)
	require.NoError(t, lock.check(true))
	require.Greater(t, len(lock.Packages), 200)
	for path, e := range lock.Packages {
		if path == "" {
			continue
		}
		require.Truef(t, strings.HasPrefix(e.Integrity, "sha512-"), "%s has no integrity hash", path)
		require.Emptyf(t, e.Resolved, "%s names a registry", path)
	}
	require.NotContains(t, string(packageLock), "://registry")
	require.Equal(t, "0.84.2", PinnedPi())
	require.Equal(t, "2.32.1", lock.version(adapterPackage))
	for _, arch := range []string{"amd64", "arm64"} {
		node, err := nodePackage(arch)
		require.NoError(t, err)
		require.Regexp(t, `^24\.`, lock.version(node))
	}
	_, err = nodePackage("riscv64")
	require.ErrorContains(t, err, "no pinned Node")
	// Whoever updates the lock file looks at what the new scripts do.
	require.Equal(t, []string{"@google/genai", "protobufjs"}, lock.scripted(scriptsAllowed))
	require.Equal(t, []string{"protobufjs"}, lock.scripted([]string{"@google/genai"}))
}

func TestLockCheck(t *testing.T) {
	for _, tt := range []struct {
		name, lock string
		portable   bool
		want       string
	}{
		{"good", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"integrity":"sha512-x"}}}`, true, ""},
		{"no integrity", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{}}}`, true, "node_modules/a has no sha512"},
		{"weak integrity", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"integrity":"sha1-x"}}}`, true, "node_modules/a has no sha512"},
		{"link", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"integrity":"sha512-x","link":true}}}`, true, "is a link"},
		{"bundled", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"integrity":"sha512-x","inBundle":true}}}`, true, "is a link or bundled"},
		{"address", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"integrity":"sha512-x","resolved":"https://example.com/a.tgz"}}}`, true, "names a registry"},
		{"address allowed", `{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"integrity":"sha512-x","resolved":"https://example.com/a.tgz"}}}`, false, ""},
		{"empty", `{"lockfileVersion":3,"packages":{"":{}}}`, true, "lists no packages"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lock, err := parseLock([]byte(tt.lock))
			require.NoError(t, err)
			err = lock.check(tt.portable)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, errLock)
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := parseLock([]byte(`{"lockfileVersion":1}`))
	require.ErrorContains(t, err, "version 1, want 3")
	_, err = parseLock([]byte(`{`))
	require.Error(t, err)
}

// TestInputsCoverEverything changes each field of the recipe in turn: a field that doesn't reach the digest would let a
// stale image pass as the current one.
func TestInputsCoverEverything(t *testing.T) {
	digest := func(r recipe) string {
		d, err := r.inputs()
		require.NoError(t, err)
		return d
	}
	plain, err := newRecipe("")
	require.NoError(t, err)
	again, err := newRecipe("")
	require.NoError(t, err)
	require.Equal(t, digest(plain), digest(again))

	fields := reflect.TypeFor[recipe]()
	for i := range fields.NumField() {
		changed := plain
		field := reflect.ValueOf(&changed).Elem().Field(i)
		switch field.Interface().(type) {
		case string:
			field.SetString(field.String() + "x")
		case int64:
			field.SetInt(field.Int() + 1)
		case []string:
			field.Set(reflect.ValueOf(append(slices.Clone(field.Interface().([]string)), "x")))
		case map[string]fs.FileMode:
			field.Set(reflect.ValueOf(map[string]fs.FileMode{"x": 1}))
		case map[string]layoutFile:
			field.Set(reflect.ValueOf(map[string]layoutFile{"x": {}}))
		case map[string]string:
			field.Set(reflect.ValueOf(map[string]string{"x": "y"}))
		case []toolProbe:
			field.Set(reflect.ValueOf([]toolProbe{{Name: "x"}}))
		default:
			require.Failf(t, "unknown type", "field %s", fields.Field(i).Name)
		}
		require.NotEqualf(t, digest(plain), digest(changed), "field %s", fields.Field(i).Name)
	}

	other, err := newRecipe("0.99.0")
	require.NoError(t, err)
	require.NotEqual(t, digest(plain), digest(other))
	require.Contains(t, other.PackageJSON, `"@earendil-works/pi-coding-agent": "0.99.0"`)
	require.Contains(t, other.PackageJSON, `"pi-mcp-adapter": "2.32.1"`)
	require.Empty(t, other.PackageLock)
	for _, bad := range []string{"latest", "^0.84.2", "0.84", "file:../x", "0.84.2 --x", "https://example.com/x.tgz", "-g"} {
		_, err := newRecipe(bad)
		require.Errorf(t, err, "%q", bad)
	}
}

func TestBaseKey(t *testing.T) {
	r, err := newRecipe("")
	require.NoError(t, err)
	key := func(r recipe, mirrors ...string) string {
		k, err := r.baseKey(mirrors)
		require.NoError(t, err)
		return k
	}
	other := r
	other.Packages = append(slices.Clone(r.Packages), "make")
	require.NotEqual(t, key(r), key(other))
	require.NotEqual(t, key(r), key(r, "http://mirror.example.com/debian"))
	// A new layout or another Pi needs no new Debian.
	other = r
	other.Pi, other.Warm = "0.99.0", "x"
	require.Equal(t, key(r), key(other))
}

func TestSplitMirrors(t *testing.T) {
	require.Empty(t, splitMirrors(""))
	require.Equal(t, []string{"http://mirror.example.com/debian", "deb http://mirror.example.com/security trixie-security main"},
		splitMirrors("http://mirror.example.com/debian\n\n  deb http://mirror.example.com/security trixie-security main\n"))
}

func TestDecodeProviders(t *testing.T) {
	providers, err := decodeProviders([]byte(`{"providers":{
		"acme":{"name":"Acme","baseUrls":{"https://b.example.com/v1":1,"https://a.example.com":1,"https://{REGION}.example.com":1,"":1},
			"apis":["x"],"keyEnv":["ACME_KEY"],"models":[{"id":"1"},{"id":"2","contextWindow":9},{"id":"3"},{"id":"4"}]},
		"login":{"name":"Login","baseUrls":{},"apis":[],"keyEnv":[],"models":[],"oauth":{"name":"Login","tokenHosts":["auth.example.com"]}}}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"a.example.com", "b.example.com"}, providers["acme"].Hosts())
	require.Equal(t, 9, providers["acme"].Models[1].ContextWindow)
	require.Equal(t, &OAuth{Name: "Login", TokenHosts: []string{"auth.example.com"}}, providers["login"].OAuth)
	for bad, want := range map[string]string{
		`{}`: "empty",
		`x`:  "invalid character",
		`{"providers":{"a":{"keyEnv":["A"],"baseUrls":{"u":2},"models":[{"id":"1"}]}}}`: "a has 1 models and base URLs for 2",
		`{"providers":{"a":{"baseUrls":{},"models":[]}}}`:                               "neither a key variable nor a login",
	} {
		_, err := decodeProviders([]byte(bad))
		require.ErrorContains(t, err, want)
	}
}
