package pi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"patio/sandbox/network/policy"
)

func lookup(pairs ...string) func(string) string {
	env := map[string]string{}
	for _, kv := range pairs {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return func(name string) string { return env[name] }
}

func TestEndpointOf(t *testing.T) {
	const (
		bedrock = "https://bedrock-runtime.us-east-1.amazonaws.com"
		vertex  = "https://{location}-aiplatform.googleapis.com"
		profile = "arn:aws:bedrock:eu-west-3:123456789012:inference-profile/x"
	)
	for name, tc := range map[string]struct {
		model Model
		env   []string
		want  string // host:port, or
		err   string
	}{
		"bedrock, catalogue's region": {model: Model{Provider: "amazon-bedrock", BaseURL: bedrock}, want: "bedrock-runtime.us-east-1.amazonaws.com:443"},
		"bedrock, region":             {model: Model{Provider: "amazon-bedrock", BaseURL: bedrock}, env: []string{"AWS_REGION=eu-central-1"}, want: "bedrock-runtime.eu-central-1.amazonaws.com:443"},
		"bedrock, default region":     {model: Model{Provider: "amazon-bedrock", BaseURL: bedrock}, env: []string{"AWS_DEFAULT_REGION=ap-south-1"}, want: "bedrock-runtime.ap-south-1.amazonaws.com:443"},
		"bedrock, both regions":       {model: Model{Provider: "amazon-bedrock", BaseURL: bedrock}, env: []string{"AWS_DEFAULT_REGION=ap-south-1", "AWS_REGION=us-west-2"}, want: "bedrock-runtime.us-west-2.amazonaws.com:443"},
		"bedrock, ARN beats region":   {model: Model{Provider: "amazon-bedrock", BaseURL: bedrock, ID: profile}, env: []string{"AWS_REGION=us-west-2"}, want: "bedrock-runtime.eu-west-3.amazonaws.com:443"},
		"bedrock, ARN alone":          {model: Model{Provider: "amazon-bedrock", BaseURL: bedrock, ID: profile}, want: "bedrock-runtime.us-east-1.amazonaws.com:443"},
		"bedrock, China":              {model: Model{Provider: "amazon-bedrock", BaseURL: bedrock}, env: []string{"AWS_REGION=cn-north-1"}, want: "bedrock-runtime.cn-north-1.amazonaws.com.cn:443"},
		"bedrock, custom":             {model: Model{Provider: "amazon-bedrock", BaseURL: "https://bedrock.example.com/x"}, env: []string{"AWS_REGION=us-west-2"}, want: "bedrock.example.com:443"},

		"azure, base URL":      {model: Model{Provider: "azure-openai-responses"}, env: []string{"AZURE_OPENAI_BASE_URL= https://me.cognitiveservices.azure.com/openai "}, want: "me.cognitiveservices.azure.com:443"},
		"azure, resource":      {model: Model{Provider: "azure-openai-responses"}, env: []string{"AZURE_OPENAI_RESOURCE_NAME=mine"}, want: "mine.openai.azure.com:443"},
		"azure, both":          {model: Model{Provider: "azure-openai-responses"}, env: []string{"AZURE_OPENAI_RESOURCE_NAME=mine", "AZURE_OPENAI_BASE_URL=https://proxy.example.com:8443/v1"}, want: "proxy.example.com:8443"},
		"azure, in the models": {model: Model{Provider: "azure-openai-responses", BaseURL: "https://own.openai.azure.com"}, want: "own.openai.azure.com:443"},
		"azure, nothing":       {model: Model{Provider: "azure-openai-responses"}, err: "set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME"},

		"vertex, location":       {model: Model{Provider: "google-vertex", BaseURL: vertex}, env: []string{"GOOGLE_CLOUD_LOCATION=europe-west1"}, want: "europe-west1-aiplatform.googleapis.com:443"},
		"vertex, global":         {model: Model{Provider: "google-vertex", BaseURL: vertex}, env: []string{"GOOGLE_CLOUD_LOCATION=global"}, want: "aiplatform.googleapis.com:443"},
		"vertex, multi-region":   {model: Model{Provider: "google-vertex", BaseURL: vertex}, env: []string{"GOOGLE_CLOUD_LOCATION=eu"}, want: "aiplatform.eu.rep.googleapis.com:443"},
		"vertex, key":            {model: Model{Provider: "google-vertex", BaseURL: vertex}, env: []string{"GOOGLE_CLOUD_API_KEY=k"}, want: "aiplatform.googleapis.com:443"},
		"vertex, key + location": {model: Model{Provider: "google-vertex", BaseURL: vertex}, env: []string{"GOOGLE_CLOUD_API_KEY=k", "GOOGLE_CLOUD_LOCATION=europe-west1"}, want: "aiplatform.googleapis.com:443"},
		"vertex, custom":         {model: Model{Provider: "google-vertex", BaseURL: "https://vertex.example.com/v1"}, env: []string{"GOOGLE_CLOUD_API_KEY=k"}, want: "vertex.example.com:443"},
		"vertex, nothing":        {model: Model{Provider: "google-vertex", BaseURL: vertex}, err: "set GOOGLE_CLOUD_LOCATION"},

		"cloudflare":             {model: Model{Provider: "cloudflare-workers-ai", BaseURL: "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1"}, env: []string{"CLOUDFLARE_ACCOUNT_ID=a1"}, want: "api.cloudflare.com:443"},
		"cloudflare, no account": {model: Model{Provider: "cloudflare-workers-ai", BaseURL: "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1"}, err: "needs CLOUDFLARE_ACCOUNT_ID"},
		"cloudflare, no gateway": {model: Model{Provider: "cloudflare-ai-gateway", BaseURL: "https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat"}, env: []string{"CLOUDFLARE_ACCOUNT_ID=a1"}, err: "needs CLOUDFLARE_GATEWAY_ID"},

		"custom http":      {model: Model{Provider: "local", BaseURL: "http://llm.example.com/v1"}, want: "llm.example.com:80"},
		"custom port":      {model: Model{Provider: "local", BaseURL: "http://llm.example.com:8080/v1"}, want: "llm.example.com:8080"},
		"web socket":       {model: Model{Provider: "local", BaseURL: "wss://llm.example.com/v1"}, want: "llm.example.com:443"},
		"user in the URL":  {model: Model{Provider: "local", BaseURL: "https://user:pw@llm.example.com/v1"}, want: "llm.example.com:443"},
		"empty":            {model: Model{Provider: "radius", ID: "r1"}, err: `radius/r1 is unknown: Pi reports the base URL ""`},
		"relative":         {model: Model{Provider: "local", ID: "m", BaseURL: "/v1"}, err: "is unknown"},
		"no URL":           {model: Model{Provider: "local", BaseURL: "https://a b/"}, err: "is no URL"},
		"other scheme":     {model: Model{Provider: "local", BaseURL: "ftp://llm.example.com/"}, err: `scheme "ftp", not http or https`},
		"other, with port": {model: Model{Provider: "local", BaseURL: "ftp://llm.example.com:443/"}, err: `scheme "ftp", not http or https`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := EndpointOf(tc.model, lookup(tc.env...))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, e.Rule())
			_, err = policy.ParseRule(e.Rule())
			require.NoError(t, err)
		})
	}
}

// Every base URL of Pi's own catalogue leads to one of the hosts that Pi was seen to use.
func TestEndpointOfCatalogue(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "recorded", "provider-hosts.json"))
	require.NoError(t, err)
	var providers map[string]struct {
		ModelHosts []string
		BaseURLs   map[string]int
	}
	require.NoError(t, json.Unmarshal(b, &providers))
	require.Greater(t, len(providers), 30)
	env := lookup("CLOUDFLARE_ACCOUNT_ID=a", "CLOUDFLARE_GATEWAY_ID=g", "GOOGLE_CLOUD_LOCATION=europe-west1", "AZURE_OPENAI_RESOURCE_NAME=mine")
	n := 0
	for id, p := range providers {
		hosts := append(p.ModelHosts, "mine.openai.azure.com")
		for base := range p.BaseURLs {
			e, err := EndpointOf(Model{Provider: id, ID: "m", BaseURL: base}, env)
			require.NoError(t, err, "%s %s", id, base)
			require.Contains(t, hosts, strings.Replace(e.Host, "europe-west1", "{location}", 1), id)
			require.Equal(t, "443", e.Port)
			n++
		}
	}
	require.Greater(t, n, 40)
}
