package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are the arrows of ARCHITECTURE.md: a package may import only what its line
// allows, and what those may. The longest matching prefix counts.
var layers = []struct {
	pkg   string
	may   []string
	whyNo string
}{
	{"patio/engine/jsonl", nil, "framing knows nothing above it"},
	{"patio/engine/journal", nil, "the journal stores lines, whatever they say"},
	{"patio/engine/demo", nil, "the scripted model is an HTTP handler and nothing else"},
	{"patio/engine/pi", []string{"patio/engine/jsonl", "patio/sandbox"}, "what Pi is doesn't depend on sessions"},
	{"patio/engine/api", []string{"patio/engine/jsonl", "patio/engine/journal", "patio/sandbox"}, "the wire knows no life cycle"},
	{"patio/engine/rules", []string{"patio/sandbox"}, "a file of rules is no session"},
	{"patio/engine/mcp", []string{"patio/engine/jsonl", "patio/sandbox"}, "the MCP route knows no session"},
	{"patio/engine/credentials", []string{"patio/engine/credentials", "patio/engine/api", "patio/engine/jsonl", "patio/engine/pi", "patio/sandbox"}, "credentials know no session"},
	{"patio/engine/supervisor", []string{"patio/engine/api", "patio/engine/demo", "patio/engine/journal", "patio/engine/jsonl", "patio/engine/pi", "patio/engine/rules", "patio/engine/credentials", "patio/engine/mcp", "patio/sandbox", "patio/sessions"}, "a session's own process doesn't know the registry"},
	{"patio/engine", []string{"patio/engine", "patio/sandbox", "patio/sessions"}, "the engine knows no user interface"},
	{"patio/sandbox", []string{"patio/sandbox"}, "a sandbox knows no engine and no Pi"},
	{"patio/sessions", []string{"patio/sessions"}, "session files stand alone"},
	{"patio/themes", nil, "palettes are data"},
	{"patio/tui", []string{"patio/tui", "patio/engine/api", "patio/engine/journal", "patio/sessions", "patio/themes"}, "the terminal UI talks to the wire only"},
	{"patio/internal/cli", []string{"patio"}, ""},
	{"patio/internal", []string{"patio/internal", "patio/engine", "patio/sandbox", "patio/sessions", "patio/tui"}, "tools are not the product"},
	{"patio", []string{"patio/internal/cli", "patio/sandbox/sandboxtest", "patio/engine/api"}, "main is os.Exit and nothing else"},
}

func TestImportArrows(t *testing.T) {
	type pkg struct {
		ImportPath                         string
		Imports, TestImports, XTestImports []string
		Doc                                string
		GoFiles                            []string
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Doc,GoFiles", "./...")
	out, err := cmd.Output()
	require.NoError(t, err)
	d := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for d.More() {
		var p pkg
		require.NoError(t, d.Decode(&p))
		seen++
		var rule *struct {
			pkg   string
			may   []string
			whyNo string
		}
		for i := range layers {
			if under(p.ImportPath, layers[i].pkg) && (rule == nil || len(layers[i].pkg) > len(rule.pkg)) {
				rule = &layers[i]
			}
		}
		if rule == nil {
			t.Errorf("%s has no line in the table of layers", p.ImportPath)
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if !under(imported, "patio") || under(imported, p.ImportPath) {
				continue
			}
			if !slices.ContainsFunc(rule.may, func(may string) bool { return under(imported, may) }) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, rule.whyNo)
			}
		}
		if len(p.GoFiles) > 0 && p.ImportPath != "patio" && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
	require.Greater(t, seen, 10, "go list saw too few packages for this test to mean anything")
}

func under(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// maxLines keeps files about one noun.
const maxLines = 500

func TestFilesAreShort(t *testing.T) {
	require.NoError(t, filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "libexec", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(b), "\n"); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: which second noun lives there?", path, n, maxLines)
		}
		if base := strings.TrimSuffix(filepath.Base(path), ".go"); slices.Contains([]string{"util", "utils", "common", "helpers", "types", "misc"}, base) {
			t.Errorf("%s: name the file for what it defines", path)
		}
		return nil
	}))
}
