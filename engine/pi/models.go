package pi

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/jsonc"
	"github.com/tidwall/pretty"
)

// CustomProvider is a provider from the user's own models.json.
type CustomProvider struct {
	ID      string
	BaseURL string
	Models  []string
	// JSON is the entry alone, as a models.json for this one provider.
	JSON []byte
	// HasKey says that the entry has a key of its own, which Pi prefers to one in the
	// environment.
	HasKey bool
	// Env are the variables that its key and headers name: the provider needs them all.
	Env []string
}

// variable is how a models.json names one: $NAME or ${NAME}; $$ stands for a dollar.
var variable = regexp.MustCompile(`\$(?:\$|!|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// ReadCustomProvider finds a provider in a models.json, comments allowed as Pi does. It
// returns false when it isn't there. A value that is a command ("!…") is refused: it
// would run on the host's behalf inside, where its program isn't.
func ReadCustomProvider(models []byte, provider string) (CustomProvider, bool, error) {
	clean := jsonc.ToJSON(models)
	if !gjson.ValidBytes(clean) {
		return CustomProvider{}, false, fmt.Errorf("models.json is not valid JSON")
	}
	var doc struct {
		Providers map[string]json.RawMessage `json:"providers"`
	}
	if err := json.Unmarshal(clean, &doc); err != nil {
		return CustomProvider{}, false, fmt.Errorf("decode models.json: %w", err)
	}
	raw, ok := doc.Providers[provider]
	if !ok {
		return CustomProvider{}, false, nil
	}
	var entry struct {
		BaseURL string            `json:"baseUrl"`
		APIKey  string            `json:"apiKey"`
		Headers map[string]string `json:"headers"`
		Models  []struct {
			ID      string            `json:"id"`
			Headers map[string]string `json:"headers"`
		} `json:"models"`
		Over map[string]struct {
			Headers map[string]string `json:"headers"`
		} `json:"modelOverrides"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return CustomProvider{}, false, fmt.Errorf("decode provider %s of models.json: %w", provider, err)
	}
	p := CustomProvider{ID: provider, BaseURL: entry.BaseURL, HasKey: entry.APIKey != ""}
	values := append([]string{entry.APIKey}, inOrder(entry.Headers)...)
	for _, m := range entry.Models {
		p.Models = append(p.Models, m.ID)
		values = append(values, inOrder(m.Headers)...)
	}
	for _, id := range slices.Sorted(maps.Keys(entry.Over)) {
		p.Models = append(p.Models, id)
		values = append(values, inOrder(entry.Over[id].Headers)...)
	}
	for _, v := range values {
		if strings.HasPrefix(v, "!") {
			return CustomProvider{}, false, fmt.Errorf("provider %s of models.json gets a value from a command (%q): put the value in an environment variable and name it as $NAME", provider, firstWord(v))
		}
		for _, m := range variable.FindAllStringSubmatch(v, -1) {
			if name := m[1] + m[2]; name != "" && !slices.Contains(p.Env, name) {
				p.Env = append(p.Env, name)
			}
		}
	}
	raw, err := projectLoopback(raw)
	if err != nil {
		return CustomProvider{}, false, err
	}
	out, err := json.Marshal(map[string]any{"providers": map[string]json.RawMessage{provider: raw}})
	if err != nil {
		return CustomProvider{}, false, err
	}
	p.JSON = pretty.Pretty(out)
	return p, true, nil
}

// inOrder gives a map's values in the order of their keys: equal files make equal plans.
func inOrder(m map[string]string) []string {
	values := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[k])
	}
	return values
}

func firstWord(command string) string {
	if f := strings.Fields(command); len(f) > 0 {
		return f[0] + " …"
	}
	return "!"
}
