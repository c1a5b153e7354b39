package engine

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/pi"
	"patio/sandbox/image"
)

// machine is a user's machine in a temporary directory: an image, a runsc, a home and a
// workspace. What is in the image and the runsc doesn't matter for a plan.
type machine struct {
	root, home, workspace string
	env                   []string
}

const digest = "1111111111111111111111111111111111111111111111111111111111111111"

func newMachine(t testing.TB) *machine {
	t.Helper()
	root, err := os.MkdirTemp("", "eng") // short: sockets lie in it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	root, err = filepath.EvalSymlinks(root)
	require.NoError(t, err)
	m := &machine{root: root, home: filepath.Join(root, "home"), workspace: filepath.Join(root, "home", "project")}
	m.env = []string{"HOME=" + m.home}
	for _, dir := range []string{"home/project", "home/.pi/agent", "home/.ssh", "data/images", "libexec/patio", "bin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	if s, ok := t.(*testing.T); ok {
		s.Setenv("HOME", m.home)
		s.Setenv("PATIO_RUNSC", "")
	}
	m.write(t, "libexec/patio/runsc", "#!/bin/false\n", 0o755)
	m.addImage(t, digest, time.Unix(9e9, 0)) // newer than any that root has built
	return m
}

func (m *machine) write(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(m.root, name), []byte(content), mode))
	require.NoError(t, os.Chmod(filepath.Join(m.root, name), mode))
}

func (m *machine) addImage(t testing.TB, digest string, created time.Time) {
	t.Helper()
	inputs, err := image.Inputs("")
	require.NoError(t, err)
	provider := func(keys []string, models ...string) image.Provider {
		p := image.Provider{KeyEnv: keys}
		for _, id := range models {
			p.Models = append(p.Models, image.Model{ID: id})
		}
		return p
	}
	manifest, err := json.Marshal(image.Manifest{
		Schema: 1, Digest: digest, Size: 4, Created: created, Inputs: inputs,
		Versions: map[string]string{"pi": "0.84.2", "node": "24.0.0"},
		Providers: map[string]image.Provider{
			"anthropic":             provider([]string{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"}, "claude-sonnet-4-5", "claude-opus-4-1"),
			"openai":                provider([]string{"OPENAI_API_KEY"}, "gpt-5"),
			"openai-codex":          provider(nil, "gpt-5-codex"),
			"cloudflare-workers-ai": provider([]string{"CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID"}, "@cf/x"),
		},
	})
	require.NoError(t, err)
	m.write(t, "data/images/"+digest+".erofs", "data", 0o600)
	m.write(t, "data/images/"+digest+".json", string(manifest), 0o600)
}

func (m *machine) dirs() Dirs {
	return Dirs{
		State: filepath.Join(m.root, "state"), Data: filepath.Join(m.root, "data"), Cache: filepath.Join(m.root, "cache"),
		Runtime: filepath.Join(m.root, "run"), Config: filepath.Join(m.root, "config"),
	}
}

func (m *machine) engine() *Engine {
	return New(Options{Dirs: m.dirs(), Executable: filepath.Join(m.root, "bin", "patio"), Environ: m.env})
}

func (m *machine) plan(t testing.TB, r Request) (*Launch, error) {
	t.Helper()
	if err := checkMachine(); err != nil {
		t.Skipf("no launch can be planned here: %v", err)
	}
	if r.Workspace == "" {
		r.Workspace = m.workspace
	}
	return m.engine().Plan(t.Context(), r)
}

func TestPlan(t *testing.T) {
	m := newMachine(t)
	before := tree(t, m.root)
	l, err := m.plan(t, Request{Model: "demo/tour", Name: "a name é", Thinking: "high", Allow: []string{"example.com", "*.example.org:8443"}, Limits: []string{"memory=2G"}, StartedBy: "test"})
	require.NoError(t, err)
	require.Equal(t, before, tree(t, m.root), "a plan touches nothing")

	s := l.Session
	require.Equal(t, api.PhaseNew, s.Phase)
	require.Equal(t, "a name é", s.Name)
	require.Equal(t, m.workspace, s.Workspace)
	require.Equal(t, api.Model{Provider: "demo", ID: "tour", Thinking: "high"}, s.Model)
	require.Equal(t, "test", s.StartedBy)
	require.Equal(t, digest, s.Plan.Image.Digest)
	require.Equal(t, "0.84.2", s.Plan.Image.Pi)
	require.Equal(t, "systrap", s.Plan.Platform)
	require.EqualValues(t, 2<<30, s.Plan.Limits.Memory)
	var rules []string
	for _, r := range s.Plan.Egress {
		rules = append(rules, r.String())
		require.Equal(t, "flag", r.Source)
	}
	require.Equal(t, []string{"example.com:443", "*.example.org:8443"}, rules)
	require.Equal(t, pi.Launch{Model: "demo/tour", Thinking: "high"}.Argv(), s.Plan.Argv)

	dir := filepath.Join(m.root, "state", "sessions", s.ID)
	require.Equal(t, dir, l.spec.Dir)
	var paths []string
	for _, mount := range s.Plan.Mounts {
		require.Equal(t, mount.Source, mount.Destination, "a path is the same inside and outside")
		require.NotEmpty(t, mount.Reason)
		paths = append(paths, mount.Source)
	}
	require.Equal(t, []string{m.workspace, filepath.Join(dir, "agent"), filepath.Join(m.root, "state", "pi-sessions")}, paths)
	for _, f := range l.spec.Files {
		require.True(t, strings.HasPrefix(f.Path, dir+"/agent/"), f.Path)
		require.True(t, json.Valid(f.Data), f.Path)
	}
	require.Len(t, l.spec.Files, 2)
	require.Len(t, s.Plan.Files, 2)
	env := map[string]string{}
	for _, kv := range l.spec.Sandbox.Env {
		name, value, _ := strings.Cut(kv, "=")
		require.NotContains(t, env, name, "each name once")
		env[name] = value
	}
	require.Equal(t, filepath.Join(dir, "agent"), env["PI_CODING_AGENT_DIR"])
	require.Equal(t, "/home/sandbox", env["HOME"], "not the caller's")
	require.Len(t, s.Plan.Env, len(env))
	require.EqualValues(t, os.Geteuid(), l.spec.Sandbox.Owner.UID)

	second, err := m.plan(t, Request{Model: "demo/tour"})
	require.NoError(t, err)
	require.NotEqual(t, s.ID, second.Session.ID)
}

// tree lists what there is below dir.
func tree(t testing.TB, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	return names
}

func TestPlanRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(t *testing.T, m *machine, r *Request)
		code    api.Code
		message string
		hint    string
	}{
		"workspace missing": {func(_ *testing.T, m *machine, r *Request) { r.Workspace = m.root + "/missing" }, api.CodeNotFound, "doesn't exist", "make it first"},
		"workspace a file":  {func(_ *testing.T, m *machine, r *Request) { r.Workspace = m.root + "/libexec/patio/runsc" }, api.CodeConfig, "isn't a directory", ""},
		"workspace /":       {func(_ *testing.T, _ *machine, r *Request) { r.Workspace = "/" }, api.CodeRefused, "more than one project", ""},
		"workspace home":    {func(_ *testing.T, m *machine, r *Request) { r.Workspace = m.home }, api.CodeRefused, "a home directory", ""},
		"workspace keys":    {func(_ *testing.T, m *machine, r *Request) { r.Workspace = m.home + "/.ssh" }, api.CodeRefused, "~/.ssh", ""},
		"workspace state":   {func(t *testing.T, m *machine, r *Request) { r.Workspace = m.root + "/data/images" }, api.CodeRefused, "holds state of patio", ""},
		"another Pi's state": {func(t *testing.T, m *machine, r *Request) {
			r.Workspace = m.home + "/project"
			m.env = append(m.env, "PI_CODING_AGENT_DIR="+r.Workspace+"/agent")
		}, api.CodeRefused, "holds state of", ""},

		"no image":      {func(_ *testing.T, _ *machine, r *Request) { r.Image = "pi-0.0.1" }, api.CodeMissing, "no such image", "patio image build"},
		"unknown image": {func(_ *testing.T, _ *machine, r *Request) { r.Image = "abcdef" }, api.CodeMissing, `"abcdef"`, ""},
		"two images": {func(t *testing.T, m *machine, r *Request) {
			r.Image = "11"
			m.addImage(t, digest[:63]+"2", time.Unix(8e9, 0))
		}, api.CodeConflict, "ambiguous", ""},
		"no runsc": {func(t *testing.T, m *machine, _ *Request) {
			require.NoError(t, os.Remove(m.root+"/libexec/patio/runsc"))
		}, api.CodeMissing, "runsc is missing", ""},
		"runsc no program": {func(t *testing.T, m *machine, _ *Request) { m.write(t, "libexec/patio/runsc", "", 0o644) }, api.CodeMissing, "runsc is missing", ""},

		"no model": {func(_ *testing.T, _ *machine, r *Request) { r.Model = "" }, api.CodeConfig, "no model chosen", "demo/tour"},
		"too many keys": {func(_ *testing.T, m *machine, r *Request) {
			r.Model = ""
			m.env = append(m.env, "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k")
		}, api.CodeConfig, "anthropic, openai", "--model"},
		"no provider":      {func(_ *testing.T, _ *machine, r *Request) { r.Model = "tour" }, api.CodeUsage, "PROVIDER/MODEL", "for example"},
		"no model's name":  {func(_ *testing.T, _ *machine, r *Request) { r.Model = "demo/" }, api.CodeUsage, "PROVIDER/MODEL", ""},
		"unknown provider": {func(_ *testing.T, _ *machine, r *Request) { r.Model = "anthropc/claude-sonnet-4-5" }, api.CodeConfig, `unknown model provider "anthropc"`, "did you mean anthropic"},
		"strange provider": {func(_ *testing.T, _ *machine, r *Request) { r.Model = "zzz/x" }, api.CodeConfig, `"zzz"`, "one of anthropic, cloudflare-workers-ai, openai, openai-codex, demo"},
		"unknown model": {func(_ *testing.T, m *machine, r *Request) {
			r.Model = "anthropic/sonnet"
			m.env = append(m.env, "ANTHROPIC_API_KEY=k")
		}, api.CodeConfig, `no model "sonnet"`, "did you mean claude-sonnet-4-5"},
		"unknown demo": {func(_ *testing.T, _ *machine, r *Request) { r.Model = "demo/nothing-of-the-kind" }, api.CodeConfig, "no model", "tour"},

		"no key": {func(_ *testing.T, _ *machine, r *Request) { r.Model = "anthropic/claude-sonnet-4-5" }, api.CodeCredentials, "no key for anthropic", "ANTHROPIC_AUTH_TOKEN, ANTHROPIC_API_KEY"},
		"an empty key": {func(_ *testing.T, m *machine, r *Request) {
			r.Model = "openai/gpt-5"
			m.env = append(m.env, "OPENAI_API_KEY=k", "OPENAI_API_KEY=")
		}, api.CodeCredentials, "no key for openai", ""},
		"another's key": {func(_ *testing.T, m *machine, r *Request) {
			r.Model = "openai/gpt-5"
			m.env = append(m.env, "ANTHROPIC_API_KEY=k")
		}, api.CodeCredentials, "no key for openai", "OPENAI_API_KEY"},
		"a login only": {func(_ *testing.T, m *machine, r *Request) {
			r.Model = "openai-codex/gpt-5-codex"
			m.env = append(m.env, "OPENAI_API_KEY=k")
		}, api.CodeCredentials, "no key for openai-codex", "can't be given by environment"},
		"half a credential": {func(_ *testing.T, m *machine, r *Request) {
			r.Model = "cloudflare-workers-ai/@cf/x"
			m.env = append(m.env, "CLOUDFLARE_ACCOUNT_ID=a")
		}, api.CodeCredentials, "no key", "CLOUDFLARE_API_KEY;"},

		"broken models.json": {func(t *testing.T, m *machine, r *Request) {
			r.Model = "corp/m"
			m.write(t, "home/.pi/agent/models.json", "{", 0o600)
		}, api.CodeConfig, "models.json", ""},
		"unreadable models.json": {func(t *testing.T, m *machine, r *Request) {
			r.Model = "corp/m"
			require.NoError(t, os.Mkdir(m.home+"/.pi/agent/models.json", 0o700))
		}, api.CodeConfig, "models.json", ""},
		"custom, unknown model": {func(t *testing.T, m *machine, r *Request) {
			r.Model = "corp/other"
			m.write(t, "home/.pi/agent/models.json", corp, 0o600)
			m.env = append(m.env, "CORP_KEY=k", "TEAM=t")
		}, api.CodeConfig, `no model "other"`, "models.json"},
		"custom, no key": {func(t *testing.T, m *machine, r *Request) {
			r.Model = "corp/big"
			m.write(t, "home/.pi/agent/models.json", corp, 0o600)
			m.env = append(m.env, "TEAM=t")
		}, api.CodeCredentials, "$CORP_KEY", "set CORP_KEY"},
		"custom, half a key": {func(t *testing.T, m *machine, r *Request) {
			r.Model = "corp/big"
			m.write(t, "home/.pi/agent/models.json", corp, 0o600)
			m.env = append(m.env, "CORP_KEY=k")
		}, api.CodeCredentials, "$TEAM", "set TEAM"},
		"custom, by command": {func(t *testing.T, m *machine, r *Request) {
			r.Model = "corp/big"
			m.write(t, "home/.pi/agent/models.json", strings.Replace(corp, "$CORP_KEY", "!pass", 1), 0o600)
		}, api.CodeConfig, "from a command", ""},

		"thinking":         {func(_ *testing.T, _ *machine, r *Request) { r.Thinking = "extreme" }, api.CodeUsage, `"extreme"`, ""},
		"platform":         {func(_ *testing.T, _ *machine, r *Request) { r.Platform = "ptrace" }, api.CodeUsage, "systrap or kvm", ""},
		"name too long":    {func(_ *testing.T, _ *machine, r *Request) { r.Name = strings.Repeat("é", 101) }, api.CodeUsage, "at most 100", ""},
		"name with slash":  {func(_ *testing.T, _ *machine, r *Request) { r.Name = "a/b" }, api.CodeUsage, "no slash", ""},
		"name with escape": {func(_ *testing.T, _ *machine, r *Request) { r.Name = "a\x1b[2Jb" }, api.CodeUsage, "control character", ""},
		"name not UTF-8":   {func(_ *testing.T, _ *machine, r *Request) { r.Name = "\xff" }, api.CodeUsage, "", ""},
		"limit":            {func(_ *testing.T, _ *machine, r *Request) { r.Limits = []string{"memory=lots"} }, api.CodeUsage, "memory", ""},
		"unknown limit":    {func(_ *testing.T, _ *machine, r *Request) { r.Limits = []string{"luck=1"} }, api.CodeUsage, "luck", ""},
		"rule":             {func(_ *testing.T, _ *machine, r *Request) { r.Allow = []string{"exa mple.com"} }, api.CodeUsage, "exa mple.com", "HOST:PORT"},
		"one rule of two":  {func(_ *testing.T, _ *machine, r *Request) { r.Allow = []string{"example.com", "*"} }, api.CodeUsage, "*", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			r := Request{Workspace: m.workspace, Model: "demo/tour"}
			tc.change(t, m, &r)
			l, err := m.plan(t, r)
			require.Error(t, err)
			require.Nil(t, l)
			e := api.AsError(err)
			require.Equal(t, tc.code, e.Code, "%v", err)
			require.Contains(t, e.Message, tc.message)
			require.Contains(t, e.Hint, tc.hint)
		})
	}
}

const corp = `{"providers":{"corp":{"baseUrl":"https://llm.example.com/v1","apiKey":"$CORP_KEY","headers":{"X-Team":"$TEAM"},"models":[{"id":"big"}]},"other":{"apiKey":"$OTHER_KEY"}}} // mine`

func TestWorkspaceNames(t *testing.T) {
	m := newMachine(t)
	for _, name := range []string{"with space", "quote'\"\\", "new\nline", "日本 é", "-dash", "$(touch x)"} {
		dir := filepath.Join(m.home, name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		l, err := m.plan(t, Request{Workspace: dir, Model: "demo/tour"})
		require.NoError(t, err, "%q", name)
		require.Equal(t, dir, l.spec.Sandbox.Cwd)
		b, err := json.Marshal(l.spec)
		require.NoError(t, err)
		var back Spec
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, dir, back.Sandbox.Mounts[0].Source, "it survives the way to the supervisor")
	}
}

// keys plans a launch in an environment full of canaries, and tells which of them are in
// the sandbox's environment. No other may be anywhere in what the supervisor gets, and
// none in what can be shown.
func keys(t *testing.T, m *machine, model string, names ...string) []string {
	t.Helper()
	for _, name := range append(names, "PATIO_CANARY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "OPENROUTER_API_KEY") {
		m.env = append(m.env, name+"=canary-"+name)
	}
	l, err := m.plan(t, Request{Model: model})
	require.NoError(t, err)
	spec, err := json.Marshal(l.spec)
	require.NoError(t, err)
	session, err := json.Marshal(l.Session)
	require.NoError(t, err)
	var inside []string
	for _, kv := range l.spec.Sandbox.Env {
		if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(value, "canary-") {
			require.Equal(t, "canary-"+name, value)
			inside = append(inside, name)
		}
	}
	for _, kv := range m.env {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(value, "canary-") {
			continue
		}
		if !slices.Contains(inside, name) {
			require.NotContains(t, string(spec), value)
		}
	}
	for _, v := range l.Session.Plan.Env {
		if slices.Contains(inside, v.Name) && v.Secret {
			require.Empty(t, v.Value)
			require.Equal(t, 1, strings.Count(string(spec), "canary-"+v.Name), "a secret is in one place")
			require.NotContains(t, string(session), "canary-"+v.Name)
		} else if slices.Contains(inside, v.Name) {
			require.Equal(t, "canary-"+v.Name, v.Value, "a setting is shown")
		}
	}
	return inside
}

func TestOneKeyAndNothingElse(t *testing.T) {
	for name, tc := range map[string]struct {
		model  string
		has    []string
		models string
		want   []string
	}{
		"demo":                 {model: "demo/tour", has: []string{"ANTHROPIC_API_KEY"}, want: nil},
		"one key":              {model: "anthropic/claude-sonnet-4-5", has: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}, want: []string{"ANTHROPIC_API_KEY"}},
		"with a level":         {model: "anthropic/claude-sonnet-4-5:high", has: []string{"ANTHROPIC_API_KEY"}, want: []string{"ANTHROPIC_API_KEY"}},
		"the first of two":     {model: "anthropic/claude-sonnet-4-5", has: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, want: []string{"ANTHROPIC_AUTH_TOKEN"}},
		"with its settings":    {model: "cloudflare-workers-ai/@cf/x", has: []string{"CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID"}, want: []string{"CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID"}},
		"the only provider":    {model: "", has: []string{"OPENAI_API_KEY"}, want: []string{"OPENAI_API_KEY"}},
		"custom":               {model: "corp/big", has: []string{"CORP_KEY", "TEAM", "OTHER_KEY"}, models: corp, want: []string{"CORP_KEY", "TEAM"}},
		"custom, no key":       {model: "local/m", models: `{"providers":{"local":{"baseUrl":"http://llm.example.com/v1","models":[{"id":"m"}]}}}`, want: nil},
		"key in models.json":   {model: "openai/gpt-5", has: []string{"OPENAI_API_KEY"}, models: `{"providers":{"openai":{"apiKey":"literal"}}}`, want: nil},
		"headers beside a key": {model: "openai/gpt-5", has: []string{"OPENAI_API_KEY", "TEAM"}, models: `{"providers":{"openai":{"headers":{"X-Team":"$TEAM"}}}}`, want: []string{"TEAM", "OPENAI_API_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if tc.models != "" {
				m.write(t, "home/.pi/agent/models.json", tc.models, 0o600)
			}
			require.Equal(t, tc.want, keys(t, m, tc.model, tc.has...))
		})
	}
}

func TestCustomProvider(t *testing.T) {
	m := newMachine(t)
	m.write(t, "home/.pi/agent/models.json", corp, 0o600)
	m.env = append(m.env, "CORP_KEY=k", "TEAM=t")
	l, err := m.plan(t, Request{Model: "corp/big"})
	require.NoError(t, err)
	var models string
	for _, f := range l.spec.Files {
		if filepath.Base(f.Path) == "models.json" {
			models = string(f.Data)
		}
	}
	require.Contains(t, models, "llm.example.com")
	require.NotContains(t, models, "OTHER_KEY", "no other provider's definition")
	require.Contains(t, l.Session.Plan.LeftOut[0].Reason, "only its provider corp")

	// The agent directory of the caller's own Pi may be elsewhere.
	require.NoError(t, os.Rename(m.home+"/.pi/agent", m.root+"/agent"))
	_, err = m.plan(t, Request{Model: "corp/big"})
	require.Equal(t, api.CodeConfig, api.AsError(err).Code)
	m.env = append(m.env, "PI_CODING_AGENT_DIR="+m.root+"/agent")
	_, err = m.plan(t, Request{Model: "corp/big"})
	require.NoError(t, err)
}

func TestDefaultModel(t *testing.T) {
	m := newMachine(t)
	m.env = append(m.env, "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k")
	m.write(t, "home/.pi/agent/settings.json", `{"defaultProvider":"anthropic","defaultModel":"claude-opus-4-1"}`, 0o600)
	l, err := m.plan(t, Request{})
	require.NoError(t, err)
	require.Equal(t, "anthropic/claude-opus-4-1", l.Session.Model.String())
	l, err = m.plan(t, Request{Model: "openai/gpt-5"})
	require.NoError(t, err)
	require.Equal(t, "openai/gpt-5", l.Session.Model.String())
	for _, broken := range []string{"", "{", `{"defaultProvider":"anthropic"}`, `[]`} {
		m.write(t, "home/.pi/agent/settings.json", broken, 0o600)
		_, err = m.plan(t, Request{})
		require.ErrorContains(t, err, "keys for several providers")
	}
}

func TestLinkedWorktreeIsSaid(t *testing.T) {
	m := newMachine(t)
	require.NoError(t, os.WriteFile(m.workspace+"/.git", []byte("gitdir: /elsewhere\n"), 0o600))
	l, err := m.plan(t, Request{Model: "demo/tour"})
	require.NoError(t, err)
	require.Equal(t, m.workspace+"/.git", l.Session.Plan.LeftOut[0].Path)
}

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 10000 {
		id := newID()
		require.Regexp(t, `^[a-z2-7]{10}$`, id)
		seen[id] = true
	}
	require.Len(t, seen, 10000)
}

func TestSortedKeys(t *testing.T) {
	m := map[string]int{"b": 1, "a": 2, "c": 3}
	require.Equal(t, slices.Sorted(maps.Keys(m)), sortedKeys(m))
}
