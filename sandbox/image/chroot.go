package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// runTimeout bounds one command in the scratch tree; they take seconds.
	runTimeout = 3 * time.Minute
	// commandRequest asks Pi for its commands; the adapter's is among them once it is loaded.
	commandRequest = `{"type":"get_commands","id":"1"}` + "\n"
)

// inside is a run of a command of the image in its scratch tree, without network and seeing only that tree.
func (b *build) inside(argv ...string) command {
	args := []string{
		"--map-root-user", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
		b.tools["sh"], "-c", b.recipe.Enter, "sh", b.root(),
	}
	// The first process of a pid namespace doesn't feel a SIGTERM, and there is nothing to tidy up in there.
	return command{path: b.tools["unshare"], args: append(args, argv...), dir: "/", stop: syscall.SIGKILL}
}

// enterable fails with the likely reason when not even true runs in the tree.
func (b *build) enterable(ctx context.Context) error {
	if err := b.inside("/bin/true").run(ctx); err != nil {
		return fmt.Errorf("enter the image's tree: %w\nthis needs user namespaces; where the kernel refuses them to ordinary users "+
			"(kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or inside a container), build as root on the host", err)
	}
	return nil
}

// warm runs Pi once in the tree with the adapter loaded, checks that it answers with the adapter's command, and keeps
// what jiti transpiled in JitiDir. jiti takes a cache file by the source's path and a hash of its content, never by
// time, so the cache stays valid in the image.
func (b *build) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	stdin, ask, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("warm the adapter: %w", err)
	}
	defer func() { _ = stdin.Close() }()
	defer func() { _ = ask.Close() }()
	// It fits in the pipe's buffer, so this doesn't wait for Pi.
	if _, err := io.WriteString(ask, commandRequest); err != nil {
		return fmt.Errorf("warm the adapter: %w", err)
	}
	var commands []string
	answered := false
	replies := &lineWriter{onLine: func(line string) {
		if names, ok := commandNames(line); ok {
			commands, answered = names, true
			// Pi ends at the end of its input.
			_ = ask.Close()
		}
	}}
	cmd := b.inside("/bin/sh", "-c", b.recipe.Warm, "sh", AdapterDir, JitiDir)
	cmd.stdin, cmd.stdout = stdin, replies
	if err := cmd.run(ctx); err != nil {
		return fmt.Errorf("warm the adapter: %w", err)
	}
	if !answered {
		return errors.New("warm the adapter: Pi ended without listing its commands")
	}
	if !slices.Contains(commands, "mcp") {
		return fmt.Errorf("warm the adapter: Pi lists no command mcp, only: %s", strings.Join(commands, ", "))
	}
	dir := filepath.Join(b.root(), filepath.FromSlash(JitiDir))
	files, err := filepath.Glob(filepath.Join(dir, "*.mjs"))
	if err != nil || len(files) == 0 {
		return errors.Join(errors.New("warm the adapter: jiti cached nothing"), err)
	}
	b.report(1, fmt.Sprintf("%d files", len(files)))
	return normalizeModes(dir)
}

// commandNames reads the reply to commandRequest; ok is false for any other line.
func commandNames(line string) (names []string, ok bool) {
	var reply struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Success bool   `json:"success"`
		Data    struct {
			Commands []struct {
				Name string `json:"name"`
			} `json:"commands"`
		} `json:"data"`
	}
	if json.Unmarshal([]byte(line), &reply) != nil || reply.Type != "response" || reply.ID != "1" || !reply.Success {
		return nil, false
	}
	for _, c := range reply.Data.Commands {
		names = append(names, c.Name)
	}
	return names, true
}

// inventory asks the tree's Pi for its providers.
func (b *build) inventory(ctx context.Context) (map[string]Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	out, err := b.inside("node", "--input-type=module", "--eval", b.recipe.Inventory).output(ctx)
	if err != nil {
		return nil, fmt.Errorf("list Pi's providers: %w", err)
	}
	return decodeProviders(out)
}

// probeTools asks every tool for its version and checks those that the lock file pins.
func (b *build) probeTools(ctx context.Context) ([]Tool, error) {
	node, err := nodePackage(b.recipe.Arch)
	if err != nil {
		return nil, err
	}
	pinned := map[string]string{
		"node": b.lock.version(node), "pi": b.lock.version(piPackage), adapterPackage: b.lock.version(adapterPackage),
	}
	tools := make([]Tool, 0, len(b.recipe.Tools))
	for i, probe := range b.recipe.Tools {
		b.report(float64(i)/float64(len(b.recipe.Tools)), probe.Name)
		runCtx, cancel := context.WithTimeout(ctx, runTimeout)
		out, err := b.inside(probe.Argv...).output(runCtx)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("run %s in the image: %w", probe.Name, err)
		}
		got := Version(out)
		if want, ok := pinned[probe.Name]; got == "" || ok && got != want {
			return nil, fmt.Errorf("run %s in the image: it says %q, want version %q", probe.Name, bytes.TrimSpace(out), want)
		}
		tools = append(tools, Tool{Name: probe.Name, Argv: probe.Argv, Expect: got})
	}
	return tools, nil
}
