package pi

import (
	"encoding/json"
	"fmt"
	"regexp"
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
	// Env are the variables that its key and headers name.
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
		BaseURL string                     `json:"baseUrl"`
		APIKey  string                     `json:"apiKey"`
		Headers map[string]string          `json:"headers"`
		Models  []struct{ ID string }      `json:"models"`
		Over    map[string]json.RawMessage `json:"modelOverrides"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return CustomProvider{}, false, fmt.Errorf("decode provider %s of models.json: %w", provider, err)
	}
	p := CustomProvider{ID: provider, BaseURL: entry.BaseURL}
	for _, m := range entry.Models {
		p.Models = append(p.Models, m.ID)
	}
	for id := range entry.Over {
		p.Models = append(p.Models, id)
	}
	values := []string{entry.APIKey}
	for _, v := range entry.Headers {
		values = append(values, v)
	}
	for _, m := range gjson.GetBytes(raw, "models.#.headers").Array() {
		m.ForEach(func(_, v gjson.Result) bool { values = append(values, v.String()); return true })
	}
	for _, v := range values {
		if strings.HasPrefix(v, "!") {
			return CustomProvider{}, false, fmt.Errorf("provider %s of models.json gets a value from a command (%q): put the value in an environment variable and name it as $NAME", provider, firstWord(v))
		}
		for _, m := range variable.FindAllStringSubmatch(v, -1) {
			if name := m[1] + m[2]; name != "" {
				p.Env = append(p.Env, name)
			}
		}
	}
	out, err := json.Marshal(map[string]any{"providers": map[string]json.RawMessage{provider: raw}})
	if err != nil {
		return CustomProvider{}, false, err
	}
	p.JSON = pretty.Pretty(out)
	return p, true, nil
}

func firstWord(command string) string {
	if f := strings.Fields(command); len(f) > 0 {
		return f[0] + " …"
	}
	return "!"
}
