package rules

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/sandbox/network/policy"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func allow(t *testing.T, text string) policy.Rule {
	t.Helper()
	r, err := policy.ParseRule(text)
	require.NoError(t, err)
	return r
}

func deny(t *testing.T, text string) policy.Rule {
	t.Helper()
	r, err := policy.ParseDeny(text)
	require.NoError(t, err)
	return r
}

func texts(rules []policy.Rule) []string {
	out := []string{}
	for _, r := range rules {
		out = append(out, string(r.Action)+" "+r.String())
	}
	return out
}

func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", FileName)
	ctx := context.Background()
	rules, err := Load(path)
	require.NoError(t, err)
	require.Empty(t, rules)

	require.NoError(t, Add(ctx, path, allow(t, "example.com"), "user", noon))
	require.NoError(t, Add(ctx, path, deny(t, "*.example.com"), "user", noon))
	require.NoError(t, Add(ctx, path, allow(t, "EXAMPLE.com."), "tui", noon.Add(time.Hour)), "the same rule again")
	rules, err = Load(path)
	require.NoError(t, err)
	require.Equal(t, []string{"allow example.com:443", "deny *.example.com:*"}, texts(rules))
	require.Equal(t, Source, rules[0].Source)
	require.Equal(t, noon, rules[0].Since.UTC(), "who set it first counts")

	require.NoError(t, Add(ctx, path, deny(t, "example.com:443"), "user", noon), "the last word counts")
	rules, err = Load(path)
	require.NoError(t, err)
	require.Equal(t, []string{"deny *.example.com:*", "deny example.com:443"}, texts(rules))

	require.NoError(t, Remove(ctx, path, "*.example.com"))
	require.ErrorIs(t, Remove(ctx, path, "*.example.com"), ErrNoRule)
	rules, err = Load(path)
	require.NoError(t, err)
	require.Equal(t, []string{"deny example.com:443"}, texts(rules))
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
}

func TestBrokenFile(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no TOML", "[[rule]\n", "line 1"},
		{"unknown key", "[[rule]]\naction = \"allow\"\nrule = \"example.com\"\nport = 3\n", `line 4: unknown key`},
		{"unknown action", "[[rule]]\naction = \"maybe\"\nrule = \"example.com\"\n", `"maybe" is neither allow nor deny`},
		{"bad rule", "[[rule]]\naction = \"allow\"\nrule = \"http://example.com\"\n", "a rule is host:port, not a URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, err := Load(path)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, Add(context.Background(), path, allow(t, "example.com"), "user", noon), c.want)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, c.text, string(b), "what can't be read is never replaced")
		})
	}
}

func TestManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	var wg sync.WaitGroup
	const writers = 20
	errs := make(chan error, writers)
	for i := range writers {
		rule := allow(t, fmt.Sprintf("h%d.example.com", i))
		wg.Go(func() { errs <- Add(context.Background(), path, rule, "user", noon) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	rules, err := Load(path)
	require.NoError(t, err)
	require.Len(t, rules, writers)
}
