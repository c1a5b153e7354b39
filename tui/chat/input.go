package chat

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"patio/tui/pane"
)

// InputStore keeps what was typed, by workspace, from one session to the next. Load
// answers with an InputsMsg.
type InputStore interface {
	Load(workspace string) tea.Cmd
	Append(workspace, text string) tea.Cmd
}

// InputsMsg is what was typed in a workspace before, oldest first.
type InputsMsg struct {
	Workspace string
	Texts     []string
}

// Bounds on one workspace's file, and on a text that is kept: a longer one is a document,
// and stands in the session's own file anyway.
const (
	maxInputs     = 1000
	maxInputBytes = 1 << 20
	maxInput      = 64 << 10
)

// InputFile is an InputStore in a directory: one file of JSON lines for each workspace.
// Windows of several programs may write at once; each line is appended under a lock.
type InputFile struct{ dir string }

// NewInputFile returns a store in a directory, which is made when there is something to keep.
func NewInputFile(dir string) InputStore { return InputFile{dir} }

type inputLine struct {
	Time      time.Time `json:"time"`
	Workspace string    `json:"workspace"`
	Text      string    `json:"text"`
}

// path names a file by its workspace's hash: a path is no file name.
func (f InputFile) path(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(f.dir, hex.EncodeToString(sum[:8])+".jsonl")
}

// Load implements InputStore.
func (f InputFile) Load(workspace string) tea.Cmd {
	return func() tea.Msg {
		lines, _, err := f.read(workspace)
		if err != nil {
			return pane.ErrorMsg{Err: fmt.Errorf("read what was typed before: %w", err)}
		}
		texts := make([]string, len(lines))
		for i, l := range lines {
			texts[i] = l.Text
		}
		return InputsMsg{workspace, texts}
	}
}

// Append implements InputStore.
func (f InputFile) Append(workspace, text string) tea.Cmd {
	if text == "" || len(text) > maxInput {
		return nil
	}
	return func() tea.Msg {
		if err := f.append(workspace, text); err != nil {
			return pane.ErrorMsg{Err: fmt.Errorf("keep what was typed: %w", err)}
		}
		return nil
	}
}

func (f InputFile) append(workspace, text string) (err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(f.dir, ".lock"), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	line, err := json.Marshal(inputLine{time.Now().UTC(), workspace, text})
	if err != nil {
		return err
	}
	lines, size, err := f.read(workspace)
	if err != nil {
		return err
	}
	if len(lines) >= maxInputs || size+len(line)+2 > maxInputBytes {
		return f.rewrite(workspace, lines, line)
	}
	file, err := os.OpenFile(f.path(workspace), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	// The line end in front mends one that a full disk left out; readers skip empty lines.
	if torn(f.path(workspace), size) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// torn says that a file doesn't end with a line end.
func torn(path string, size int) bool {
	file, err := os.Open(path)
	if err != nil || size == 0 {
		return false
	}
	defer func() { _ = file.Close() }()
	var last [1]byte
	_, err = file.ReadAt(last[:], int64(size)-1)
	return err == nil && last[0] != '\n'
}

// rewrite drops the older half, so that it isn't done at every line.
func (f InputFile) rewrite(workspace string, lines []inputLine, last []byte) error {
	size := len(last) + 1
	from := len(lines)
	var kept [][]byte
	for from > 0 && len(lines)-from < maxInputs/2 {
		b, err := json.Marshal(lines[from-1])
		if err != nil {
			return err
		}
		if size += len(b) + 1; size > maxInputBytes/2 {
			break
		}
		kept = append(kept, b)
		from--
	}
	var out bytes.Buffer
	for i := len(kept) - 1; i >= 0; i-- {
		out.Write(append(kept[i], '\n'))
	}
	out.Write(append(last, '\n'))
	return renameio.WriteFile(f.path(workspace), out.Bytes(), 0o600)
}

// read returns the lines of a workspace's file that are some, and its size. A line that
// was torn, or is another program's, is skipped.
func (f InputFile) read(workspace string) (lines []inputLine, size int, err error) {
	file, err := os.Open(f.path(workspace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	// One that outgrew its bound was written by something else: what is read of it is bounded.
	r := bufio.NewReader(io.LimitReader(file, 2*maxInputBytes))
	for {
		b, err := r.ReadBytes('\n')
		size += len(b)
		var l inputLine
		if json.Unmarshal(b, &l) == nil && l.Text != "" && l.Workspace == workspace {
			lines = append(lines, l)
		}
		if errors.Is(err, io.EOF) {
			return lines[max(len(lines)-maxInputs, 0):], size, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
}
