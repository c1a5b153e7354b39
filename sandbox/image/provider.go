package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Provider is what the image's Pi knows of one model provider.
type Provider struct {
	Name string `json:"name"`
	// BaseURLs count the models at each base URL. One may be empty or hold {placeholders} that Pi fills in from the
	// environment; see Model.
	BaseURLs map[string]int `json:"baseUrls"`
	// APIs are the wire protocols of its models, sorted.
	APIs []string `json:"apis"`
	// KeyEnv are the environment variables that Pi looks up for its credential, in order of precedence.
	KeyEnv []string `json:"keyEnv"`
	Models []Model  `json:"models"`
	OAuth  *OAuth   `json:"oauth,omitempty"`
}

// Model is one model of a provider's built-in catalog.
type Model struct {
	ID      string `json:"id"`
	API     string `json:"api"`
	BaseURL string `json:"baseUrl"`
	// ContextWindow is in tokens, 0 when unknown.
	ContextWindow int `json:"contextWindow"`
}

// OAuth is how a provider's subscription login works.
type OAuth struct {
	Name string `json:"name"`
	// TokenHosts are the hosts that a token refresh calls, other than the models' own.
	TokenHosts []string `json:"tokenHosts"`
}

// Hosts are the host names of the base URLs, sorted, without those that have placeholders.
func (p Provider) Hosts() []string {
	var hosts []string
	for base := range p.BaseURLs {
		u, err := url.Parse(base)
		if err != nil || u.Hostname() == "" || strings.ContainsAny(u.Hostname(), "{}") {
			continue
		}
		hosts = append(hosts, u.Hostname())
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// decodeProviders reads what inventory.mjs prints.
func decodeProviders(b []byte) (map[string]Provider, error) {
	var doc struct {
		Providers map[string]Provider `json:"providers"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("read provider inventory: %w", err)
	}
	if len(doc.Providers) == 0 {
		return nil, errors.New("read provider inventory: it is empty")
	}
	for id, p := range doc.Providers {
		n := 0
		for _, count := range p.BaseURLs {
			n += count
		}
		if n != len(p.Models) {
			return nil, fmt.Errorf("read provider inventory: %s has %d models and base URLs for %d", id, len(p.Models), n)
		}
		if len(p.KeyEnv) == 0 && p.OAuth == nil {
			return nil, fmt.Errorf("read provider inventory: %s has neither a key variable nor a login", id)
		}
	}
	return doc.Providers, nil
}
