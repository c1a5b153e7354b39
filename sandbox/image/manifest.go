package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// schema is the version of the manifest's shape. A reader ignores images of a newer one.
const schema = 1

// Manifest says what an image is. It lies beside the image as <digest>.json and is written after it, so an image
// without a manifest is not an image yet.
type Manifest struct {
	Schema int `json:"schema"`
	// Digest is the sha256 of the image file in hex, and its name in the store.
	Digest string `json:"digest"`
	// Size is that of the image file in bytes.
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
	// Arch is Go's name of the architecture.
	Arch  string `json:"arch"`
	Suite string `json:"suite"`
	// Inputs is the digest over the recipe that made the image; see Inputs.
	Inputs string `json:"inputs"`
	// Pinned is false for an image with another Pi than the one this program pins.
	Pinned bool `json:"pinned"`
	// LockSHA256 is the digest of the package-lock.json that npm installed from.
	LockSHA256 string `json:"lockSHA256"`
	// Versions are those of the main parts: node, pi, pi-ai, pi-mcp-adapter from npm, the others Debian's.
	Versions map[string]string `json:"versions"`
	// Packages are all Debian packages, sorted by name.
	Packages []DebianPackage `json:"packages"`
	Tools    []Tool          `json:"tools"`
	// Providers are the model providers that this Pi knows, by id.
	Providers map[string]Provider `json:"providers"`
}

// DebianPackage is one installed package.
type DebianPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Arch    string `json:"arch"`
}

// errManifest marks a manifest that can't be trusted to describe an image.
var errManifest = errors.New("unusable image manifest")

// readManifest reads dir/<digest>.json and checks that it describes the image file beside it. It doesn't read the
// image.
func readManifest(dir, digest string) (Manifest, error) {
	path := filepath.Join(dir, digest+manifestSuffix)
	b, err := os.ReadFile(path)
	if err != nil {
		return Manifest{}, fmt.Errorf("read image manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return Manifest{}, fmt.Errorf("%w: %s: %w", errManifest, path, err)
	}
	switch {
	case m.Schema < 1 || m.Schema > schema:
		return Manifest{}, fmt.Errorf("%w: %s: schema %d, this program knows up to %d", errManifest, path, m.Schema, schema)
	case m.Digest != digest:
		return Manifest{}, fmt.Errorf("%w: %s: it names the digest %q", errManifest, path, m.Digest)
	}
	info, err := os.Lstat(filepath.Join(dir, digest+imageSuffix))
	switch {
	case err != nil:
		return Manifest{}, fmt.Errorf("%w: %s: %w", errManifest, path, err)
	case !info.Mode().IsRegular():
		return Manifest{}, fmt.Errorf("%w: %s: the image beside it is not a regular file", errManifest, path)
	case info.Size() != m.Size:
		return Manifest{}, fmt.Errorf("%w: %s: the image has %d bytes, want %d", errManifest, path, info.Size(), m.Size)
	}
	return m, nil
}

// isDigest reports whether s is a sha256 in lower-case hex.
func isDigest(s string) bool { return len(s) == 64 && isHex(s) }

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdef") == ""
}
