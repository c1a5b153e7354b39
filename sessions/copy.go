package sessions

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/tidwall/sjson"
)

// CopyOptions choose what a copy has that its source has not.
type CopyOptions struct {
	// Cwd is the directory in the header, where Pi goes on; "" is the source's.
	Cwd string
	// Repair mends what can be mended. Without it all lines are as they were, byte for
	// byte, but for the header with another Cwd.
	Repair bool
}

// Copied is what a copy has changed.
type Copied struct {
	Lines   int // that the copy has
	Dropped int // that are no entries
	Saved   int // entries that Pi couldn't read
	Changed int // line ends, encodings
}

// CopyTo copies a session file, with another directory in its header.
func CopyTo(from, to, cwd string) error {
	_, err := Copy(from, to, CopyOptions{Cwd: cwd})
	return err
}

// Repair writes a copy without the problems that a copy can mend, as Validate says. It
// refuses a file that would be no use even so.
func Repair(from, to string) (Copied, error) { return Copy(from, to, CopyOptions{Repair: true}) }

// Copy copies a session file. It never touches its source, never overwrites, and leaves
// nothing when it fails.
func Copy(from, to string, o CopyOptions) (Copied, error) {
	if _, err := os.Lstat(to); err == nil {
		return Copied{}, fmt.Errorf("copy session file: %s: %w", to, fs.ErrExist)
	}
	if o.Repair {
		report, err := Validate(from)
		if err != nil {
			return Copied{}, fmt.Errorf("copy session file: %w", err)
		}
		if p, hopeless := report.Hopeless(); hopeless {
			return Copied{}, fmt.Errorf("copy session file: %s can't be mended: %s", from, p)
		}
	}
	in, err := os.Open(from)
	if err != nil {
		return Copied{}, err
	}
	defer func() { _ = in.Close() }()
	out, err := renameio.NewPendingFile(to, renameio.WithTempDir(filepath.Dir(to)), renameio.WithPermissions(0o600))
	if err != nil {
		return Copied{}, fmt.Errorf("copy session file: %w", err)
	}
	defer func() { _ = out.Cleanup() }()
	done, err := writeCopy(in, out.File, o, true)
	if err == nil && done.Saved > 0 {
		var report Report
		if report, err = Validate(out.Name()); err == nil {
			// What was saved from damaged lines can be worse than nothing.
			if _, fatal := report.Fatal(); fatal {
				done, err = writeCopy(in, out.File, o, false)
			}
		}
	}
	if err != nil {
		return Copied{}, fmt.Errorf("copy session file: %w", err)
	}
	if err := out.Sync(); err != nil {
		return Copied{}, fmt.Errorf("copy session file: %w", err)
	}
	// A link, unlike a rename, fails when somebody made the file meanwhile.
	if err := os.Link(out.Name(), to); err != nil {
		return Copied{}, fmt.Errorf("copy session file: %w", err)
	}
	return done, nil
}

// writeCopy makes out what a copy of in should be.
func writeCopy(in, out *os.File, o CopyOptions, salvage bool) (Copied, error) {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return Copied{}, err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return Copied{}, err
	}
	if err := out.Truncate(0); err != nil {
		return Copied{}, err
	}
	c := copier{o: o, salvage: salvage, w: bufio.NewWriterSize(out, 256<<10), seen: map[string]bool{}}
	err := c.copy(in)
	return c.done, err
}

type copier struct {
	o       CopyOptions
	salvage bool // save entries from damaged lines
	w       *bufio.Writer
	header  bool
	seen    map[string]bool // the ids of entries
	done    Copied
}

func (c *copier) copy(in *os.File) error {
	lines := newLineReader(in)
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if l.tooLong() {
			return fmt.Errorf("line %d is too long", l.number)
		}
		text, keep, err := c.line(l)
		if err != nil {
			return fmt.Errorf("line %d: %w", l.number, err)
		}
		if !keep {
			continue
		}
		c.done.Lines++
		if _, err := c.w.WriteString(text); err != nil {
			return err
		}
		if l.ended || c.o.Repair {
			if err := c.w.WriteByte('\n'); err != nil {
				return err
			}
		}
	}
	if !c.header {
		return fmt.Errorf("it has no header: %w", ErrNoSession)
	}
	return c.w.Flush()
}

func (c *copier) line(l line) (text string, keep bool, err error) {
	text = l.text
	if c.o.Repair {
		if text, keep = c.mend(l); !keep {
			return "", false, nil
		}
	}
	if c.header || kindOf(text) != object || !parseRecord(text).isHeader() {
		return text, true, nil
	}
	c.header = true
	if c.o.Cwd == "" {
		return text, true, nil
	}
	text, err = setCwd(text, c.o.Cwd)
	return text, true, err
}

// setCwd sets a header's directory, wherever the header says it: of two, Pi takes the
// last.
func setCwd(header, cwd string) (string, error) {
	var err error
	for range 8 {
		if parseRecord(header).cwd.Str == cwd {
			return header, nil
		}
		if header, err = sjson.Delete(header, "cwd"); err != nil {
			return "", err
		}
		if parseRecord(header).cwd.Exists() {
			continue
		}
		if header, err = sjson.Set(header, "cwd", cwd); err != nil {
			return "", err
		}
	}
	return "", errors.New("the header says its directory too often")
}

// mend is a line as it should be, or nothing.
func (c *copier) mend(l line) (string, bool) {
	text := strings.TrimSuffix(l.text, "\r")
	if l.number == 1 {
		text = withoutMark(text)
	}
	if len(text) != len(l.text) {
		c.done.Changed++
	}
	if strings.TrimSpace(text) == "" {
		return "", false
	}
	if kindOf(text) != object {
		saved := ""
		if c.salvage && l.ended {
			saved, _ = salvage(text)
		}
		if saved == "" {
			c.done.Dropped++
			return "", false
		}
		c.done.Saved++
		text = saved
	}
	if valid := strings.ToValidUTF8(text, "\uFFFD"); valid != text {
		c.done.Changed++
		text = valid
	}
	r := parseRecord(text)
	if r.typ.Str == "session" {
		if c.header {
			c.done.Dropped++
			return "", false
		}
		return text, true
	}
	if id := idOf(r.id); id != "" {
		if c.seen[id] { // the same line: Validate would have refused another
			c.done.Dropped++
			return "", false
		}
		c.seen[id] = true
	}
	return text, true
}
