package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// Source says why a directory is searched.
type Source string

// Where roots come from.
const (
	SourceOwn      Source = "patio"    // patio's own session directory
	SourceAgent    Source = "agent"    // sessions/ in Pi's agent directory
	SourceEnv      Source = "env"      // PI_CODING_AGENT_SESSION_DIR
	SourceSettings Source = "settings" // sessionDir in the agent directory's settings.json
	SourceExtra    Source = "extra"    // named by the user
)

// Root is a directory that holds session files, at any depth. It need not exist.
type Root struct {
	Dir    string `json:"dir"` // absolute and clean
	Source Source `json:"source"`
}

// Roots returns where session files may be, each directory once: patio's own directory (unless it is empty), what Pi itself
// would use under this environment, then the extra directories. getenv is os.Getenv or a stand-in. A relative path means what
// it would mean to a Pi started in the current directory. The roots are good even when the error isn't nil: that only says
// what had to be left out.
func Roots(getenv func(string) string, own string, extra ...string) ([]Root, error) {
	home := getenv("HOME")
	var problems []error
	if home == "" {
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	var roots []Root
	seen := map[string]bool{}
	add := func(source Source, dir string) {
		if dir == "" {
			return
		}
		abs, err := resolvePath(dir, home)
		if err != nil {
			problems = append(problems, fmt.Errorf("find session directory %s: %w", dir, err))
			return
		}
		if !seen[abs] {
			seen[abs] = true
			roots = append(roots, Root{Dir: abs, Source: source})
		}
	}
	add(SourceOwn, own)
	agent := getenv("PI_CODING_AGENT_DIR")
	if agent == "" && home != "" {
		agent = filepath.Join(home, ".pi", "agent")
	}
	if agent != "" {
		if abs, err := resolvePath(agent, home); err != nil {
			problems = append(problems, fmt.Errorf("find Pi's agent directory %s: %w", agent, err))
		} else {
			add(SourceAgent, filepath.Join(abs, "sessions"))
			configured, err := configuredDir(filepath.Join(abs, "settings.json"))
			if err != nil {
				problems = append(problems, err)
			}
			add(SourceSettings, configured)
		}
	}
	add(SourceEnv, getenv("PI_CODING_AGENT_SESSION_DIR"))
	for _, dir := range extra {
		add(SourceExtra, dir)
	}
	return roots, errors.Join(problems...)
}

// maxSettings is far above what a settings file needs; the file belongs to another program.
const maxSettings = 4 << 20

// configuredDir is the sessionDir of Pi's settings, empty without one.
func configuredDir(settings string) (string, error) {
	info, err := os.Stat(settings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read Pi's settings: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxSettings:
		return "", fmt.Errorf("read Pi's settings: %s is no file of a settings file's size", settings)
	}
	b, err := os.ReadFile(settings)
	if err != nil {
		return "", fmt.Errorf("read Pi's settings: %w", err)
	}
	var s struct {
		SessionDir string `json:"sessionDir"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("read Pi's settings %s: %w", settings, err)
	}
	return s.SessionDir, nil
}

// resolvePath makes a path absolute the way Pi does: ~ is the home directory, a file URL is its path.
func resolvePath(path, home string) (string, error) {
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		if home == "" {
			return "", errors.New("the home directory is unknown; set HOME")
		}
		path = filepath.Join(home, path[1:])
	case strings.HasPrefix(path, "file://"):
		u, err := url.Parse(path)
		if err != nil {
			return "", err
		}
		path = u.Path
	}
	return filepath.Abs(path)
}
