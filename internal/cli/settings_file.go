package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"patio/engine/api"
)

// maxSettingsFile is far above what a person writes. It bounds what a wrong file, such as
// a log that was linked there, costs.
const maxSettingsFile = 256 << 10

// loadSettings reads and checks the configuration file. A missing one is no error. The
// settings are never nil: with an error they are what holds without a file.
func loadSettings(path string, flags map[string]settable) (*settings, error) {
	none := &settings{Path: path}
	text, err := readSettings(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	none.Exists = true
	if err != nil {
		return none, err
	}
	home, _ := os.UserHomeDir() // an unknown one matters where ~ is written
	s, problems := parseSettings(text, flags, home)
	if len(problems) > 0 {
		return none, api.Errorf(api.CodeConfig, "`patio config edit` opens it", "%w", &settingsError{path: path, problems: problems})
	}
	s.Path, s.Exists = path, true
	return s, nil
}

// readSettings reads the file if nobody but the user and root could have written it: it
// opens sandboxes. A symlink is followed, as managers of dotfiles make them.
func readSettings(path string) ([]byte, error) {
	link, err := os.Lstat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if err := checkOwner(path, link); err != nil {
		return nil, err
	}
	// Not to wait for a writer where the file is a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, api.Errorf(api.CodeConfig, "mend or remove the link", "the configuration %s is a link to a file that isn't there", path)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, api.Errorf(api.CodeConfig, "", "the configuration %s is no regular file", path)
	}
	if err := checkOwner(path, info); err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return nil, api.Errorf(api.CodeConfig, "chmod go-w "+shellQuote(path), "the configuration %s can be written by others (mode %04o), who could open your sandboxes with it", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSettingsFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(text) > maxSettingsFile {
		return nil, api.Errorf(api.CodeConfig, "", "the configuration %s is larger than %s", path, formatBytes(maxSettingsFile))
	}
	return text, nil
}

func unreadable(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return api.Errorf(api.CodeConfig, "", "the configuration %s can't be read: %w", path, err)
}

// checkOwner refuses a file that is neither the user's nor root's.
func checkOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: the owner is unknown", path)
	}
	if uid := os.Geteuid(); st.Uid != 0 && int(st.Uid) != uid {
		command := fmt.Sprintf("chown %d %s", uid, shellQuote(path))
		if info.Mode().Type() == fs.ModeSymlink {
			command = fmt.Sprintf("chown -h %d %s", uid, shellQuote(path))
		}
		if uid != 0 {
			command = "sudo " + command
		}
		return api.Errorf(api.CodeConfig, command, "the configuration %s belongs to the user %d, who could open your sandboxes with it", path, st.Uid)
	}
	return nil
}
