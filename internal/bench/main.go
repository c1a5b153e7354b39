// Command bench measures patio against the plain way of doing the same thing on the same machine in the same run. It
// prints figures; it must not judge them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// benchmark is one of those that can be named on the command line. It hands each figure out as soon as it is known.
type benchmark struct {
	name string
	run  func(ctx context.Context, s settings, show func(figure)) error
}

var benchmarks = []benchmark{
	{"start", benchStart},
	{"stream", benchStream},
	{"gateway", benchGateway},
	{"scan", benchScan},
	{"ui", benchUI},
}

// settings are what every benchmark is given.
type settings struct {
	root  string // of the source tree
	runs  int    // of whatever is started again and again
	image string // as `patio new --image` takes it
	notes io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	runs := flags.Int("n", 10, "how often each side is started")
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: bench [-n RUNS] [all|%s]\n", strings.Join(names(), "|"))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *runs < 1 {
		return fmt.Errorf("-n is %d: it must be at least 1", *runs)
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	root, err := sourceRoot()
	if err != nil {
		return err
	}
	s := settings{root: root, runs: *runs, image: os.Getenv("PATIO_IMAGE"), notes: stderr}
	show := func(f figure) { fmt.Fprintln(stdout, f) }
	for _, b := range chosen {
		if err := b.run(ctx, s, show); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// choose returns the benchmarks that the arguments name. None, "." (what make passes on when nothing is asked for) and
// "all" mean every one.
func choose(args []string) ([]benchmark, error) {
	if len(args) == 0 || len(args) == 1 && (args[0] == "." || args[0] == "all") {
		return benchmarks, nil
	}
	var chosen []benchmark
	for _, arg := range args {
		found := false
		for _, b := range benchmarks {
			if b.name == arg {
				chosen, found = append(chosen, b), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no benchmark %q: all, %s", arg, strings.Join(names(), ", "))
		}
	}
	return chosen, nil
}

func names() []string {
	all := make([]string, 0, len(benchmarks))
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return all
}

// sourceRoot is the directory of go.mod, at or above the working directory.
func sourceRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the source tree: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find the source tree: no go.mod here or above: run it in patio's source tree")
		}
		dir = filepath.Dir(dir)
	}
}
