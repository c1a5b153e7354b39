package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"patio/engine/demo"
	"patio/engine/jsonl"
	"patio/engine/pi"
)

// barePi is the image's Pi with the image's Node, on the host: what patio is compared with.
type barePi struct {
	node, cli string
}

// npmFlags make npm install what the image build installs.
var npmFlags = []string{
	"ci", "--ignore-scripts", "--omit=dev", "--include=optional", "--no-audit", "--no-fund", "--no-update-notifier",
	"--no-progress", "--install-strategy=hoisted", "--libc=glibc",
}

// installPi installs Pi from the image's lock file into the user's cache, in a directory that the lock names. One that
// is there is whole: it gets its name last.
func installPi(ctx context.Context, s settings) (barePi, error) {
	source := filepath.Join(s.root, "sandbox", "image", "npm")
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		return barePi{}, fmt.Errorf("read the image's lock file: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return barePi{}, fmt.Errorf("find the cache directory: %w", err)
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "patio", "bench-pi-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(s.notes, "installing the same Pi on the host, for comparison (once)")
		if err := npmInstall(ctx, source, dir); err != nil {
			return barePi{}, fmt.Errorf("install Pi on the host: %w", err)
		}
	} else if err != nil {
		return barePi{}, fmt.Errorf("look for Pi on the host: %w", err)
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	modules := filepath.Join(dir, "node_modules")
	p := barePi{
		node: filepath.Join(modules, "node-linux-"+arch, "bin", "node"),
		cli:  filepath.Join(modules, "@earendil-works", "pi-coding-agent", "dist", "cli.js"),
	}
	for _, file := range []string{p.node, p.cli} {
		if _, err := os.Stat(file); err != nil {
			return barePi{}, fmt.Errorf("find Pi on the host (remove %s to install it again): %w", dir, err)
		}
	}
	return p, nil
}

func npmInstall(ctx context.Context, source, dir string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "bench-pi-part-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(part, name), b, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", npmFlags...)
	cmd.Dir, cmd.WaitDelay = part, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, out)
	}
	return os.Rename(part, dir)
}

// session is a bare Pi that runs.
type session struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *jsonl.Reader
	dir   string
}

// start starts Pi with the arguments, environment and files that patio would give it, in directories of its own.
// modelURL is where the scripted model is.
func (p barePi) start(ctx context.Context, modelURL string) (_ *session, err error) {
	dir, err := os.MkdirTemp("", "patio-bench-pi-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	agent, work := filepath.Join(dir, "agent"), filepath.Join(dir, "work")
	for _, d := range []string{agent, work, filepath.Join(dir, "sessions"), filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string][]byte{"settings.json": pi.Settings(), "models.json": demo.ModelsJSON(modelURL)} {
		if err := os.WriteFile(filepath.Join(agent, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	launch := pi.Launch{Model: model, AgentDir: agent, SessionDir: filepath.Join(dir, "sessions"), Home: dir}
	// The image's own paths come first.
	cmd := exec.CommandContext(ctx, p.node, append([]string{p.cli}, launch.Argv()[2:]...)...)
	cmd.Dir, cmd.WaitDelay = work, 5*time.Second
	for _, v := range launch.Env() {
		value := v.Value
		if v.Name == "TMPDIR" {
			value = filepath.Join(dir, "tmp") // private, as in a sandbox
		}
		cmd.Env = append(cmd.Env, v.Name+"="+value)
	}
	// A tool's processes end with Pi.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Pi: %w", err)
	}
	return &session{cmd: cmd, stdin: stdin, lines: jsonl.NewReader(stdout), dir: dir}, nil
}

// send writes one command.
func (s *session) send(line string) error {
	_, err := io.WriteString(s.stdin, line+"\n")
	return err
}

// until reads lines up to the first that satisfies last, and returns how many they were.
func (s *session) until(last func(pi.Message) bool) (lines int, err error) {
	for {
		line, err := s.lines.Next()
		if err != nil {
			return lines, fmt.Errorf("read from Pi: %w", err)
		}
		lines++
		if last(pi.ParseMessage(line)) {
			return lines, nil
		}
	}
}

// close ends Pi as patio does, by the end of its input, and removes its directories.
func (s *session) close() error {
	err := s.stdin.Close()
	return errors.Join(err, s.cmd.Wait(), os.RemoveAll(s.dir))
}
