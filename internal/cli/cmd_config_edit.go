package cli

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"patio/engine/api"
)

func configCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say what is wrong with the configuration file, or with another one",
		Long: `check reads the configuration file, or FILE in its place, and names every fault with its
line. It exits with 3 when there is one.`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := settingsPath()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				path = args[0]
			}
			s, err := loadSettings(path, settableFlags(cmd.Root()))
			switch {
			case err != nil:
				return err
			case s.Exists:
				_, err = fmt.Fprintf(a.display(), "%s: nothing is wrong with it\n", cleanLine(path))
			case len(args) > 0:
				return api.Errorf(api.CodeNotFound, "", "%s doesn't exist", path)
			default:
				_, err = fmt.Fprintf(a.display(), "%s isn't there: the defaults are in effect\n", cleanLine(path))
			}
			return err
		},
	}
}

func configEditCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Open the configuration file in $VISUAL or $EDITOR, and check it afterwards",
		Long: `edit opens the configuration file in $VISUAL, $EDITOR or vi. Without a file it makes one
first, in which everything is explained and commented out. Afterwards it says what is
wrong with the file, which stays as it was written.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.editSettings(cmd) },
	}
}

func (a *app) editSettings(cmd *cobra.Command) error {
	path, err := settingsPath()
	if err != nil {
		return err
	}
	// Before the file is made: without an editor nothing is.
	editor, err := a.editor()
	if err != nil {
		return err
	}
	if err := makeSettings(path); err != nil {
		return err
	}
	if err := a.runEditor(cmd.Context(), editor, path); err != nil {
		return err
	}
	if _, err := loadSettings(path, settableFlags(cmd.Root())); err != nil {
		e := classify(err)
		return api.Errorf(e.Code, "the file is kept as it is; "+e.Hint, "%w", err)
	}
	a.note("%s: nothing is wrong with it", path)
	return nil
}

// editor is the command that opens a file, in the shell's words: it may have arguments.
func (a *app) editor() (string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v, _ := a.lookupEnv(name); v != "" {
			return v, nil
		}
	}
	// vi makes sense on a terminal only.
	if _, interactive := terminal(a.stdin); interactive {
		if path, err := exec.LookPath("vi"); err == nil {
			return shellQuote(path), nil
		}
	}
	return "", api.Errorf(api.CodeMissing, "set EDITOR to your editor", "there is no editor: neither VISUAL nor EDITOR is set, and vi can't be used here")
}

// editorCommand opens a file in an editor. The shell splits the editor's words, as git has
// it done; the path is no part of its text.
func editorCommand(ctx context.Context, editor, path string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$@"`, editor, path)
	// It may have unsaved text, and then deserves to hear of it.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	return cmd
}

// runEditor waits for the editor. It gets the terminal as it is.
func (a *app) runEditor(ctx context.Context, editor, path string) error {
	cmd := editorCommand(ctx, editor, path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("run the editor %s: %w", editor, err)
	}
	return nil
}

//go:embed config.toml
var settingsTemplate []byte

// makeSettings makes the configuration file if nothing is there, whole or not at all.
func makeSettings(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the configuration's directory: %w", err)
	}
	if err := renameio.WriteFile(path, bytes.Clone(settingsTemplate), 0o600); err != nil {
		return fmt.Errorf("make the configuration: %w", err)
	}
	return nil
}
