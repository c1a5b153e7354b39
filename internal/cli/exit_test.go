package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/sandbox/image"
	"patio/sandbox/runsc"
)

// declaredCodes finds every constant of type Code in the package's source, so that a new
// one can't be forgotten here.
func declaredCodes(t *testing.T) map[api.Code]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../engine/api/error.go", nil, 0)
	require.NoError(t, err)
	codes := map[api.Code]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" {
			return true
		}
		for _, v := range spec.Values {
			lit, ok := v.(*ast.BasicLit)
			require.True(t, ok, "a code that is no literal")
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			codes[api.Code(text)] = true
		}
		return true
	})
	return codes
}

func TestEveryCodeHasAnExitCode(t *testing.T) {
	codes := declaredCodes(t)
	require.Greater(t, len(codes), 5)
	seen := map[int]api.Code{}
	for c := range codes {
		n, ok := exitCodes[c]
		require.True(t, ok, "no exit code for %s", c)
		require.NotZero(t, n, c)
		require.Empty(t, seen[n], "%s and %s have the same exit code", c, seen[n])
		seen[n] = c
	}
	require.Len(t, exitCodes, len(codes), "the table has a code that isn't declared")
}

func TestExitCodesAreTheDocumentedOnes(t *testing.T) {
	for c, want := range map[api.Code]int{
		api.CodeInternal: 1, api.CodeUsage: 2, api.CodeConfig: 3, api.CodeNotFound: 4, api.CodeMissing: 5, api.CodeUnsupported: 6,
		api.CodeCredentials: 7, api.CodeRefused: 8, api.CodeConflict: 9, api.CodeDisk: 10, api.CodeTimeout: 11, api.CodeNeedsAnswer: 12,
		api.CodeInterrupted: 130, "of another version": 1,
	} {
		require.Equal(t, want, exitCode(c), c)
	}
}

func TestClassify(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want api.Code
	}{
		"has a code":        {fmt.Errorf("start: %w", api.Errorf(api.CodeCredentials, "", "no key")), api.CodeCredentials},
		"no image":          {fmt.Errorf("x: %w", image.ErrNoImage), api.CodeNotFound},
		"no space to build": {fmt.Errorf("x: %w", image.ErrNoSpace), api.CodeDisk},
		"disk full":         {&fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, api.CodeDisk},
		"no runsc":          {fmt.Errorf("%w at /x", runsc.ErrMissing), api.CodeMissing},
		"deadline":          {context.DeadlineExceeded, api.CodeTimeout},
		"anything else":     {errors.New("odd"), api.CodeInternal},
		"joined":            {errors.Join(errors.New("a"), api.Errorf(api.CodeConflict, "", "b")), api.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			got := classify(c.err)
			require.Equal(t, c.want, got.Code)
			require.Equal(t, c.err.Error(), got.Message)
		})
	}
}

func TestPrintError(t *testing.T) {
	e := api.Errorf(api.CodeNotFound, "look\nelsewhere", "no session \x1b]52;c;ZXZpbA==\x07 here")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"for people":       {[]string{"inspect", "x"}, "patio: no session ]52;c;ZXZpbA== here\n  look\n  elsewhere\n"},
		"json":             {[]string{"inspect", "--json"}, `{"error":{"code":"not_found","message":"no session \u001b]52;c;ZXZpbA==\u0007 here","hint":"look\nelsewhere"}}` + "\n"},
		"json as a value":  {[]string{"inspect", "-o", "json"}, `{"error":{"code":"not_found","message":"no session \u001b]52;c;ZXZpbA==\u0007 here","hint":"look\nelsewhere"}}` + "\n"},
		"after the dashes": {[]string{"exec", "x", "--", "y", "--json"}, "patio: no session ]52;c;ZXZpbA== here\n  look\n  elsewhere\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			(&app{stderr: &b}).printError(c.args, e)
			require.Equal(t, c.want, b.String())
		})
	}
}
