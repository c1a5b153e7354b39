package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sahilm/fuzzy"

	"patio/engine/api"
	"patio/engine/demo"
	"patio/engine/pi"
	"patio/engine/supervisor"
	"patio/sandbox"
	"patio/sandbox/image"
	"patio/sandbox/limits"
	"patio/sandbox/mounts"
	"patio/sandbox/network/policy"
	"patio/sandbox/runsc"
)

// Spec is what a supervisor is given.
type Spec = supervisor.Spec

// Plan works a launch out. It reads, and touches nothing.
func (e *Engine) Plan(_ context.Context, r Request) (*Launch, error) {
	p := planner{e: e, r: r, now: time.Now().UTC()}
	return p.plan()
}

func (p *planner) plan() (*Launch, error) {
	for _, step := range []func() error{p.checkRequest, p.workspace, p.image, p.runsc, checkMachine, p.limits, p.model, p.egress} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return p.launch(), nil
}

// planner holds a launch while it is worked out, step by step.
type planner struct {
	e   *Engine
	r   Request
	now time.Time

	dir      mounts.Workspace
	img      image.Image
	runscBin string
	lim      limits.Limits
	rules    []policy.Rule
	provider string
	env      []api.EnvVar // of the provider, from the caller's environment
	models   []byte       // models.json, nil when the model is built in
	leftOut  []mounts.LeftOut
	notes    []string

	before      *api.Session // the session that is resumed, nil for a new one
	sessionFile string       // Pi's file to go on with, "" for a new one
	remapFrom   string       // the file that sessionFile is to be a copy of, "" for none
}

func (p *planner) checkRequest() error {
	if err := pi.CheckThinking(p.r.Thinking); err != nil {
		return api.Errorf(api.CodeUsage, "", "%w", err)
	}
	if err := checkName(p.r.Name); err != nil {
		return err
	}
	switch p.r.Platform {
	case "":
		p.r.Platform = runsc.Systrap
	case runsc.Systrap, runsc.KVM:
	default:
		return api.Errorf(api.CodeUsage, "", "unknown platform %q: systrap or kvm", p.r.Platform)
	}
	return nil
}

func checkName(name string) error {
	if strings.Contains(name, "/") || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) || utf8.RuneCountInString(name) > 100 {
		return api.Errorf(api.CodeUsage, "", "a session's name has at most 100 characters, no slash, no line end and no control character")
	}
	return nil
}

func (p *planner) workspace() error {
	dir := p.r.Workspace
	if dir == "" {
		dir = "."
	}
	w, err := p.checkWorkspace(dir)
	switch {
	case errors.Is(err, mounts.ErrRefused):
		return api.Errorf(api.CodeRefused, "", "%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return api.Errorf(api.CodeNotFound, "make it first, or name another directory", "%w", err)
	case err != nil:
		return api.Errorf(api.CodeConfig, "", "%w", err)
	}
	p.dir = w
	// A linked worktree's repository lies elsewhere.
	if fi, err := os.Lstat(filepath.Join(w.Path, ".git")); err == nil && fi.Mode().IsRegular() {
		p.leftOut = append(p.leftOut, mounts.LeftOut{Path: filepath.Join(w.Path, ".git"), Reason: "it points to a repository outside of the workspace, which isn't mounted: git doesn't work inside"})
	}
	return nil
}

// checkWorkspace compares a directory with policy: what holds secrets, or patio's own
// state, is never a workspace.
func (p *planner) checkWorkspace(dir string) (mounts.Workspace, error) {
	d := p.e.o.Dirs
	return mounts.CheckWorkspace(dir, mounts.ReadHost(d.State, d.Data, d.Cache, d.Runtime, d.Config, p.getenv("PI_CODING_AGENT_DIR"), p.getenv("PASEO_HOME")))
}

func (p *planner) image() error {
	store := p.e.Store()
	img, err := store.Resolve(p.r.Image)
	switch {
	case errors.Is(err, image.ErrNoImage):
		return api.Errorf(api.CodeMissing, "run `make setup` in patio's source tree, or `patio image build`", "%w", err)
	case errors.Is(err, image.ErrAmbiguous):
		return api.Errorf(api.CodeConflict, "", "%w", err)
	case err != nil:
		return err
	}
	p.img = img
	return nil
}

func (p *planner) runsc() error {
	var err error
	p.runscBin, err = runsc.Find(p.e.o.Executable)
	if err != nil {
		return api.Errorf(api.CodeMissing, "", "%w", err)
	}
	return nil
}

func (p *planner) limits() error {
	host, err := limits.HostInfo("")
	if err != nil {
		return fmt.Errorf("read this machine's size: %w", err)
	}
	p.lim, err = limits.Parse(limits.Default(host.Memory, host.CPUs), p.r.Limits...)
	if err != nil {
		return api.Errorf(api.CodeUsage, "", "%w", err)
	}
	return nil
}

// model finds the provider, its key in the caller's environment, and its definition.
func (p *planner) model() error {
	provider, id, err := p.chooseModel()
	if err != nil {
		return err
	}
	p.provider = provider
	if provider == demo.Provider {
		if !slices.Contains(demoModels(), id) {
			return unknownModel(provider, id, demoModels())
		}
		p.models = demo.ModelsJSON(supervisor.DemoBaseURL)
		p.notes = append(p.notes, "the model is patio's own scripted one: no AI, no key, no network")
		return nil
	}
	custom, found, err := p.customProvider(provider)
	if err != nil {
		return err
	}
	builtIn, known := p.img.Manifest.Providers[provider]
	if !known && !found {
		names := append(sortedKeys(p.img.Manifest.Providers), demo.Provider)
		return api.Errorf(api.CodeConfig, didYouMean(provider, names, "define it in ~/.pi/agent/models.json"), "unknown model provider %q", provider)
	}
	var ids []string
	for _, m := range builtIn.Models {
		ids = append(ids, m.ID)
	}
	ids = append(ids, custom.Models...)
	if id != "" && !slices.Contains(ids, withoutThinking(id)) {
		return unknownModel(provider, id, ids)
	}
	if found {
		p.models = custom.JSON
		if err := p.customEnv(provider, custom); err != nil {
			return err
		}
	}
	return p.credential(provider, builtIn.KeyEnv, custom.HasKey || found && !known)
}

// customEnv takes over what the caller's own models.json names: Pi needs all of it.
func (p *planner) customEnv(provider string, custom pi.CustomProvider) error {
	for _, name := range custom.Env {
		v := p.getenv(name)
		if v == "" {
			return api.Errorf(api.CodeCredentials, "set "+name+" in the environment; demo/tour needs no key", "no key for %s: its entry in models.json uses $%s", provider, name)
		}
		p.env = append(p.env, api.EnvVar{Name: name, Value: v, Secret: true, Reason: "named by the entry of " + provider + " in models.json"})
	}
	return nil
}

// withoutThinking drops the level that Pi allows behind a model's id, MODEL:high.
func withoutThinking(id string) string {
	if i := strings.LastIndexByte(id, ':'); i > 0 && slices.Contains(pi.ThinkingLevels, id[i+1:]) {
		return id[:i]
	}
	return id
}

// credential takes over the provider's key and settings. With ownKey the caller's
// models.json has the key, or says that there is none.
func (p *planner) credential(provider string, keyEnv []string, ownKey bool) error {
	if ownKey {
		keyEnv = nil
	}
	has := func(name string) bool { return p.getenv(name) != "" }
	c, ok := pi.SelectCredential(provider, keyEnv, has)
	if !ok && !ownKey {
		names := pi.KeyNames(provider, keyEnv)
		hint := "this provider's key can't be given by environment; choose another with --model"
		if len(names) > 0 {
			hint = "set one of these in the environment: " + strings.Join(names, ", ") + "; demo/tour needs no key"
		}
		return api.Errorf(api.CodeCredentials, hint, "no key for %s", provider)
	}
	for _, name := range c.Key {
		p.env = append(p.env, api.EnvVar{Name: name, Value: p.getenv(name), Secret: true, Reason: "the key for " + provider})
	}
	for _, name := range c.Settings {
		p.env = append(p.env, api.EnvVar{Name: name, Value: p.getenv(name), Reason: "a setting of " + provider})
	}
	return nil
}

// chooseModel splits the model asked for. Without one it is the default of the caller's
// own Pi, or else of the only provider that the caller has a key for.
func (p *planner) chooseModel() (provider, id string, err error) {
	if p.r.Model == "" {
		p.r.Model = p.defaultModel()
	}
	if p.r.Model != "" {
		provider, id, ok := strings.Cut(p.r.Model, "/")
		if !ok || provider == "" || id == "" {
			return "", "", api.Errorf(api.CodeUsage, "for example --model anthropic/claude-sonnet-4-5, or demo/tour, which needs no key", "a model is PROVIDER/MODEL, not %q", p.r.Model)
		}
		return provider, id, nil
	}
	var with []string
	for _, name := range sortedKeys(p.img.Manifest.Providers) {
		if _, ok := pi.SelectCredential(name, p.img.Manifest.Providers[name].KeyEnv, func(v string) bool { return p.getenv(v) != "" }); ok {
			with = append(with, name)
		}
	}
	switch len(with) {
	case 1:
		p.notes = append(p.notes, "no model was named: Pi chooses its default of "+with[0]+", the only provider with a key in the environment")
		return with[0], "", nil
	case 0:
		return "", "", api.Errorf(api.CodeConfig, "name one with --model PROVIDER/MODEL or in PATIO_MODEL; demo/tour needs no key", "no model chosen")
	default:
		return "", "", api.Errorf(api.CodeConfig, "name one with --model PROVIDER/MODEL or in PATIO_MODEL", "no model chosen, and the environment has keys for several providers: %s", strings.Join(with, ", "))
	}
}

// defaultModel reads the default of the caller's own Pi. A settings file that can't be
// read names none: Pi itself says what is wrong with it.
func (p *planner) defaultModel() string {
	b, err := os.ReadFile(p.agentFile("settings.json"))
	if err != nil {
		return ""
	}
	var s struct {
		Provider string `json:"defaultProvider"`
		Model    string `json:"defaultModel"`
	}
	if json.Unmarshal(b, &s) != nil || s.Provider == "" || s.Model == "" {
		return ""
	}
	p.notes = append(p.notes, "no model was named: the default of your own Pi is taken")
	return s.Provider + "/" + s.Model
}

func demoModels() []string {
	var ids []string
	for _, m := range demo.Models() {
		ids = append(ids, m.ID)
	}
	return ids
}

func unknownModel(provider, id string, ids []string) error {
	hint := didYouMean(id, ids, "a model that this image's Pi doesn't list goes into ~/.pi/agent/models.json")
	return api.Errorf(api.CodeConfig, hint, "provider %s has no model %q", provider, id)
}

// didYouMean suggests what is close to a name.
func didYouMean(name string, among []string, otherwise string) string {
	var close []string
	for _, m := range fuzzy.Find(name, among) {
		if close = append(close, m.Str); len(close) == 5 {
			break
		}
	}
	if len(close) == 0 {
		if len(among) <= 12 {
			return "one of " + strings.Join(among, ", ") + "; " + otherwise
		}
		return otherwise
	}
	return "did you mean " + strings.Join(close, ", ") + "? Otherwise: " + otherwise
}

// customProvider reads the caller's own models.json for one provider.
func (p *planner) customProvider(provider string) (pi.CustomProvider, bool, error) {
	path := p.agentFile("models.json")
	if path == "" {
		return pi.CustomProvider{}, false, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return pi.CustomProvider{}, false, nil
	}
	if err != nil {
		return pi.CustomProvider{}, false, api.Errorf(api.CodeConfig, "", "read Pi's models.json: %w", err)
	}
	c, found, err := pi.ReadCustomProvider(b, provider)
	if err != nil {
		return c, false, api.Errorf(api.CodeConfig, "", "%s: %w", path, err)
	}
	if found {
		p.leftOut = append(p.leftOut, mounts.LeftOut{Path: path, Reason: "only its provider " + provider + " is taken over"})
	}
	return c, found, nil
}

// agentFile is a file of the caller's own Pi.
func (p *planner) agentFile(name string) string {
	if dir := p.getenv("PI_CODING_AGENT_DIR"); dir != "" {
		return filepath.Join(dir, name)
	}
	home := p.getenv("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".pi", "agent", name)
}

func (p *planner) getenv(name string) string {
	for i := len(p.e.o.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(p.e.o.Environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

func (p *planner) egress() error {
	for _, text := range p.r.Allow {
		rule, err := policy.ParseRule(text)
		if err != nil {
			return api.Errorf(api.CodeUsage, "a rule is HOST, HOST:PORT or *.SUFFIX[:PORT]", "%w", err)
		}
		rule.Source, rule.Since = "flag", p.now
		p.rules = append(p.rules, rule)
	}
	return nil
}

// newID makes a session's id: short to type, long enough to be unique on a machine for good.
func newID() string { return strings.ToLower(rand.Text()[:10]) }

func (p *planner) launch() *Launch {
	d := p.e.o.Dirs
	session := api.Session{V: 1, ID: newID(), Name: p.r.Name, Created: p.now}
	if p.before != nil {
		session = resumed(*p.before, p.r.Name)
	}
	id := session.ID
	dir := d.session(id)
	agentDir := filepath.Join(dir, supervisor.AgentDir)
	pl := pi.Launch{Model: p.r.Model, Thinking: p.r.Thinking, AgentDir: agentDir, SessionDir: d.piSessions(), Session: p.sessionFile, Home: sandbox.Home}

	env := make([]api.EnvVar, 0, 32)
	for _, v := range pl.Env() {
		env = append(env, api.EnvVar{Name: v.Name, Value: v.Value, Reason: v.Reason})
	}
	env = append(env, p.env...)
	pairs := make([]string, 0, len(env))
	shown := make([]api.EnvVar, 0, len(env))
	for _, v := range env {
		pairs = append(pairs, v.Name+"="+v.Value)
		if v.Secret {
			v.Value = ""
		}
		shown = append(shown, v)
	}

	files := []supervisor.File{{Path: filepath.Join(agentDir, "settings.json"), Data: pi.Settings()}}
	generated := []api.GeneratedFile{{Path: files[0].Path, Reason: "Pi's settings: the workspace's own .pi resources aren't loaded"}}
	if p.models != nil {
		f := supervisor.File{Path: filepath.Join(agentDir, "models.json"), Data: p.models}
		files = append(files, f)
		generated = append(generated, api.GeneratedFile{Path: f.Path, Reason: "the definition of provider " + p.provider})
	}
	plan := sandbox.Plan{
		ID:    id,
		Image: sandbox.Image{Digest: p.img.Manifest.Digest, Path: p.img.Path},
		Argv:  pl.Argv(), Env: pairs, Cwd: p.dir.Path,
		Owner: sandbox.Owner{UID: p.dir.UID, GID: p.dir.GID},
		Mounts: []mounts.Mount{
			mounts.At(p.dir.Path, mounts.ReadWrite, "the workspace"),
			mounts.At(agentDir, mounts.ReadWrite, "Pi's own state, of this session alone"),
			mounts.At(d.piSessions(), mounts.ReadWrite, "Pi's session files"),
		},
		Limits: p.lim, Platform: p.r.Platform,
	}
	if p.sessionFile != "" && filepath.Dir(p.sessionFile) != d.piSessions() {
		plan.Mounts = append(plan.Mounts, mounts.At(p.sessionFile, mounts.ReadWrite, "the session file that is resumed"))
	}
	session.Phase, session.Workspace, session.StartedBy = api.PhaseNew, p.dir.Path, p.r.StartedBy
	session.Model, session.SessionFile = requestedModel(p.r.Model, p.r.Thinking), p.sessionFile
	session.Plan = api.Plan{
		Image: api.ImageRef{Digest: plan.Image.Digest, Path: plan.Image.Path, Pi: p.img.Manifest.Versions["pi"], Node: p.img.Manifest.Versions["node"]},
		Argv:  plan.Argv, Env: shown, Cwd: plan.Cwd, Mounts: plan.Mounts, Egress: p.rules,
		Limits: p.lim, LeftOut: p.leftOut, Platform: p.r.Platform, Files: generated, Notes: p.notes,
		User: fmt.Sprintf("uid 1000 inside is uid %d outside, without capabilities", p.dir.UID),
	}
	return &Launch{Session: session, image: p.img, resume: p.before != nil, spec: Spec{
		Session: session, Dir: dir, Scratch: d.scratch(id), Socket: d.socket(id),
		Executable: p.e.o.Executable, Runsc: p.runscBin, ImageStore: d.Images(),
		Sandbox: plan, Dirs: []string{dir, agentDir, d.piSessions()}, Files: files, Rules: p.rules,
		SessionFile: p.sessionFile, CopyFrom: p.remapFrom, Locks: d.locks(),
	}}
}

func requestedModel(model, thinking string) api.Model {
	provider, id, _ := strings.Cut(model, "/")
	return api.Model{Provider: provider, ID: id, Thinking: thinking}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
