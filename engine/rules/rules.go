// Package rules keeps the egress rules that hold for every session to come, in a file that patio itself writes.
package rules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
	"github.com/pelletier/go-toml/v2"

	"patio/sandbox/network/policy"
)

// FileName is the file's name in the configuration directory. It stands beside config.toml, which people write: a
// program that rewrote that one would lose their comments.
const FileName = "policy.toml"

// Source is what a kept rule has as its source in a session.
const Source = "config"

// file is the file as it is written.
type file struct {
	Rules []entry `toml:"rule"`
}

type entry struct {
	Action policy.Action `toml:"action"`
	Rule   string        `toml:"rule"`
	By     string        `toml:"by,omitempty"`
	Since  time.Time     `toml:"since,omitempty"`
}

const heading = "# Egress rules that hold for every session. `patio policy` writes this file; it may be edited by hand.\n\n"

// Load reads the rules. A file that isn't there holds none; one that can't be read is an error, for a shorter list than
// was meant could let something out.
func Load(path string) ([]policy.Rule, error) {
	f, err := read(path)
	if err != nil {
		return nil, err
	}
	rules := make([]policy.Rule, 0, len(f.Rules))
	for _, e := range f.Rules {
		r, err := e.parse()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func (e entry) parse() (policy.Rule, error) {
	var r policy.Rule
	var err error
	switch e.Action {
	case policy.ActionAllow:
		r, err = policy.ParseRule(e.Rule)
	case policy.ActionDeny:
		r, err = policy.ParseDeny(e.Rule)
	default:
		err = fmt.Errorf("rule %q: the action %q is neither allow nor deny", e.Rule, e.Action)
	}
	if err != nil {
		return policy.Rule{}, err
	}
	r.Source, r.Since = Source, e.Since
	return r, nil
}

func read(path string) (file, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, nil
	}
	if err != nil {
		return file{}, fmt.Errorf("read kept rules: %w", err)
	}
	var f file
	if err := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields().Decode(&f); err != nil {
		var strict *toml.StrictMissingError
		if errors.As(err, &strict) {
			row, _ := strict.Errors[0].Position()
			return file{}, fmt.Errorf("%s line %d: unknown key %q: a rule has action, rule, by and since", path, row, strict.Errors[0].Key())
		}
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			row, _ := syntax.Position()
			return file{}, fmt.Errorf("%s line %d: %w", path, row, err)
		}
		return file{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Add keeps a rule. One with the same host and port and the other action goes: the last word counts. By says who set it.
func Add(ctx context.Context, path string, rule policy.Rule, by string, now time.Time) error {
	if err := rule.Validate(); err != nil {
		return err
	}
	return change(ctx, path, func(entries []entry) ([]entry, error) {
		for _, e := range entries {
			if r, err := e.parse(); err == nil && r.Action == rule.Action && r.String() == rule.String() {
				return entries, nil
			}
		}
		entries = slices.DeleteFunc(entries, func(e entry) bool {
			r, err := e.parse()
			return err == nil && r.Host == rule.Host && r.Port == rule.Port
		})
		return append(entries, entry{Action: rule.Action, Rule: rule.String(), By: by, Since: now.UTC().Truncate(time.Second)}), nil
	})
}

// ErrNoRule means that a rule to be removed isn't there.
var ErrNoRule = errors.New("there is no such rule")

// Remove takes out the rules that say text, whichever action they have.
func Remove(ctx context.Context, path, text string) error {
	return change(ctx, path, func(entries []entry) ([]entry, error) {
		left := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool {
			r, err := e.parse()
			return err == nil && (e.Rule == text || says(r, text))
		})
		if len(left) == len(entries) {
			return nil, fmt.Errorf("%w in %s: %s", ErrNoRule, path, text)
		}
		return left, nil
	})
}

// says tells whether text, as somebody types it, is the rule.
func says(r policy.Rule, text string) bool {
	parse := policy.ParseRule
	if r.Action == policy.ActionDeny {
		parse = policy.ParseDeny
	}
	same, err := parse(text)
	return err == nil && same.String() == r.String()
}

const lockRetry = 5 * time.Millisecond

// change rewrites the file under a lock, whole or not at all.
func change(ctx context.Context, path string, f func([]entry) ([]entry, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep rules: %w", err)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("keep rules: lock %s: %w", path, err)
	}
	defer func() { _ = lock.Close() }()
	now, err := read(path)
	if err != nil {
		return err
	}
	for _, e := range now.Rules {
		if _, err := e.parse(); err != nil {
			return fmt.Errorf("%s: %w: mend it first, nothing was changed", path, err)
		}
	}
	entries, err := f(now.Rules)
	if err != nil {
		return err
	}
	b, err := toml.Marshal(file{Rules: entries})
	if err != nil {
		return fmt.Errorf("keep rules: %w", err)
	}
	if err := renameio.WriteFile(path, append([]byte(heading), b...), 0o600); err != nil {
		return fmt.Errorf("keep rules: %w", err)
	}
	return nil
}
