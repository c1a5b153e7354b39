package pi

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Endpoint is the host that a model's calls go to.
type Endpoint struct {
	Host   string
	Port   string
	Scheme string
}

// Rule is the endpoint as an egress rule.
func (e Endpoint) Rule() string { return e.Host + ":" + e.Port }

// placeholder is a part of a base URL that Pi fills in from the environment when it
// makes a call: {CLOUDFLARE_ACCOUNT_ID}, or {location} for Vertex.
var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

var (
	bedrockHost = regexp.MustCompile(`^https://bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com/?$`)
	bedrockARN  = regexp.MustCompile(`^arn:aws(?:-[a-z0-9-]+)?:bedrock:([a-z0-9-]+):`)
)

// EndpointOf derives the endpoint of the model that Pi itself reports. Env looks up what
// Pi's own environment holds.
func EndpointOf(m Model, env func(string) string) (Endpoint, error) {
	base := m.BaseURL
	switch m.Provider {
	case "azure-openai-responses":
		// Pi reports it empty and takes it from the environment at each call.
		if v := strings.TrimSpace(env("AZURE_OPENAI_BASE_URL")); v != "" {
			base = v
		} else if v := env("AZURE_OPENAI_RESOURCE_NAME"); v != "" {
			base = "https://" + v + ".openai.azure.com"
		}
		if base == "" {
			return Endpoint{}, fmt.Errorf("the endpoint of %s is unknown: set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME", m.Provider)
		}
	case "google-vertex":
		location := env("GOOGLE_CLOUD_LOCATION")
		if location == "" && strings.Contains(base, "{location}") {
			return Endpoint{}, fmt.Errorf("the endpoint of %s is unknown: set GOOGLE_CLOUD_LOCATION", m.Provider)
		}
		if location == "global" {
			base = strings.ReplaceAll(base, "{location}-", "")
		}
		base = strings.ReplaceAll(base, "{location}", location)
	case "amazon-bedrock":
		// The catalogue names one region; the AWS SDK takes the caller's, and an inference
		// profile's ARN names its own. A custom endpoint stays.
		if bedrockHost.MatchString(base) {
			if arn := bedrockARN.FindStringSubmatch(m.ID); arn != nil {
				base = "https://bedrock-runtime." + arn[1] + ".amazonaws.com"
			} else if region := firstOf(env("AWS_REGION"), env("AWS_DEFAULT_REGION")); region != "" {
				base = "https://bedrock-runtime." + region + ".amazonaws.com"
			}
		}
	}
	var missing string
	base = placeholder.ReplaceAllStringFunc(base, func(p string) string {
		v := env(p[1 : len(p)-1])
		if v == "" {
			missing = p[1 : len(p)-1]
		}
		return v
	})
	if missing != "" {
		return Endpoint{}, fmt.Errorf("the endpoint of %s needs %s in the environment", m.Provider, missing)
	}
	u, err := url.Parse(base)
	if err != nil {
		return Endpoint{}, fmt.Errorf("the endpoint of %s is no URL: %w", m.Provider, err)
	}
	e := Endpoint{Host: u.Hostname(), Port: u.Port(), Scheme: u.Scheme}
	if e.Host == "" {
		return Endpoint{}, fmt.Errorf("the endpoint of %s/%s is unknown: Pi reports the base URL %q", m.Provider, m.ID, m.BaseURL)
	}
	if e.Port == "" {
		switch e.Scheme {
		case "https", "wss":
			e.Port = "443"
		case "http", "ws":
			e.Port = "80"
		default:
			return Endpoint{}, fmt.Errorf("the endpoint of %s has the scheme %q, not http or https", m.Provider, e.Scheme)
		}
	}
	return e, nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
