package api

import (
	"errors"
	"fmt"
	"syscall"
)

// Code is a stable name for a kind of failure. Each has one exit code (see internal/cli).
type Code string

// The codes.
const (
	CodeInternal    Code = "error"
	CodeUsage       Code = "usage"
	CodeConfig      Code = "configuration"
	CodeNotFound    Code = "not_found"
	CodeMissing     Code = "missing_program"
	CodeUnsupported Code = "unsupported_machine"
	CodeCredentials Code = "credentials"
	CodeRefused     Code = "refused"
	CodeConflict    Code = "conflict"
	CodeDisk        Code = "disk"
	CodeTimeout     Code = "timeout"
	CodeNeedsAnswer Code = "needs_answer"
	CodeInterrupted Code = "interrupted"
)

// Error is a failure as users and programs see it.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Hint says what to do; it may be empty when the message does.
	Hint string `json:"hint,omitempty"`

	cause error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an Error; each %w keeps a cause.
func Errorf(code Code, hint, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Hint: hint, cause: err}
}

// diskHint is what to do about a full disk or quota, wherever it was met.
const diskHint = "free some disk space (or quota); `patio image rm` and `patio rm` remove what is not needed any more"

// AsError returns err as an Error. One that is none gets CodeDisk if the disk or a quota
// is full, and CodeInternal otherwise.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Error() == err.Error() {
			return e
		}
		return &Error{Code: e.Code, Message: err.Error(), Hint: e.Hint, cause: err}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &Error{Code: CodeDisk, Message: err.Error(), Hint: diskHint, cause: err}
	}
	return &Error{Code: CodeInternal, Message: err.Error(), cause: err}
}
