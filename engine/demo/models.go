package demo

import (
	"encoding/json"
	"fmt"
)

// Provider is the name of the demo provider in Pi: its models are demo/tour, demo/echo and so on.
const Provider = "demo"

// ProviderName is what people read. It says what this is not.
const ProviderName = "patio demo (scripted, no AI)"

// APIKey stands where Pi wants a key. It opens nothing and nothing checks it.
const APIKey = "demo-no-key-needed" //nolint:gosec // G101: no secret, as it says

// Limits that Pi is told. They are far beyond what a demonstration fills, so that Pi neither compacts nor cuts in the
// middle of one; nothing here enforces them.
const (
	contextWindow = 1_000_000
	maxTokens     = 128_000
)

// Model is a model as Pi's models.json describes it.
type Model struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	Reasoning     bool     `json:"reasoning"`
	Input         []string `json:"input"`
	ContextWindow int      `json:"contextWindow"`
	MaxTokens     int      `json:"maxTokens"`
	Cost          Cost     `json:"cost"`
}

// Cost is in dollars for a million tokens. The demo is free.
type Cost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

const (
	modelTour   = "tour"
	modelEcho   = "echo"
	modelThink  = "think"
	modelVision = "vision"
)

// Models lists the demo's models. To a prompt without directives, tour shows the sandbox around, echo answers with the
// prompt, think thinks aloud before it does the same, vision says which images it received.
func Models() []Model {
	text, image := []string{"text"}, []string{"text", "image"}
	model := func(id, what string, reasoning bool, input []string) Model {
		return Model{
			ID: id, Name: fmt.Sprintf("Demo: %s (scripted, no AI)", what), Reasoning: reasoning, Input: input,
			ContextWindow: contextWindow, MaxTokens: maxTokens,
		}
	}
	return []Model{
		model(modelTour, "tour of the sandbox", true, text),
		model(modelEcho, "echo", false, text),
		model(modelThink, "think aloud", true, text),
		model(modelVision, "look at images", false, image),
	}
}

// ModelsJSON is the content of Pi's models.json that makes the demo's models available, with its API at baseURL (which
// ends in /v1).
func ModelsJSON(baseURL string) []byte {
	type compat struct {
		SupportsDeveloperRole   bool `json:"supportsDeveloperRole"`
		SupportsReasoningEffort bool `json:"supportsReasoningEffort"`
	}
	type provider struct {
		Name    string  `json:"name"`
		BaseURL string  `json:"baseUrl"`
		APIKey  string  `json:"apiKey"`
		API     string  `json:"api"`
		Compat  compat  `json:"compat"`
		Models  []Model `json:"models"`
	}
	type file struct {
		Providers map[string]provider `json:"providers"`
	}
	b, err := json.MarshalIndent(file{map[string]provider{Provider: {
		Name: ProviderName, BaseURL: baseURL, APIKey: APIKey, API: "openai-completions", Models: Models(),
	}}}, "", "  ")
	if err != nil {
		// Strings, numbers and booleans: there is nothing in it that could fail to encode.
		panic(err)
	}
	return append(b, '\n')
}

func knownModel(id string) bool {
	for _, m := range Models() {
		if m.ID == id {
			return true
		}
	}
	return false
}
