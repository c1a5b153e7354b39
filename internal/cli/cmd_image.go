package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"patio/engine"
	"patio/engine/api"
	"patio/sandbox/image"
)

func imageCommand(a *app) *cobra.Command {
	return parent("image", "The images that sandboxes are made of",
		imageBuildCommand(a), imageListCommand(a), imageVerifyCommand(a), imageRemoveCommand(a))
}

func imageBuildCommand(a *app) *cobra.Command {
	var pi string
	var force, quiet bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the image of this version of patio, or one with another Pi",
		Args:  arguments(cobra.NoArgs),
	}
	f := cmd.Flags()
	f.StringVar(&pi, "pi", "", "an exact version of Pi, for an image beside the pinned one")
	f.BoolVar(&force, "force", false, "build although the image is there")
	f.BoolVarP(&quiet, "quiet", "q", false, "print the digest only")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := a.engine()
		if err != nil {
			return err
		}
		dirs, err := engine.UserDirs()
		if err != nil {
			return err
		}
		store := e.Store()
		p := a.buildProgress(quiet)
		img, err := image.Build(cmd.Context(), image.Options{
			Store: &store, CacheDir: dirs.Cache, Pi: pi, Force: force, Progress: p.show, Log: a.log(),
		})
		p.done()
		if err != nil {
			return causeOf(cmd.Context(), err)
		}
		if quiet {
			_, err = fmt.Fprintln(a.display(), img.Manifest.Digest)
			return err
		}
		return writeImage(a.display(), img)
	}
	return cmd
}

func writeImage(w io.Writer, img image.Image) error {
	return fields(w,
		[2]string{"Image", img.Manifest.Digest},
		[2]string{"File", img.Path},
		[2]string{"Size", formatBytes(img.Manifest.Size)},
		[2]string{"Pi", img.Manifest.Versions["pi"]},
		[2]string{"Node", img.Manifest.Versions["node"]},
	)
}

// buildProgress shows a build: a bar on a terminal, a line for each step elsewhere.
type buildProgress struct {
	a     *app
	bar   *progressbar.ProgressBar
	quiet bool
	step  int
	began time.Time
}

// barSteps is the resolution of the bar.
const barSteps = 1000

func (a *app) buildProgress(quiet bool) *buildProgress {
	p := &buildProgress{a: a, quiet: quiet, step: -1, began: time.Now()}
	if f, ok := a.fancy(a.stderr); ok && !quiet {
		p.bar = progressbar.NewOptions(barSteps,
			progressbar.OptionSetWriter(f),
			progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionSetTheme(progressbar.ThemeASCII),
		)
	}
	return p
}

// barText keeps the words beside the bar to what a terminal of 80 columns holds.
const barText = 38

func (p *buildProgress) show(b image.Progress) {
	if p.quiet {
		return
	}
	if p.bar == nil {
		if b.Index != p.step {
			p.step = b.Index
			p.a.note("[%d/%d] %s (%s)", b.Index, b.Total, b.Step, formatAge(time.Since(p.began)))
		}
		return
	}
	text := fmt.Sprintf("[%d/%d] %s", b.Index, b.Total, b.Step)
	if b.Detail != "" {
		text += ": " + b.Detail
	}
	p.bar.Describe(shorten(cleanLine(text), barText))
	done := float64(max(b.Index-1, 0)) + max(b.Fraction, 0)
	_ = p.bar.Set(int(done / float64(max(b.Total, 1)) * barSteps)) // a bar that can't be drawn is no failure
}

func (p *buildProgress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

func imageListCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List images", Args: arguments(cobra.NoArgs)}
	o := addListOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := o.check(); err != nil {
			return err
		}
		e, err := a.engine()
		if err != nil {
			return err
		}
		store := e.Store()
		images, err := store.List()
		if err != nil {
			return err
		}
		current := ""
		if img, err := store.Resolve(""); err == nil {
			current = img.Path
		}
		rows := make([]imageRow, 0, len(images))
		for _, img := range images {
			m := img.Manifest
			rows = append(rows, imageRow{
				Digest: m.Digest, Pi: m.Versions["pi"], Node: m.Versions["node"], Suite: m.Suite, Arch: m.Arch,
				Size: m.Size, Created: m.Created, Path: img.Path, ReadOnly: img.ReadOnly, Current: img.Path == current,
			})
		}
		return imageListing(time.Now()).write(a, o, rows)
	}
	return cmd
}

// imageRow is an image as listings give it; the manifest has more.
type imageRow struct {
	Digest   string    `json:"digest"`
	Pi       string    `json:"pi"`
	Node     string    `json:"node"`
	Suite    string    `json:"suite"`
	Arch     string    `json:"arch"`
	Size     int64     `json:"size_bytes"`
	Created  time.Time `json:"created"`
	Path     string    `json:"path"`
	ReadOnly bool      `json:"read_only"`
	// Current is the one that a launch takes by default.
	Current bool `json:"current"`
}

func imageListing(now time.Time) listing[imageRow] {
	return listing[imageRow]{
		id: func(i imageRow) string { return i.Digest },
		columns: []column[imageRow]{
			{title: "DIGEST", cell: func(i imageRow) string { return i.Digest[:min(12, len(i.Digest))] }},
			{title: "PI", cell: func(i imageRow) string { return i.Pi }},
			{title: "NODE", cell: func(i imageRow) string { return i.Node }},
			{title: "BASE", cell: func(i imageRow) string { return i.Suite + "/" + i.Arch }},
			{title: "SIZE", right: true, cell: func(i imageRow) string { return formatBytes(i.Size) }},
			{title: "CREATED", cell: func(i imageRow) string { return formatAge(now.Sub(i.Created)) + " ago" }},
			{title: "USE", cell: func(i imageRow) string {
				switch {
				case i.Current:
					return "default"
				case i.ReadOnly:
					return "system"
				}
				return "-"
			}},
		},
	}
}

func imageVerifyCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [REF]",
		Short: "Compute an image's digest again and run each of its tools in a sandbox",
		Args:  arguments(cobra.MaximumNArgs(1)),
	}
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		e, err := a.engine()
		if err != nil {
			return err
		}
		img, err := resolveImage(e, args)
		if err != nil {
			return err
		}
		return a.verifyImage(cmd.Context(), e, img, o, e.RunInImage)
	}
	return cmd
}

// runInImage runs a program in a sandbox of an image and returns its stdout.
type runInImage func(ctx context.Context, img image.Image, argv []string) ([]byte, error)

// imageReport is what verify found.
type imageReport struct {
	Digest   string       `json:"digest"`
	DigestOK bool         `json:"digest_ok"`
	Tools    []toolReport `json:"tools"`
}

type toolReport struct {
	Name     string `json:"name"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	OK       bool   `json:"ok"`
	Error    string `json:"error,omitempty"`
}

// verifyImage checks the bytes first: the tools of a changed image prove nothing.
func (a *app) verifyImage(ctx context.Context, e *engine.Engine, img image.Image, o *output, run runInImage) error {
	store := e.Store()
	if err := store.VerifyDigest(ctx, img, nil); err != nil {
		return causeOf(ctx, err)
	}
	report := imageReport{Digest: img.Manifest.Digest, DigestOK: true}
	reports, failed := image.VerifyTools(ctx, img, func(ctx context.Context, argv []string) ([]byte, error) {
		return run(ctx, img, argv)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, r := range reports {
		t := toolReport{Name: r.Tool.Name, Expected: r.Tool.Expect, Got: r.Got, OK: r.Err == nil}
		if r.Err != nil {
			t.Error = r.Err.Error()
		}
		report.Tools = append(report.Tools, t)
	}
	err := o.object(a, report, func(w io.Writer) error {
		if err := fields(w, [2]string{"Image", report.Digest}, [2]string{"Digest", "ok: computed again from the file"}); err != nil {
			return err
		}
		return sectionTable(w, "Tools, run in a sandbox of this image", toolListing, report.Tools)
	})
	return errors.Join(err, failed)
}

var toolListing = listing[toolReport]{columns: []column[toolReport]{
	{cell: func(t toolReport) string {
		if t.OK {
			return "ok"
		}
		return "FAIL"
	}},
	{cell: func(t toolReport) string { return t.Name }},
	{cell: func(t toolReport) string { return firstNonEmpty(t.Error, t.Got) }},
}}

// resolveImage is the named image, or the default one.
func resolveImage(e *engine.Engine, args []string) (image.Image, error) {
	store := e.Store()
	if len(args) > 0 {
		return store.Resolve(args[0])
	}
	img, err := store.Resolve("")
	if errors.Is(err, image.ErrNoImage) {
		return img, api.Errorf(api.CodeMissing, "", "%w", err)
	}
	return img, err
}

func imageRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rm REF…",
		Short: "Remove images that no session uses",
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := a.engine()
			if err != nil {
				return err
			}
			store := e.Store()
			var images []image.Image
			var errs []error
			for _, ref := range args {
				img, err := store.Resolve(ref)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				images = append(images, img)
			}
			if len(errs) > 0 {
				return errors.Join(errs...)
			}
			for _, img := range images {
				if err := store.Remove(img); err != nil {
					errs = append(errs, err)
					continue
				}
				if _, err := fmt.Fprintln(a.display(), img.Manifest.Digest); err != nil {
					return err
				}
			}
			return errors.Join(errs...)
		},
	}
}
