package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"patio/engine"
)

// importTree makes n session files, of which every tenth is broken.
func importTree(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"a%d","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/gone"}`, i) + "\n" +
			`{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hello","timestamp":1}}` + "\n"
		if i%10 == 3 {
			text += strings.Repeat(`{"type":"label","id":"2","parentId":"1"}`+"\n", 2)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%04d.jsonl", i)), []byte(text), 0o600))
	}
	return dir
}

// importArgs names the files of a tree, each by itself: a directory is in the order of
// the listing.
func importArgs(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	return append([]string{"sessions", "import"}, files...)
}

func importDirs(t *testing.T) engine.Dirs {
	t.Helper()
	root := t.TempDir()
	return engine.Dirs{
		State: filepath.Join(root, "state"), Data: filepath.Join(root, "data"), Cache: filepath.Join(root, "cache"),
		Runtime: filepath.Join(root, "run"), Config: filepath.Join(root, "config"),
	}
}

// TestImportBar runs an import on a terminal and reads what a person sees.
func TestImportBar(t *testing.T) {
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer func() { _ = master.Close() }()
	require.NoError(t, pty.Setsize(slave, &pty.Winsize{Rows: 24, Cols: 100}))
	seen := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(master) // ends with EIO when the other end is closed
		seen <- string(b)
	}()
	a := &app{
		stdin: strings.NewReader(""), stdout: slave, stderr: slave,
		lookupEnv: func(name string) (string, bool) { return map[string]string{"TERM": "xterm"}[name], name == "TERM" },
		eng:       engine.New(engine.Options{Dirs: importDirs(t), Log: slog.New(slog.DiscardHandler)}),
	}
	code := a.run(t.Context(), importArgs(t, importTree(t, 20)))
	require.NoError(t, slave.Close())
	raw := <-seen
	require.Equal(t, 3, code, raw)
	require.Contains(t, raw, "importing")
	require.Contains(t, raw, "(19/20")
	// What is left on the screen when a line that is cleared is gone.
	screen := regexp.MustCompile(`[^\n]*\x1b\[2K\r`).ReplaceAllString(strings.ReplaceAll(raw, "\r\n", "\n"), "")
	require.NotContains(t, screen, "importing")
	require.NotContains(t, screen, "\x1b")
	require.NotContains(t, screen, "[1/20]", "the bar counts")
	require.Regexp(t, `^\S+s0000\.jsonl: imported \w+\n`, screen)
	require.Regexp(t, `(?m)^\S+s0003\.jsonl: refused$`, screen)
	before, after, found := strings.Cut(screen, "\nRefused:\n")
	require.True(t, found)
	require.Equal(t, 20, strings.Count(before, ".jsonl: "))
	require.NotContains(t, before, "fatal")
	require.Equal(t, 2, strings.Count(after, ".jsonl: refused"))
	require.Contains(t, after, `fatal      line 4`)
	require.Contains(t, after, "20 files: 18 imported, 2 refused")
}

// TestImportInterrupted interrupts the real program once it has told of a file.
func TestImportInterrupted(t *testing.T) {
	dir := importTree(t, 2000)
	home := t.TempDir()
	patio := func(ctx context.Context, args ...string) *exec.Cmd {
		exe, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(ctx, exe)
		cmd.Args = append([]string{"patio"}, args...) // see TestMain
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_RUNTIME_DIR=" + home}
		cmd.WaitDelay = 10 * time.Second
		return cmd
	}
	cmd := patio(t.Context(), importArgs(t, dir)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	told := 0
	refusals := false
	for lines.Scan() {
		if told == 0 {
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		}
		refusals = refusals || lines.Text() == "Refused:"
		if !refusals && strings.Contains(lines.Text(), ".jsonl: imported ") {
			told++
		}
	}
	var exit *exec.ExitError
	require.True(t, errors.As(cmd.Wait(), &exit), errs.String())
	require.Equal(t, 130, exit.ExitCode(), errs.String())
	require.Regexp(t, fmt.Sprintf(`\d+ of 2000 files done: %d imported`, told), errs.String())
	out, err := patio(t.Context(), "ls", "-a", "-q").Output()
	require.NoError(t, err)
	require.Equal(t, told, bytes.Count(out, []byte("\n")), "what was told is what there is")
	require.Less(t, told, 1800)
}
