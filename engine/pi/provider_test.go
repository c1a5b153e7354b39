package pi

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	anthropicKeys = []string{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"}
	bedrockKeys   = []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_WEB_IDENTITY_TOKEN_FILE"}
	gatewayKeys   = []string{"CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"}
	vertexKeys    = []string{"GOOGLE_CLOUD_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"}
)

func TestSelectCredential(t *testing.T) {
	for name, tc := range map[string]struct {
		provider      string
		keyEnv, has   []string
		key, settings []string
		none          bool
	}{
		"the only key":              {provider: "anthropic", keyEnv: anthropicKeys, has: []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}, key: []string{"ANTHROPIC_API_KEY"}},
		"Pi's order":                {provider: "anthropic", keyEnv: anthropicKeys, has: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, key: []string{"ANTHROPIC_AUTH_TOKEN"}},
		"none":                      {provider: "anthropic", keyEnv: anthropicKeys, has: []string{"OPENAI_API_KEY"}, none: true},
		"login only":                {provider: "openai-codex", has: []string{"OPENAI_API_KEY"}, none: true},
		"bedrock bearer":            {provider: "amazon-bedrock", keyEnv: bedrockKeys, has: []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, key: []string{"AWS_BEARER_TOKEN_BEDROCK"}},
		"bedrock pair":              {provider: "amazon-bedrock", keyEnv: bedrockKeys, has: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}, key: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, settings: []string{"AWS_REGION"}},
		"bedrock session":           {provider: "amazon-bedrock", keyEnv: bedrockKeys, has: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}, key: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}},
		"bedrock half a pair":       {provider: "amazon-bedrock", keyEnv: bedrockKeys, has: []string{"AWS_ACCESS_KEY_ID"}, none: true},
		"bedrock other half":        {provider: "amazon-bedrock", keyEnv: bedrockKeys, has: []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}, none: true},
		"bedrock profile":           {provider: "amazon-bedrock", keyEnv: bedrockKeys, has: []string{"AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"}, none: true},
		"cloudflare":                {provider: "cloudflare-ai-gateway", keyEnv: gatewayKeys, has: gatewayKeys, key: []string{"CLOUDFLARE_API_KEY"}, settings: []string{"CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"}},
		"an account is no key":      {provider: "cloudflare-ai-gateway", keyEnv: gatewayKeys, has: gatewayKeys[1:], settings: gatewayKeys[1:], none: true},
		"vertex key":                {provider: "google-vertex", keyEnv: vertexKeys, has: []string{"GOOGLE_CLOUD_API_KEY"}, key: []string{"GOOGLE_CLOUD_API_KEY"}},
		"a file of the host":        {provider: "google-vertex", keyEnv: vertexKeys, has: vertexKeys[1:], settings: vertexKeys[2:], none: true},
		"another provider's extras": {provider: "anthropic", keyEnv: anthropicKeys, has: []string{"ANTHROPIC_API_KEY", "AWS_REGION", "CLOUDFLARE_ACCOUNT_ID"}, key: []string{"ANTHROPIC_API_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := SelectCredential(tc.provider, tc.keyEnv, func(v string) bool { return slices.Contains(tc.has, v) })
			require.Equal(t, !tc.none, ok)
			require.Equal(t, tc.key, c.Key)
			require.Equal(t, tc.settings, c.Settings)
		})
	}
}

func TestKeyNames(t *testing.T) {
	require.Equal(t, anthropicKeys, KeyNames("anthropic", anthropicKeys))
	require.Equal(t, []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"}, KeyNames("amazon-bedrock", bedrockKeys))
	require.Equal(t, []string{"GOOGLE_CLOUD_API_KEY"}, KeyNames("google-vertex", vertexKeys))
	require.Empty(t, KeyNames("openai-codex", nil))
}
