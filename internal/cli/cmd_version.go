package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/sandbox/runsc"
)

// version is set by the linker for a release; a build from a source tree has its commit.
var version string

// versions are those of patio and of what it runs.
type versions struct {
	Patio  string        `json:"patio"`
	Commit string        `json:"commit,omitempty"`
	Go     string        `json:"go"`
	Runsc  string        `json:"runsc,omitempty"`
	Image  *api.ImageRef `json:"image,omitempty"`
}

func versionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Versions of patio, gVisor, the image, Pi and Node",
		Args:  arguments(cobra.NoArgs),
	}
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		v := ownVersion()
		// What isn't there has no version; doctor says how to get it.
		if executable, err := os.Executable(); err == nil {
			if path, err := runsc.Find(executable); err == nil {
				v.Runsc, _ = runscVersion(cmd.Context(), path)
			}
		}
		if e, err := a.engine(); err == nil {
			v.Image = currentImage(e)
		}
		return o.object(a, v, func(w io.Writer) error {
			pairs := [][2]string{{"patio", v.Patio}, {"commit", v.Commit}, {"Go", v.Go}, {"runsc", firstNonEmpty(v.Runsc, "not installed")}}
			if v.Image != nil {
				pairs = append(pairs, [2]string{"image", v.Image.Digest}, [2]string{"Pi", v.Image.Pi}, [2]string{"Node", v.Image.Node})
			} else {
				pairs = append(pairs, [2]string{"image", "not built"})
			}
			return fields(w, pairs...)
		})
	}
	return cmd
}

func ownVersion() versions {
	v := versions{Patio: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		v.Patio = firstNonEmpty(v.Patio, "unknown")
		return v
	}
	v.Go = info.GoVersion
	dirty := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = " (changed)"
			}
		}
	}
	if v.Commit != "" {
		v.Commit += dirty
	}
	if v.Patio == "" {
		v.Patio = firstNonEmpty(strings.TrimSuffix(info.Main.Version, "+dirty"), "(devel)")
	}
	return v
}

// probeTimeout bounds a program that only prints its version.
const probeTimeout = 10 * time.Second

// runscVersion is the first line of what runsc prints, without its name.
func runscVersion(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	argv := runsc.Command{Path: path}.Version()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(strings.TrimPrefix(first, "runsc version ")), nil
}

// currentImage is the image that a launch would take, nil when there is none.
func currentImage(e *engine.Engine) *api.ImageRef {
	store := e.Store()
	img, err := store.Resolve("")
	if err != nil {
		return nil
	}
	return &api.ImageRef{
		Digest: img.Manifest.Digest, Path: img.Path,
		Pi: img.Manifest.Versions["pi"], Node: img.Manifest.Versions["node"],
	}
}
