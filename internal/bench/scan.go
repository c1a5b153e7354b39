package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"patio/sessions/catalog"
	"patio/sessions/catalog/benchtree"
)

// absentWord is in none of the conversations, so that a search goes through all of them.
const absentWord = "xylophonic"

// benchScan lists 1,000 session files of 145 MB, against Pi's own list of the same files,
// and searches them, against ripgrep, or grep where there is no ripgrep.
func benchScan(ctx context.Context, s settings, show func(figure)) (err error) {
	bare, err := installPi(ctx, s)
	if err != nil {
		return err
	}
	pi := benchtree.Pi{Node: bare.node, Dist: filepath.Dir(bare.cli)}
	dir, err := os.MkdirTemp("", "patio-bench-scan-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := benchtree.Write(dir, benchtree.Standard); err != nil {
		return err
	}
	roots := []catalog.Root{{Dir: filepath.Join(dir, "sessions")}}
	index := filepath.Join(dir, "index")
	var ofPi, cold, indexed, search, peer []time.Duration
	peerName, peerArgv := searchPeer(roots[0].Dir)
	for range s.runs {
		// Side by side in each round, so that noise meets both.
		took, listed, err := pi.ListAll(ctx, dir)
		if err != nil {
			return err
		}
		ofPi = append(ofPi, took)
		var list catalog.List
		if took, err = timed(func() (err error) {
			list, err = catalog.Scan(ctx, catalog.Options{Roots: roots})
			return err
		}); err != nil {
			return err
		}
		if len(list.Sessions) != len(listed) {
			return fmt.Errorf("patio lists %d files, Pi %d", len(list.Sessions), len(listed))
		}
		cold = append(cold, took)
		if took, err = timed(func() (err error) {
			_, err = catalog.Scan(ctx, catalog.Options{Roots: roots, Index: index})
			return err
		}); err != nil {
			return err
		}
		indexed = append(indexed, took)
		if took, err = timed(func() error {
			_, err := catalog.Search(ctx, catalog.SearchOptions{Sessions: list.Sessions, Query: absentWord}, func(catalog.Match) error { return nil })
			return err
		}); err != nil {
			return err
		}
		search = append(search, took)
		if took, err = timed(func() error {
			cmd := exec.CommandContext(ctx, peerName, peerArgv...)
			cmd.WaitDelay = time.Second
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 { // found nothing
				return fmt.Errorf("%s: %w", peerName, err)
			}
			return nil
		}); err != nil {
			return err
		}
		peer = append(peer, took)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	// The first round makes the index.
	show(figure{name: "list 1,000 session files, cold", value: ms(median(cold)), unit: "ms", to: "Pi's listAll", ref: ms(median(ofPi))})
	show(figure{name: "list 1,000 session files, from the index", value: ms(median(indexed[min(1, len(indexed)-1):])), unit: "ms", to: "Pi's listAll", ref: ms(median(ofPi))})
	show(figure{name: "search 145 MB of session files", value: ms(median(search)), unit: "ms", to: peerName + " -i", ref: ms(median(peer))})
	return nil
}

// searchPeer is the best search program that the machine has.
func searchPeer(dir string) (name string, argv []string) {
	if _, err := exec.LookPath("rg"); err == nil {
		return "rg", []string{"--no-config", "-i", "-F", "--no-ignore", "--hidden", absentWord, dir}
	}
	return "grep", []string{"-r", "-i", "-F", absentWord, dir}
}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}
