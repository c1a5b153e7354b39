package image

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// readDpkg lists the installed packages of a dpkg status file, sorted by name.
func readDpkg(path string) ([]DebianPackage, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("list Debian packages: %w", err)
	}
	defer func() { _ = f.Close() }()
	var packages []DebianPackage
	var current DebianPackage
	installed := false
	flush := func() {
		if installed && current.Name != "" {
			packages = append(packages, current)
		}
		current, installed = DebianPackage{}, false
	}
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		key, value, ok := strings.Cut(scanner.Text(), ": ")
		switch {
		case scanner.Text() == "":
			flush()
		case !ok || strings.HasPrefix(key, " "):
		case key == "Package":
			current.Name = value
		case key == "Version":
			current.Version = value
		case key == "Architecture":
			current.Arch = value
		case key == "Status":
			installed = value == "install ok installed"
		}
	}
	flush()
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("list Debian packages: %w", err)
	}
	if len(packages) == 0 {
		return nil, errors.New("list Debian packages: none installed")
	}
	slices.SortFunc(packages, func(a, b DebianPackage) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Arch, b.Arch))
	})
	return packages, nil
}
