package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"patio/engine"
)

// app is one run of the command line: its streams and what the commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)

	debug bool
	// parsed is set once the flags are known, and jsonErrors then says how errors look.
	parsed     bool
	jsonErrors bool

	// root is the tree of commands, whose flags the configuration file can set.
	root *cobra.Command
	// read is the configuration file once it was read, and readErr why it can't be used.
	// goOn says that the command does without it then.
	read    *settings
	readErr error
	goOn    bool
	// origins says where the values of the command's flags come from, by their names.
	origins map[string]origin

	eng *engine.Engine
}

// engine returns the engine on the user's directories, made at first use: help and
// version need none.
func (a *app) engine() (*engine.Engine, error) {
	if a.eng != nil {
		return a.eng, nil
	}
	dirs, err := engine.UserDirs()
	if err != nil {
		return nil, err
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find patio's own executable: %w", err)
	}
	s, err := a.settings()
	if err != nil && !a.goOn {
		return nil, err
	}
	a.eng = engine.New(engine.Options{
		Dirs: dirs, Executable: executable, Environ: os.Environ(), SessionDirs: s.SessionDirs, Log: a.log(),
	})
	return a.eng, nil
}

// log is where the packages below say what went wrong without failing.
func (a *app) log() *slog.Logger {
	level := slog.LevelWarn
	if a.debug {
		level = slog.LevelDebug
	}
	w := newCleaner(a.stderr, dropHazards)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// file returns the file behind a stream if that is a terminal.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// display is stdout for text: sanitized on a terminal, raw otherwise, where bytes are
// data for another program.
func (a *app) display() io.Writer {
	if _, ok := terminal(a.stdout); ok {
		return newCleaner(a.stdout, dropHazards)
	}
	return a.stdout
}

// data is stdout for JSON: on a terminal with hazards escaped, which leaves its meaning
// alone.
func (a *app) data() io.Writer {
	if _, ok := terminal(a.stdout); ok {
		return newCleaner(a.stdout, escapeJSON)
	}
	return a.stdout
}

// errors is stderr for what people read.
func (a *app) errors() io.Writer { return newCleaner(a.stderr, dropHazards) }

// note writes one line for a person to stderr.
func (a *app) note(format string, args ...any) {
	// What stderr doesn't take can't be told anywhere else.
	_, _ = fmt.Fprintln(a.stderr, cleanLine(fmt.Sprintf(format, args...)))
}

// width is the terminal's width in columns, 0 when stdout is no terminal: output for
// programs is never cut.
func (a *app) width() int {
	f, ok := terminal(a.stdout)
	if !ok {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// fancy reports whether a stream is a terminal that understands cursor movement.
func (a *app) fancy(stream any) (*os.File, bool) {
	f, ok := terminal(stream)
	if !ok {
		return nil, false
	}
	if t, _ := a.lookupEnv("TERM"); t == "" || t == "dumb" {
		return nil, false
	}
	return f, true
}

// cleanup returns a context for what must be done after ctx was cancelled. It keeps the
// values of ctx and has the teardown's own deadline.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
}
