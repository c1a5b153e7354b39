package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// golden compares with a file of testdata/golden, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "make it with -update")
	require.Equal(t, string(want), got)
}

func corpus(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.jsonl"))
	require.NoError(t, err)
	require.Greater(t, len(paths), 50)
	return paths
}

// outcome is what real Pi did with a file of the corpus: see pi-outcomes.mjs.
type outcome struct {
	Exit     string            `json:"exit"`
	Stderr   string            `json:"stderr"`
	ID       string            `json:"id"`
	Model    string            `json:"model"`
	Thinking string            `json:"thinking"`
	Name     string            `json:"name"`
	Messages []string          `json:"messages"`
	Leaf     *string           `json:"leaf"`
	Roots    []*string         `json:"roots"`
	Failed   map[string]string `json:"failed"`
	Stats    struct {
		UserMessages, AssistantMessages, ToolCalls, ToolResults, TotalMessages int
		Tokens                                                                 struct{ Input, Output, CacheRead, CacheWrite json.Number }
		Cost                                                                   float64
	} `json:"stats"`
	Rewritten bool `json:"rewritten"`
}

func outcomes(t testing.TB) map[string]outcome {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "pi-outcomes.json"))
	require.NoError(t, err)
	all := map[string]outcome{}
	require.NoError(t, json.Unmarshal(b, &all))
	return all
}

// stricter are files that Pi opens, and why they are refused all the same.
var stricter = map[string]string{
	"twice-harmless":             "which of two entries with one id counts is chance; another such file makes Pi spin",
	"twice-identical":            "as above; a copy is mended",
	"cycle-elsewhere":            "Pi spins when the user goes to that branch",
	"cycle-own-parent-elsewhere": "Pi spins when the user goes to that branch",
	"message-missing-elsewhere":  "Pi can't say the session's statistics, and dies when the user goes to that branch",
	"last-array":                 "Pi shows nothing of the conversation",
	"last-number":                "Pi shows nothing of the conversation",
	"last-object":                "Pi shows nothing of the conversation",
	"last-text":                  "Pi shows nothing of the conversation",
	"last-true":                  "Pi shows nothing of the conversation",
	"no-id-last":                 "Pi goes on from nowhere",
	"id-empty-last":              "Pi goes on from nowhere",
	"v1-array-line":              "Pi loses what came before the line",
}

// lenient are files that Pi refuses, and who else sees to it.
var lenient = map[string]string{
	"header-cwd-gone": "whoever resumes compares the directory with policy",
}

// TestAgreesWithPi holds Fatal, Path, Info and Header against what real Pi did.
func TestAgreesWithPi(t *testing.T) {
	all := outcomes(t)
	for _, path := range corpus(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			pi, ok := all[name+".jsonl"]
			require.True(t, ok, "no outcome is recorded: run pi-outcomes.mjs")
			f := open(t, path)
			p, fatal := f.Fatal()
			if pi.Exit != "0" {
				require.Equal(t, lenient[name] == "", fatal, "Pi: %s %s", pi.Exit, pi.Stderr)
				return
			}
			require.Equal(t, stricter[name] != "", fatal, "Pi opens it; %s", p)
			if fatal || len(f.Entries()) == 0 {
				return
			}
			if name == "torn-number" {
				return // Pi loses the conversation; RepairTail mends it before
			}
			if name == "utf8-invalid" { // how many replacements there are is JavaScript's own rule
				for i, m := range pi.Messages {
					pi.Messages[i] = strings.ReplaceAll(m, "\uFFFD\uFFFD", "\uFFFD")
				}
			}
			require.Equal(t, pi.Messages, contextOf(t, f), "the conversation")
			if name != "usage-text" { // JavaScript joins a text to a number
				agreeOnInfo(t, f, pi)
			}
			// For Pi's tree an empty id is a parent, for its conversation it is none.
			if f.Header().Version >= 2 && pi.Failed["get_tree"] == "" && name != "id-empty" {
				agreeOnTree(t, f, pi)
			}
		})
	}
}

func agreeOnInfo(t *testing.T, f *File, pi outcome) {
	t.Helper()
	require.Equal(t, pi.ID, f.Header().ID)
	i, err := f.Info()
	require.NoError(t, err)
	require.Equal(t, pi.Name, i.Name)
	if strings.HasPrefix(i.Model(), "fake/") && i.ModelID != "fake-3" {
		require.Equal(t, pi.Model, i.Model())
	}
	if i.Thinking != "" {
		require.Equal(t, pi.Thinking, i.Thinking)
	}
	if pi.Failed["get_session_stats"] != "" {
		return
	}
	require.Equal(t, pi.Stats.UserMessages, i.Counts.User)
	require.Equal(t, pi.Stats.AssistantMessages, i.Counts.Assistant)
	require.Equal(t, pi.Stats.ToolCalls, i.Counts.ToolCalls)
	require.Equal(t, pi.Stats.ToolResults, i.Counts.ToolResults)
	require.InDelta(t, pi.Stats.Cost, i.Usage.Cost, 1e-9)
	tokens := pi.Stats.Tokens
	require.Equal(t, []json.Number{tokens.Input, tokens.Output, tokens.CacheRead, tokens.CacheWrite},
		[]json.Number{number(i.Usage.Input), number(i.Usage.Output), number(i.Usage.CacheRead), number(i.Usage.CacheWrite)})
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func agreeOnTree(t *testing.T, f *File, pi outcome) {
	t.Helper()
	var want, got []string
	for _, r := range pi.Roots {
		if r != nil { // what isn't an object, or has no id
			want = append(want, *r)
		}
	}
	for _, r := range f.Roots() {
		if r.ID != "" {
			got = append(got, r.ID)
		}
	}
	require.Equal(t, want, got, "the roots")
	leaf, ok := f.Leaf()
	require.True(t, ok)
	if pi.Leaf != nil {
		require.Equal(t, *pi.Leaf, leaf.ID)
	}
}

// contextOf is Pi's own rule for what a model sees, told as pi-outcomes.mjs does.
func contextOf(t *testing.T, f *File) []string {
	t.Helper()
	path := f.Path()
	compaction := -1
	for i, e := range path {
		if e.Type == TypeCompaction {
			compaction = i
		}
	}
	if compaction >= 0 {
		_, body, err := f.Entry(path[compaction].Index)
		require.NoError(t, err)
		first := gjson.GetBytes(body, "firstKeptEntryId").Str
		if at := gjson.GetBytes(body, "firstKeptEntryIndex"); at.Exists() {
			first = f.Entries()[at.Int()-1].ID // of version 1, which counts the header
		}
		kept := []Entry{path[compaction]}
		found := false
		for i, e := range path {
			found = found || e.ID == first
			if i != compaction && (i > compaction || found) {
				kept = append(kept, e)
			}
		}
		path = kept
	}
	messages := []string{}
	for _, e := range path {
		body, err := f.Body(e)
		require.NoError(t, err)
		v := gjson.ParseBytes(bytes.ToValidUTF8(body, []byte("\uFFFD")))
		role, content := e.Role, v.Get("content")
		switch e.Type {
		case TypeMessage:
			content = v.Get("message.content")
			if s := v.Get("message.summary"); s.Exists() {
				content = s
			} else if s := v.Get("message.command"); s.Exists() {
				content = s
			}
		case TypeCustomMessage:
			role = "custom"
		case TypeCompaction, TypeBranchSummary:
			role = map[string]string{TypeCompaction: RoleCompaction, TypeBranchSummary: RoleBranch}[e.Type]
			content = v.Get("summary")
		default:
			continue
		}
		var parts []string
		if content.Type == gjson.String {
			parts = []string{content.Str}
		}
		for _, b := range content.Array() {
			switch {
			case content.Type == gjson.String || !content.IsArray():
			case b.Get("type").Str == "text":
				parts = append(parts, b.Get("text").Str)
			case b.IsObject():
				parts = append(parts, "<"+b.Get("type").Str+">")
			default:
				parts = append(parts, "<undefined>")
			}
		}
		if role == "" {
			role = "undefined"
		}
		messages = append(messages, shorten(role+": "+strings.Join(parts, " ")))
	}
	return messages
}

// shorten cuts as JavaScript does; the corpus has nothing beyond 16 bits there.
func shorten(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80])
	}
	return s
}

// TestCorpus has, of each file, what is said of it, how it is shown, and what a repair
// makes of it. The file itself never changes.
func TestCorpus(t *testing.T) {
	for _, path := range corpus(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			var b strings.Builder
			report, err := Validate(path)
			require.NoError(t, err)
			for _, p := range report.Problems {
				fmt.Fprintf(&b, "%-10s %s\n", p.Severity, p)
				if p.Action != "" {
					fmt.Fprintf(&b, "%-10s %s: %s\n", "", p.Fix, p.Action)
				}
			}
			fmt.Fprintf(&b, "repair: %s\n", repairOf(t, path))
			f := open(t, path)
			b.WriteString("--- shown\n")
			require.NoError(t, f.WriteText(&b, ExportOptions{Limit: 500}))
			var md, page bytes.Buffer
			require.NoError(t, f.WriteMarkdown(&md, ExportOptions{Limit: 500}))
			require.NoError(t, f.WriteHTML(&page, ExportOptions{Limit: 500}))
			golden(t, name+".txt", b.String())
			requireHarmless(t, page.String())
			switch name {
			case "v3-branches", "v3-tools", "hostile":
				golden(t, name+".md", md.String())
				golden(t, name+".html", page.String())
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// repairOf repairs a copy, and sees to it that nothing is left to repair.
func repairOf(t *testing.T, path string) string {
	t.Helper()
	report, err := Validate(path)
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "repaired.jsonl")
	done, err := Repair(path, to)
	if err != nil {
		_, hopeless := report.Hopeless()
		require.True(t, hopeless || errors.Is(err, ErrNoSession), err)
		left, err := os.ReadDir(filepath.Dir(to))
		require.NoError(t, err)
		require.Empty(t, left, "a failure leaves nothing")
		return "refused"
	}
	repaired, err := Validate(to)
	require.NoError(t, err)
	require.False(t, repaired.Fixes(FixCopy), repaired.Problems)
	require.False(t, repaired.Fixes(FixTail), repaired.Problems)
	_, fatal := repaired.Fatal()
	require.False(t, fatal, repaired.Problems)
	again := filepath.Join(t.TempDir(), "again.jsonl")
	_, err = Repair(to, again)
	require.NoError(t, err)
	one, err := os.ReadFile(to)
	require.NoError(t, err)
	two, err := os.ReadFile(again)
	require.NoError(t, err)
	require.Equal(t, one, two, "a second repair has nothing to do")
	return fmt.Sprintf("%+v", done)
}

// TestRepairTailOfCorpus mends the tails of sessions and nothing of other files.
func TestRepairTailOfCorpus(t *testing.T) {
	for _, path := range corpus(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			copied := filepath.Join(t.TempDir(), "s.jsonl")
			require.NoError(t, os.WriteFile(copied, before, 0o600))
			r, err := RepairTail(copied)
			after, readErr := os.ReadFile(copied)
			require.NoError(t, readErr)
			report, validateErr := Validate(path)
			require.NoError(t, validateErr)
			if err != nil {
				require.ErrorIs(t, err, ErrNoSession)
				_, hopeless := report.Fatal()
				require.True(t, hopeless)
				require.Equal(t, before, after)
				return
			}
			require.Equal(t, report.Fixes(FixTail), r.Completed || r.Cut > 0)
			if r.Cut > 0 {
				kept, err := os.ReadFile(r.Kept)
				require.NoError(t, err)
				require.Equal(t, before, append(after, kept...), "nothing is lost")
			}
			repaired, err := Validate(copied)
			require.NoError(t, err)
			require.False(t, repaired.Fixes(FixTail))
			again, err := RepairTail(copied)
			require.NoError(t, err)
			require.Zero(t, again)
		})
	}
}
