package mounts

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadHost reads what CheckWorkspace needs to know. Private directories are the
// caller's to name.
func ReadHost(private ...string) Host {
	h := Host{UID: os.Geteuid(), Private: physical(private)}
	if home, err := os.UserHomeDir(); err == nil {
		h.Homes = append(h.Homes, home)
	}
	h.Homes = append(h.Homes, accountHomes("/etc/passwd")...)
	h.Homes = physical(h.Homes)
	return h
}

// firstUser is the first uid that Debian gives to people; root's home counts too.
const firstUser = 1000

// accountHomes lists the home directories of people. Those of services are "/",
// /nonexistent or a part of /var, which say nothing about credentials.
func accountHomes(passwd string) []string {
	f, err := os.Open(passwd)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var homes []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 7 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		if err != nil || uid != 0 && uid < firstUser || fields[0] == "nobody" {
			continue
		}
		homes = append(homes, fields[5])
	}
	return homes
}

// physical cleans paths and adds what symbolic links in them lead to.
func physical(paths []string) []string {
	var out []string
	for _, p := range paths {
		if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
			continue
		}
		p = filepath.Clean(p)
		out = append(out, p)
		if real, err := filepath.EvalSymlinks(p); err == nil && real != p {
			out = append(out, real)
		}
	}
	return out
}
