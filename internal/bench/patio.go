package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"patio/engine"
	"patio/engine/api"
)

// model is what both sides run: no key, no network.
const model = "demo/tour"

// patio starts real sessions as `patio new` does, with the built binary as their supervisor, in directories that go
// with it. Only the images, and what is known about them, are the user's.
type patio struct {
	engine    *engine.Engine
	dir       string
	workspace string
	image     string
}

func newPatio(s settings) (*patio, error) {
	executable := filepath.Join(s.root, "bin", "patio")
	if _, err := os.Stat(executable); err != nil {
		return nil, fmt.Errorf("find patio (`make setup` builds it): %w", err)
	}
	dirs, err := engine.UserDirs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "patio-bench-")
	if err != nil {
		return nil, err
	}
	p := &patio{dir: dir, workspace: filepath.Join(dir, "work"), image: s.image}
	if err := os.Mkdir(p.workspace, 0o700); err != nil {
		return nil, errors.Join(err, p.close())
	}
	dirs.State, dirs.Runtime = filepath.Join(dir, "state"), filepath.Join(dir, "run")
	p.engine = engine.New(engine.Options{Dirs: dirs, Executable: executable, Environ: os.Environ()})
	return p, nil
}

// start returns once the session is ready: Pi has given its first reply.
func (p *patio) start(ctx context.Context) (api.Session, error) {
	launch, err := p.engine.Plan(ctx, engine.Request{Workspace: p.workspace, Model: model, Image: p.image, StartedBy: "bench"})
	if err != nil {
		return api.Session{}, err
	}
	return p.engine.Start(ctx, launch, nil)
}

// stop ends a session also when ctx has ended.
func (p *patio) stop(ctx context.Context, s api.Session) error {
	return p.engine.Stop(context.WithoutCancel(ctx), s, api.StopRequest{Reason: "measured"})
}

func (p *patio) close() error { return os.RemoveAll(p.dir) }
