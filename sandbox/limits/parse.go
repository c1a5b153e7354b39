package limits

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/dustin/go-humanize"
)

// unlimited is how a setting says "no limit", and how a missing limit is printed.
const unlimited = "none"

// key is one setting of --limit: how it is read, checked and printed.
type key struct {
	name string
	help string
	get  func(Limits) string
	set  func(*Limits, string) error
}

// The least values are those below which a session can't work at all; a smaller one is a slip of the unit.
var keys = []key{
	sizeKey("memory", "memory for what runs inside, e.g. 4G", 128*mib, func(l *Limits) *int64 { return &l.Memory }),
	sizeKey("headroom", "memory for gVisor itself, on top, e.g. 512M", 64*mib, func(l *Limits) *int64 { return &l.MemoryHeadroom }),
	countKey("pids", "processes and threads, e.g. 1024", 32, func(l *Limits) *int64 { return &l.Pids }),
	cpusKey(),
	unsignedKey("files", "open files per process, e.g. 4096", 64, parseCount, formatCount, func(l *Limits) *uint64 { return &l.OpenFiles }),
	unsignedKey("fsize", "largest file written, e.g. 4G", mib, parseSize, formatSize, func(l *Limits) *uint64 { return &l.FileSize }),
	sizeKey("tmp", "size of /tmp, e.g. 1G", mib, func(l *Limits) *int64 { return &l.TmpSize }),
	countKey("tmp-inodes", "files in /tmp, e.g. 262144", 16, func(l *Limits) *int64 { return &l.TmpInodes }),
}

// Keys lists the settings that Parse knows, each with a short explanation, in the order String prints them.
func Keys() (names, help []string) {
	for _, k := range keys {
		names, help = append(names, k.name), append(help, k.help)
	}
	return names, help
}

// Parse returns base with settings applied, each "key=value" as of --limit; a later one wins. Sizes are read as Docker
// reads them: an integer or decimal with an optional unit, where b, k, m, g, t, kb, kib and so on, in any case, all count in
// powers of 1024, and a bare number is bytes. "none" or 0 lifts a limit.
func Parse(base Limits, settings ...string) (Limits, error) {
	limits := base
	var failed []error
	for _, setting := range settings {
		if err := limits.set(setting); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return base, errors.Join(failed...)
	}
	return limits, nil
}

func (l *Limits) set(setting string) error {
	name, value, found := strings.Cut(setting, "=")
	name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
	if !found || value == "" {
		return fmt.Errorf("parse limit %q: want key=value, such as memory=4G; the keys are %s", setting, keyNames())
	}
	for _, k := range keys {
		if k.name == name {
			if err := k.set(l, value); err != nil {
				return fmt.Errorf("parse limit %q: %w", setting, err)
			}
			return nil
		}
	}
	return fmt.Errorf("parse limit %q: unknown key %q; the keys are %s", setting, name, keyNames())
}

func keyNames() string {
	names, _ := Keys()
	return strings.Join(names, ", ")
}

func sizeKey(name, help string, least int64, field func(*Limits) *int64) key {
	return signedKey(name, help, least, parseSize, formatSize, field)
}

func countKey(name, help string, least int64, field func(*Limits) *int64) key {
	return signedKey(name, help, least, parseCount, formatCount, field)
}

func signedKey(name, help string, least int64, parse func(string) (int64, error), format func(int64) string, field func(*Limits) *int64) key {
	return key{
		name: name, help: help,
		get: func(l Limits) string { return format(*field(&l)) },
		set: func(l *Limits, value string) error {
			n, err := atLeast(value, least, parse, format)
			if err == nil {
				*field(l) = n
			}
			return err
		},
	}
}

func unsignedKey(name, help string, least int64, parse func(string) (int64, error), format func(int64) string, field func(*Limits) *uint64) key {
	return key{
		name: name, help: help,
		get: func(l Limits) string { return format(int64(min(*field(&l), math.MaxInt64))) },
		set: func(l *Limits, value string) error {
			n, err := atLeast(value, least, parse, format)
			if err == nil {
				*field(l) = uint64(n)
			}
			return err
		},
	}
}

func cpusKey() key {
	const least = 0.05
	return key{
		name: "cpus", help: "processors, e.g. 1.5",
		get: func(l Limits) string { return formatCPUs(l.CPUs) },
		set: func(l *Limits, value string) error {
			if strings.EqualFold(value, unlimited) {
				l.CPUs = 0
				return nil
			}
			n, err := strconv.ParseFloat(value, 64)
			switch {
			case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
				return errors.New("want a number of processors such as 1.5, or none")
			case n != 0 && n < least:
				return fmt.Errorf("too small: want at least %v, or none", least)
			case n > 1<<20:
				return errors.New("too large for a number of processors")
			}
			l.CPUs = n
			return nil
		},
	}
}

func atLeast(value string, least int64, parse func(string) (int64, error), format func(int64) string) (int64, error) {
	if strings.EqualFold(value, unlimited) {
		return 0, nil
	}
	n, err := parse(value)
	if err != nil {
		return 0, err
	}
	if n != 0 && n < least {
		return 0, fmt.Errorf("too small: want at least %s, or none", format(least))
	}
	return n, nil
}

func parseCount(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, errors.New("want a whole number, or none")
	}
	return n, nil
}

// parseSize leaves numbers and rounding to go-humanize, after turning every unit into a binary one: there "4G" is
// 4×10⁹, while everyone who sets container limits means 4×2³⁰.
func parseSize(value string) (int64, error) {
	wrong := errors.New("want a size such as 512M or 4G (powers of 1024), or none")
	digits := strings.TrimRightFunc(value, unicode.IsLetter)
	unit := strings.ToLower(value[len(digits):])
	digits = strings.TrimSpace(digits)
	if strings.ContainsAny(digits, ", ") || digits == "" {
		return 0, wrong
	}
	if unit != "" && unit != "b" {
		unit = strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")
		if len(unit) != 1 || !strings.Contains("kmgtp", unit) {
			return 0, wrong
		}
		unit += "ib"
	}
	n, err := humanize.ParseBytes(digits + unit)
	if err != nil {
		return 0, wrong
	}
	if n > math.MaxInt64/4 {
		return 0, errors.New("too large")
	}
	return int64(n), nil
}

// formatSize prints a size so that parseSize gives the same number again.
func formatSize(n int64) string {
	if n <= 0 {
		return unlimited
	}
	for _, unit := range []struct {
		size   int64
		suffix string
	}{{1 << 40, "T"}, {gib, "G"}, {mib, "M"}, {kib, "K"}} {
		if n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

func formatCount(n int64) string {
	if n <= 0 {
		return unlimited
	}
	return strconv.FormatInt(n, 10)
}

func formatCPUs(n float64) string {
	if n <= 0 {
		return unlimited
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}
