package sessions

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// CopyTo copies a session file, with another directory in its header: that is where Pi
// goes on. All other lines stay as they are, byte for byte. It never overwrites, and
// leaves nothing when it fails.
func CopyTo(from, to, cwd string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("copy session file: %s: %w", to, fs.ErrExist)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := renameio.NewPendingFile(to, renameio.WithPermissions(0o600))
	if err != nil {
		return fmt.Errorf("copy session file: %w", err)
	}
	defer func() { _ = out.Cleanup() }()
	w := bufio.NewWriterSize(out, 256<<10)
	if err := copyLines(w, in, cwd); err != nil {
		return fmt.Errorf("copy session file: %w", err)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("copy session file: %w", err)
	}
	return out.CloseAtomicallyReplace()
}

func copyLines(w io.Writer, r io.Reader, cwd string) error {
	lines := newLineReader(r)
	found := false
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			if !found {
				return errors.New("it has no header")
			}
			return nil
		}
		if err != nil {
			return err
		}
		text := l.text
		if !found && gjson.ValidBytes(text) && gjson.GetBytes(text, "type").Str == "session" {
			found = true
			if text, err = sjson.SetBytes(bytes.Clone(text), "cwd", cwd); err != nil {
				return err
			}
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		if l.ended {
			if _, err := w.Write([]byte{'\n'}); err != nil {
				return err
			}
		}
	}
}
