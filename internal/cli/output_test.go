package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"patio/engine/api"
	"patio/sandbox/limits"
	"patio/sandbox/mounts"
	"patio/sandbox/network/policy"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func testSessions() []api.Session {
	ended := testNow.Add(-26 * time.Hour)
	return []api.Session{
		{
			V: 1, ID: "k3m9x2p7qa", Name: "fix the 🐛 in 世界", Phase: api.PhaseReady, Activity: api.ActivityWorking, Created: testNow.Add(-75 * time.Second),
			Workspace: "/srv/projects/a-rather-long-name/services/frontend", Model: api.Model{Provider: "anthropic", ID: "claude-sonnet-4"},
			Turns: 12, Tokens: api.Tokens{Input: 120_000, Output: 3_000, CacheRead: 1_000_000}, CostUSD: 1.2345, Denied: 7,
			Usage: &api.Usage{CPUPercent: 87.25, Memory: 734003200, MemoryLimit: 4 << 30},
		},
		{ID: "b7", Name: "evil\x1b]52;c;eA==\x07\nname\u202e", Phase: api.PhaseReady, Activity: api.ActivityBlocked, Created: testNow.Add(-3 * time.Hour), Workspace: "/w"},
		{ID: "c1", Phase: api.PhaseCrashed, Created: testNow.Add(-30 * time.Hour), Ended: &ended, Workspace: "/w"},
	}
}

func TestSessionTable(t *testing.T) {
	t.Setenv("HOME", "/home/nobody")
	for name, width := range map[string]int{"wide": 0, "120": 120, "80": 80, "60": 60} {
		var b bytes.Buffer
		require.NoError(t, sessionListing(testNow).table(&b, width, true, testSessions()))
		for line := range strings.Lines(b.String()) {
			require.True(t, width == 0 || runewidth.StringWidth(strings.TrimSuffix(line, "\n")) <= width, line)
		}
		requireSafe(t, b.String())
		requireGolden(t, "ls-"+name+".txt", b.Bytes())
	}
}

// Columns line up in cells of the terminal, not in bytes or runes.
func TestTableAlignsWideCharacters(t *testing.T) {
	l := listing[[2]string]{columns: []column[[2]string]{
		{title: "A", cell: func(r [2]string) string { return r[0] }},
		{title: "B", cell: func(r [2]string) string { return r[1] }},
	}}
	var b bytes.Buffer
	require.NoError(t, l.table(&b, 0, true, [][2]string{{"世界", "x"}, {"abc", "x"}, {"é", "x"}}))
	var starts []int
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, "\n")
		starts = append(starts, runewidth.StringWidth(line))
	}
	require.Equal(t, []int{8, 8, 8, 8}, starts, b.String())
}

func TestTableFitsOrKeepsEverything(t *testing.T) {
	l := listing[string]{columns: []column[string]{
		{title: "ID", cell: func(string) string { return "0123456789" }},
		{title: "PATH", least: 6, keepEnd: true, cell: func(s string) string { return s }},
	}}
	for width, want := range map[int]string{
		0:  "0123456789   /a/very/long/path/世界/end\n",
		24: "0123456789   …世界/end\n",
		5:  "0123456789   … /end\n",
	} {
		var b bytes.Buffer
		require.NoError(t, l.table(&b, width, false, []string{"/a/very/long/path/世界/end"}))
		if width == 24 {
			require.LessOrEqual(t, runewidth.StringWidth(strings.TrimSpace(b.String())), 24)
			require.True(t, strings.HasSuffix(b.String(), "/end\n"), b.String())
			continue
		}
		require.Equal(t, want, b.String(), width)
	}
}

// write runs a listing as a command with these arguments would.
func write(t *testing.T, args []string, sessions []api.Session) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: io.Discard, lookupEnv: noEnv}
	cmd := &cobra.Command{Use: "ls", SilenceErrors: true, SilenceUsage: true}
	o := addListOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return sessionListing(testNow).write(a, o, sessions)
	}
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestListFormats(t *testing.T) {
	sessions := testSessions()
	out, err := write(t, []string{"-q"}, sessions)
	require.NoError(t, err)
	require.Equal(t, "k3m9x2p7qa\nb7\nc1\n", out)

	asJSON, err := write(t, []string{"--json"}, sessions)
	require.NoError(t, err)
	again, err := write(t, []string{"-o", "json"}, sessions)
	require.NoError(t, err)
	require.Equal(t, asJSON, again)
	var decoded []api.Session
	require.NoError(t, json.Unmarshal([]byte(asJSON), &decoded))
	require.Equal(t, sessions, decoded)

	asYAML, err := write(t, []string{"-o", "yaml"}, sessions)
	require.NoError(t, err)
	decoded = nil
	require.NoError(t, yaml.Unmarshal([]byte(asYAML), &decoded))
	require.Equal(t, sessions, decoded)

	out, err = write(t, []string{"-o", `template={{.ID}} {{.Phase | printf "%s" | upper}}`}, sessions)
	require.NoError(t, err)
	require.Equal(t, "k3m9x2p7qa READY\nb7 READY\nc1 CRASHED\n", out)

	out, err = write(t, []string{"--format", "{{json .Tokens.Input}}\n"}, sessions[:1])
	require.NoError(t, err)
	require.Equal(t, "120000\n", out)

	out, err = write(t, []string{"--json"}, nil)
	require.NoError(t, err)
	require.Equal(t, "[]\n", out)

	_, err = write(t, []string{"--format", "{{.Nope}}"}, sessions)
	require.Equal(t, api.CodeUsage, classify(err).Code)
	_, err = write(t, []string{"-o", "xml"}, sessions)
	require.Equal(t, api.CodeUsage, classify(err).Code)
}

func testPlan() api.Plan {
	return api.Plan{
		Image: api.ImageRef{Digest: "0123abcd", Path: "/images/0123abcd.erofs", Pi: "0.84.2", Node: "24.1.0"},
		Argv:  []string{"/usr/local/bin/node", "cli.js", "--model", "it's; a \x1b[31mtrap"}, Cwd: "/srv/w", User: "uid 1000", Platform: "systrap",
		Env: []api.EnvVar{{Name: "HOME", Value: "/home/sandbox", Reason: "private"}, {Name: "ANTHROPIC_API_KEY", Secret: true, Reason: "the model's key"}},
		Mounts: []mounts.Mount{
			mounts.At("/srv/w", mounts.ReadWrite, "the workspace"),
			{Source: "/a", Destination: "/b", Mode: mounts.ReadOnly, Reason: "elsewhere"},
		},
		Egress:  []policy.Rule{{Host: "api.example.com", Port: 443, Action: policy.ActionAllow, Source: "model"}, {Host: "*.example.net", Port: 8443, Action: policy.ActionAllow, Source: "flag"}},
		Limits:  limits.Limits{Memory: 4 << 30, Pids: 1024},
		LeftOut: []mounts.LeftOut{{Path: "/srv/AGENTS.md", Reason: "above the workspace"}},
		Files:   []api.GeneratedFile{{Path: "/s/settings.json", Reason: "Pi's settings"}},
		Notes:   []string{"a note"},
	}
}

func TestPlanText(t *testing.T) {
	plan := testPlan()
	var b bytes.Buffer
	require.NoError(t, writePlan(&b, plan))
	requireSafe(t, b.String())
	requireGolden(t, "plan.txt", b.Bytes())

	plan.Egress = nil
	plan.Enforced = []limits.Entry{
		{Name: "memory", Requested: "4G", Effective: "4G", Enforced: true, By: "cgroup v2 memory"},
		{Name: "cpus", Requested: "1.5", Effective: "none", By: "none", Why: "no cgroup file system is mounted"},
	}
	b.Reset()
	require.NoError(t, writePlan(&b, plan))
	require.Contains(t, b.String(), "every host is refused")
	require.Contains(t, b.String(), "memory   4G    by cgroup v2 memory")
	require.Contains(t, b.String(), "cpus     1.5   not enforced          no cgroup file system is mounted")
}

// A secret's value isn't shown even if somebody fills it in by mistake.
func TestPlanNeverShowsASecret(t *testing.T) {
	plan := testPlan()
	plan.Env = []api.EnvVar{{Name: "KEY", Value: "sk-canary", Secret: true}}
	var b bytes.Buffer
	require.NoError(t, writePlan(&b, plan))
	require.NotContains(t, b.String(), "canary")
	require.Contains(t, b.String(), "KEY (secret)")
}

func TestInspectText(t *testing.T) {
	s := testSessions()[0]
	ready := s.Created.Add(1500 * time.Millisecond)
	s.Ready, s.Seq, s.SupervisorPID = &ready, 99, 4242
	s.Tokens.Context, s.Model.ContextWindow = 50_000, 200_000
	s.Questions = []api.Question{{ID: "q1", Method: "select", Title: "Which one?", Options: []string{"a", "b\x1b[2J"}}}
	s.End = &api.End{Reason: "out of memory", ExitCode: 137, Signal: "killed", Stderr: "line one\nline two\n"}
	s.Plan = testPlan()
	s.Created, ready = s.Created.Local(), ready.Local()
	var b bytes.Buffer
	require.NoError(t, writeSession(&b, s, testNow))
	requireSafe(t, b.String())
	for _, want := range []string{
		"Session:      k3m9x2p7qa\n", "State:        working\n", "Ready after:  1.50 s\n", "context 50.0k of 200.0k",
		"Question (select, q1)\n  Which one?\n  options: a | b[2J\n", "End\n  out of memory\n  exit 137, signal killed\n  stderr:\n    line one\n    line two\n",
		"\nImage\n  0123abcd\n",
	} {
		require.Contains(t, b.String(), want)
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"plain-1.2/x": "plain-1.2/x", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		require.Equal(t, want, shellQuote(in))
	}
}

func TestFigures(t *testing.T) {
	require.Equal(t, []string{"0s", "59s", "1m00s", "2h05m", "3d"}, []string{
		formatAge(-time.Second), formatAge(59 * time.Second), formatAge(time.Minute), formatAge(125 * time.Minute), formatAge(80 * time.Hour),
	})
	require.Equal(t, []string{"9999", "10.0k", "1.50M"}, []string{formatCount(9999), formatCount(10_000), formatCount(1_500_000)})
	require.Equal(t, []string{"-", "$0.0002"}, []string{formatCost(0), formatCost(0.000234)})
	require.Equal(t, []string{"12 ms", "1.50 s"}, []string{formatSpan(12 * time.Millisecond), formatSpan(1500 * time.Millisecond)})
	require.Equal(t, "~/x", homePath("/home/u/x", "/home/u"))
	require.Equal(t, "/home/user2", homePath("/home/user2", "/home/u"))
}
