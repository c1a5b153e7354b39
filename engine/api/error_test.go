package api

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorf(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	err := Errorf(CodeRefused, "do this", "open %q: %w and %w", "x", one, two)
	require.EqualError(t, err, `open "x": one and two`)
	require.Equal(t, CodeRefused, err.Code)
	require.Equal(t, "do this", err.Hint)
	require.ErrorIs(t, err, one)
	require.ErrorIs(t, err, two)
	require.NotErrorIs(t, Errorf(CodeRefused, "", "not wrapped: %v", one), one)
	require.ErrorIs(t, Errorf(CodeConfig, "", "read: %w", fmt.Errorf("deep: %w", fs.ErrNotExist)), fs.ErrNotExist)
}

func TestAsError(t *testing.T) {
	require.Nil(t, AsError(nil))
	plain := AsError(errors.New("oops"))
	require.Equal(t, CodeInternal, plain.Code)
	require.EqualError(t, plain, "oops")

	e := Errorf(CodeConflict, "wait", "busy")
	require.Same(t, e, AsError(e))
	wrapped := AsError(fmt.Errorf("send prompt: %w", e))
	require.Equal(t, CodeConflict, wrapped.Code)
	require.Equal(t, "wait", wrapped.Hint)
	require.EqualError(t, wrapped, "send prompt: busy")
	require.ErrorIs(t, wrapped, e)
	joined := AsError(errors.Join(e, errors.New("close: oops")))
	require.Equal(t, CodeConflict, joined.Code)
	require.EqualError(t, joined, "busy\nclose: oops")
}

func TestFullDisk(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		err := fmt.Errorf("append record: %w", &os.PathError{Op: "write", Path: "journal", Err: cause})
		e := AsError(err)
		require.Equal(t, CodeDisk, e.Code)
		require.Contains(t, e.Hint, "free")
		require.EqualError(t, e, err.Error())
		require.ErrorIs(t, e, cause)
	}
	// Who has said already what it is knows better.
	require.Equal(t, CodeConfig, AsError(Errorf(CodeConfig, "", "write: %w", syscall.ENOSPC)).Code)
}
