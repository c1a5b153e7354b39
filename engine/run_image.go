package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"patio/engine/api"
	"patio/sandbox"
	"patio/sandbox/image"
	"patio/sandbox/limits"
	"patio/sandbox/network"
	"patio/sandbox/network/policy"
	"patio/sandbox/runsc"
)

// runTimeout bounds one program of an image that is being verified.
const runTimeout = 60 * time.Second

// RunInImage runs a program of an image in a sandbox of its own, without a workspace and
// without network, and returns its stdout.
func (e *Engine) RunInImage(ctx context.Context, img image.Image, argv []string) ([]byte, error) {
	return e.runInImage(ctx, img, runsc.Systrap, argv)
}

func (e *Engine) runInImage(ctx context.Context, img image.Image, platform string, argv []string) ([]byte, error) {
	if err := checkMachine(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	if err := e.o.Dirs.prepare(); err != nil {
		return nil, err
	}
	bin, err := runsc.Find(e.o.Executable)
	if err != nil {
		return nil, api.Errorf(api.CodeMissing, "", "%w", err)
	}
	host, err := limits.HostInfo("")
	if err != nil {
		return nil, err
	}
	live, err := policy.NewLive()
	if err != nil {
		return nil, err
	}
	id := newID()
	dir := e.o.Dirs.scratch(id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	box, err := sandbox.Start(ctx, sandbox.Options{
		Plan: sandbox.Plan{
			ID: id, Image: sandbox.Image{Digest: img.Manifest.Digest, Path: img.Path}, Cwd: "/",
			// Something to be in the sandbox while the program runs beside it.
			Argv:   []string{"/usr/bin/sleep", "infinity"},
			Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + sandbox.Home, "LANG=C.UTF-8"},
			Owner:  sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())},
			Limits: limits.Default(host.Memory, host.CPUs), Platform: platform,
		},
		Dir: dir, Executable: e.o.Executable, Runsc: bin, Stdin: null, Stdout: null, Stderr: null,
		Network: network.Config{Policy: live}, Log: e.o.Log,
	})
	if err != nil {
		return nil, err
	}
	out, err := box.Output(ctx, argv...)
	return out, errors.Join(err, box.Close())
}
