package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Host is the machine that the limits are chosen for.
type Host struct {
	// Memory in bytes.
	Memory int64 `json:"memory"`
	// CPUs are the logical processors that this process may run on.
	CPUs int `json:"cpus"`
}

// HostInfo reads the machine's size; procRoot empty means /proc.
func HostInfo(procRoot string) (Host, error) {
	if procRoot == "" {
		procRoot = "/proc"
	}
	host := Host{CPUs: runtime.NumCPU()}
	path := filepath.Join(procRoot, "meminfo")
	data, err := os.ReadFile(path)
	if err != nil {
		return host, fmt.Errorf("read the machine's memory: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kibibytes, err := parseNumber(fields[1])
			if err != nil {
				return host, fmt.Errorf("read the machine's memory: %w", err)
			}
			host.Memory = kibibytes * kib
			return host, nil
		}
	}
	return host, fmt.Errorf("read the machine's memory: no MemTotal in %s", path)
}
