package chat

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/dustin/go-humanize"

	"patio/tui/pane"
)

// maxPicture bounds the file of one image, maxPictures those of a message: a request has
// room for 256 MiB, and base64 makes a third more of them.
const (
	maxPicture  = 20 << 20
	maxPictures = 8
)

// picture is an image that goes with a message.
type picture struct {
	name string
	mime string
	size int
	data string // base64
}

// label names a chip: one column a rune, whatever the file is called.
func (p *picture) label() []rune {
	name := []rune(p.name)
	for i, r := range name {
		if r < 0x20 || r > 0x7e {
			name[i] = standSign
		}
	}
	if len(name) > 24 {
		name = append(append(name[:14:14], '…'), name[len(name)-9:]...)
	}
	return []rune(fmt.Sprintf("[image %s, %s]", string(name), humanize.IBytes(uint64(p.size))))
}

// blocks are Pi's content blocks of images.
func blocks(pictures []*picture) (json.RawMessage, error) {
	if len(pictures) == 0 {
		return nil, nil
	}
	type block struct {
		Type string `json:"type"`
		Data string `json:"data"`
		Mime string `json:"mimeType"`
	}
	all := make([]block, len(pictures))
	for i, p := range pictures {
		all[i] = block{"image", p.data, p.mime}
	}
	return json.Marshal(all)
}

// pastedPath is the path of an image file, if that is all that a paste is: terminals paste
// the name of a file that is dropped on them, quoted in one way or another.
func pastedPath(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 4096 || strings.ContainsAny(text, "\n\r\x00\x1b") {
		return "", false
	}
	if len(text) > 1 && (text[0] == '\'' || text[0] == '"') && text[len(text)-1] == text[0] {
		text = text[1 : len(text)-1]
	} else if !strings.HasPrefix(text, "file://") {
		text = strings.NewReplacer(`\ `, " ", `\(`, "(", `\)`, ")", `\'`, "'", `\&`, "&").Replace(text)
	}
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
		text = u.Path
	}
	if !filepath.IsAbs(text) && !strings.HasPrefix(text, "~/") {
		return "", false
	}
	return text, slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp"}, strings.ToLower(filepath.Ext(text)))
}

// readPicture reads an image file; workspace is where a relative path begins.
func readPicture(path, workspace string) (*picture, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("read image: %w", err)
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(workspace, path)
	}
	// Not to wait for the other end of a pipe that is named like an image.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read image: %s is no file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPicture+1))
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if len(b) > maxPicture {
		return nil, fmt.Errorf("read image: %s is larger than %s", path, humanize.IBytes(maxPicture))
	}
	mime := http.DetectContentType(b)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mime) {
		return nil, fmt.Errorf("read image: %s is no PNG, JPEG, GIF or WebP", path)
	}
	return &picture{name: filepath.Base(path), mime: mime, size: len(b), data: base64.StdEncoding.EncodeToString(b)}, nil
}

var errPictures = errors.New("a message takes eight images")

// attach reads an image and puts its chip into the editor. Otherwise, text is what a paste
// is that turns out to be none.
func (c *Chat) attach(path, otherwise string) tea.Cmd {
	if len(c.ed.pictures()) >= maxPictures {
		return pane.Failed(errPictures)
	}
	workspace := c.o.Workspace
	return func() tea.Msg {
		p, err := readPicture(path, workspace)
		return didMsg{c, func() tea.Cmd {
			switch {
			case err != nil && otherwise != "":
				return c.removed(c.ed.paste(otherwise))
			case err != nil:
				return pane.Failed(err)
			case len(c.ed.pictures()) >= maxPictures:
				return pane.Failed(errPictures)
			}
			if !c.ed.addChip(&chip{label: p.label(), image: p}) {
				return pane.Failed(errPictures)
			}
			c.arrange()
			return nil
		}}
	}
}
