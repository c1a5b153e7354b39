package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// benchGateway runs the throughput benchmark of the network package, which needs its test's own guest, and compares a
// stream through the gateway with one over the host's loopback.
func benchGateway(ctx context.Context, s settings, show func(figure)) error {
	tool, err := goTool()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, tool, "test", "-run", "^$", "-bench", "^BenchmarkThroughput$", "-benchtime", "2s", "./sandbox/network")
	cmd.Dir, cmd.WaitDelay = s.root, time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test: %w: %s", err, out)
	}
	speeds, err := readSpeeds(strings.NewReader(string(out)))
	if err != nil {
		return err
	}
	figures := compareThroughput(speeds)
	if len(figures) == 0 {
		return errors.New("go test reported no throughput of the gateway")
	}
	for _, f := range figures {
		show(f)
	}
	return nil
}

// goTool finds the go command where the Makefile does: Debian's versioned Go isn't in PATH.
func goTool() (string, error) {
	path, err := exec.LookPath("go")
	if err == nil {
		return path, nil
	}
	found, globErr := filepath.Glob("/usr/lib/go-*/bin/go")
	if globErr != nil || len(found) == 0 {
		return "", fmt.Errorf("find go: %w", errors.Join(err, globErr))
	}
	return found[len(found)-1], nil
}

// readSpeeds reads the MB/s of each sub-benchmark from what go test prints.
func readSpeeds(r io.Reader) (map[string]float64, error) {
	speeds := map[string]float64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		unit := slices.Index(fields, "MB/s")
		if unit < 1 || !strings.HasPrefix(fields[0], "BenchmarkThroughput/") {
			continue
		}
		v, err := strconv.ParseFloat(fields[unit-1], 64)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", lines.Text(), err)
		}
		name := strings.TrimPrefix(fields[0], "BenchmarkThroughput/")
		// go test appends the number of processors, unless there is only one.
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		speeds[name] = v
	}
	return speeds, lines.Err()
}

// compareThroughput pairs the gateway's speeds with the loopback's of the same direction.
func compareThroughput(speeds map[string]float64) []figure {
	var figures []figure
	for _, direction := range []string{"download", "upload"} {
		loopback, ok := speeds["loopback/"+direction]
		if !ok {
			continue
		}
		for _, mtu := range []string{"mtu65520", "mtu1500"} {
			if v, ok := speeds["gateway/"+direction+"/"+mtu]; ok {
				figures = append(figures, figure{
					name:  fmt.Sprintf("gateway, one stream, %s, %s", direction, strings.Replace(mtu, "mtu", "MTU ", 1)),
					value: v, unit: "MB/s", to: "loopback", ref: loopback,
				})
			}
		}
	}
	return figures
}
