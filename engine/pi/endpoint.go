package pi

import (
	"errors"
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

// placeholder is a part of a base URL that Pi fills in from the environment when it
// makes a call: {CLOUDFLARE_ACCOUNT_ID}, or {location} for Vertex.
var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)

var (
	bedrockHost = regexp.MustCompile(`^https://bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?/?$`)
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
		if strings.Contains(base, "{location}") {
			var err error
			if base, err = vertexBase(env); err != nil {
				return Endpoint{}, err
			}
		}
	case "amazon-bedrock":
		base = bedrockBase(base, m.ID, firstOf(env("AWS_REGION"), env("AWS_DEFAULT_REGION")))
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
	var standard string
	switch e.Scheme {
	case "https", "wss":
		standard = "443"
	case "http", "ws":
		standard = "80"
	default:
		return Endpoint{}, fmt.Errorf("the endpoint of %s has the scheme %q, not http or https", m.Provider, e.Scheme)
	}
	if e.Port == "" {
		e.Port = standard
	}
	return e, nil
}

// vertexBase is where Pi's Google client goes when no other base URL is configured: with
// an API key to the global endpoint, whatever the location is.
func vertexBase(env func(string) string) (string, error) {
	location := env("GOOGLE_CLOUD_LOCATION")
	switch {
	case strings.TrimSpace(env("GOOGLE_CLOUD_API_KEY")) != "", location == "global":
		return "https://aiplatform.googleapis.com", nil
	case location == "":
		return "", errors.New("the endpoint of google-vertex is unknown: set GOOGLE_CLOUD_LOCATION")
	case location == "us", location == "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com", nil
	}
	return "https://" + location + "-aiplatform.googleapis.com", nil
}

// bedrockBase follows Pi: a base URL that isn't AWS's own stays, and so does the
// catalogue's when no region is configured. Otherwise an inference profile's ARN names
// the region, or else the configuration.
func bedrockBase(base, model, region string) string {
	if region == "" || !bedrockHost.MatchString(base) {
		return base
	}
	if arn := bedrockARN.FindStringSubmatch(model); arn != nil {
		region = arn[1]
	}
	suffix := ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		suffix += ".cn"
	}
	return "https://bedrock-runtime." + region + suffix
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
