package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"patio": func() { os.Exit(Main()) }})
}

// TestScripts drives the command line on a machine of its own: empty directories, no
// runsc, no image.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			// The path of a socket is bounded, and that of a test's directory long.
			runtime, err := os.MkdirTemp("", "patio")
			if err != nil {
				return err
			}
			e.Defer(func() { require.NoError(t, os.RemoveAll(runtime)) })
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			for _, name := range []string{"STATE", "DATA", "CACHE", "CONFIG"} {
				e.Setenv("XDG_"+name+"_HOME", filepath.Join(e.WorkDir, name))
			}
			e.Setenv("XDG_RUNTIME_DIR", runtime)
			e.Setenv("TERM", "dumb")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		// Exit codes are part of what is tested: see exits.
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	})
}

// exits runs a program and wants an exact exit code: exits CODE PROGRAM ARGS…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}
