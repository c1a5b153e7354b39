package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// lockfile is the part of npm's package-lock.json (version 3) that pinning rests on.
type lockfile struct {
	Version  int                  `json:"lockfileVersion"`
	Packages map[string]lockEntry `json:"packages"`
}

type lockEntry struct {
	Version       string `json:"version"`
	Integrity     string `json:"integrity"`
	Resolved      string `json:"resolved"`
	Link          bool   `json:"link"`
	InBundle      bool   `json:"inBundle"`
	InstallScript bool   `json:"hasInstallScript"`
}

// errLock marks a lock file that doesn't pin what it installs.
var errLock = errors.New("package-lock.json does not pin every package")

func parseLock(b []byte) (lockfile, error) {
	var l lockfile
	if err := json.Unmarshal(b, &l); err != nil {
		return lockfile{}, fmt.Errorf("read package-lock.json: %w", err)
	}
	if l.Version != 3 {
		return lockfile{}, fmt.Errorf("read package-lock.json: version %d, want 3", l.Version)
	}
	return l, nil
}

// check demands a sha512 integrity hash of every entry, and, when portable, that none names a registry. A link or a
// bundled package would escape the hashes, so neither is accepted.
func (l lockfile) check(portable bool) error {
	var bad []string
	for path, e := range l.Packages {
		switch {
		case path == "":
			continue
		case !strings.HasPrefix(e.Integrity, "sha512-"):
			bad = append(bad, path+" has no sha512 integrity hash")
		case e.Link || e.InBundle:
			bad = append(bad, path+" is a link or bundled")
		case portable && e.Resolved != "":
			bad = append(bad, path+" names a registry")
		}
	}
	if len(l.Packages) < 2 {
		bad = append(bad, "it lists no packages")
	}
	if len(bad) == 0 {
		return nil
	}
	sort.Strings(bad)
	if len(bad) > 5 {
		bad = append(bad[:5:5], fmt.Sprintf("and %d more", len(bad)-5))
	}
	return fmt.Errorf("%w: %s", errLock, strings.Join(bad, "; "))
}

// version is that of a package at the top of the tree, or empty.
func (l lockfile) version(name string) string {
	return l.Packages["node_modules/"+name].Version
}

// scripted lists the packages with install scripts that are not in the allow list.
func (l lockfile) scripted(allowed []string) []string {
	var names []string
	for path, e := range l.Packages {
		if !e.InstallScript {
			continue
		}
		// The key is a path: the name follows the last node_modules/.
		parts := strings.Split(path, "node_modules/")
		if name := parts[len(parts)-1]; !slices.Contains(allowed, name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// exactVersion is one published version: npm would take a range, a tag, a URL or a path as well.
var exactVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// withPi returns the package.json with another version of Pi.
func withPi(pkg, version string) (string, error) {
	if !exactVersion.MatchString(version) {
		return "", fmt.Errorf("pi version %q: want one exact version such as %s", version, PinnedPi())
	}
	var doc struct {
		Name                 string            `json:"name"`
		Private              bool              `json:"private"`
		Dependencies         map[string]string `json:"dependencies"`
		OptionalDependencies map[string]string `json:"optionalDependencies"`
	}
	if err := json.Unmarshal([]byte(pkg), &doc); err != nil {
		return "", fmt.Errorf("read package.json: %w", err)
	}
	doc.Dependencies[piPackage] = version
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write package.json: %w", err)
	}
	return string(b) + "\n", nil
}

// PinnedPi is the version of Pi that an image has unless another is asked for.
func PinnedPi() string {
	l, err := parseLock(packageLock)
	if err != nil {
		return ""
	}
	return l.version(piPackage)
}
