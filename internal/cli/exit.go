package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"patio/engine/api"
	"patio/sandbox/image"
	"patio/sandbox/namespace"
	"patio/sandbox/runsc"
)

// exitCodes is the one table of exit codes. They are part of the interface: scripts
// branch on them.
var exitCodes = map[api.Code]int{
	api.CodeInternal:    1,
	api.CodeUsage:       2,
	api.CodeConfig:      3,
	api.CodeNotFound:    4,
	api.CodeMissing:     5,
	api.CodeUnsupported: 6,
	api.CodeCredentials: 7,
	api.CodeRefused:     8,
	api.CodeConflict:    9,
	api.CodeDisk:        10,
	api.CodeTimeout:     11,
	api.CodeNeedsAnswer: 12,
	api.CodeInterrupted: 130,
}

func exitCode(c api.Code) int {
	if code, ok := exitCodes[c]; ok {
		return code
	}
	return exitCodes[api.CodeInternal]
}

// sentinels gives the errors of packages that know no codes theirs, the most telling
// first.
var sentinels = []struct {
	err  error
	code api.Code
}{
	{image.ErrNoImage, api.CodeNotFound},
	{image.ErrAmbiguous, api.CodeConflict},
	{image.ErrInUse, api.CodeConflict},
	{image.ErrReadOnly, api.CodeRefused},
	{image.ErrMissingTool, api.CodeMissing},
	{image.ErrSubordinateIDs, api.CodeUnsupported},
	{image.ErrNoSpace, api.CodeDisk},
	{runsc.ErrMissing, api.CodeMissing},
	{namespace.ErrNoIDMapper, api.CodeMissing},
	{namespace.ErrForbidden, api.CodeUnsupported},
	{syscall.ENOSPC, api.CodeDisk},
	{syscall.EDQUOT, api.CodeDisk},
	{context.DeadlineExceeded, api.CodeTimeout},
	{context.Canceled, api.CodeInterrupted},
}

// classify gives any error a code.
func classify(err error) *api.Error {
	e := api.AsError(err)
	if e.Code != api.CodeInternal {
		return e
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return api.Errorf(s.code, e.Hint, "%w", err)
		}
	}
	return e
}

// interrupted says what a signal did. The error behind it is mostly the cancelled
// context's; anything else is worth telling.
func interrupted(err error) *api.Error {
	if errors.Is(err, context.Canceled) || isSignal(err) || classify(err).Code == api.CodeInterrupted {
		return api.Errorf(api.CodeInterrupted, "", "interrupted")
	}
	return api.Errorf(api.CodeInterrupted, "", "interrupted: %w", err)
}

func isSignal(err error) bool {
	var sig *signalError
	return errors.As(err, &sig)
}

func usageError(hint, format string, args ...any) error {
	return api.Errorf(api.CodeUsage, hint, format, args...)
}

// printError writes an error for a person, or as JSON when that was asked for.
func (a *app) printError(args []string, e *api.Error) {
	if a.jsonErrors || !a.parsed && wantsJSON(args) {
		b, err := json.Marshal(struct {
			Error *api.Error `json:"error"`
		}{e})
		if err == nil {
			_, _ = fmt.Fprintf(newCleaner(a.stderr, escapeJSON), "%s\n", b)
			return
		}
	}
	// Messages may quote what came from Pi, from a file or from a host.
	_, _ = fmt.Fprintf(a.stderr, "patio: %s\n", clean(strings.TrimSpace(e.Message)))
	if e.Hint != "" {
		_, _ = fmt.Fprintf(a.stderr, "  %s\n", strings.ReplaceAll(clean(e.Hint), "\n", "\n  "))
	}
}

// wantsJSON looks for the flags in a command line that could not be parsed.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		switch arg {
		case "--json", "-ojson", "-o=json", "--output=json":
			return true
		case "-o", "--output":
			if i+1 < len(args) && args[i+1] == outputJSON {
				return true
			}
		}
	}
	return false
}
