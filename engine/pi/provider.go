package pi

import "slices"

// settings lists, for providers that need more than a key, the other variables that Pi
// reads for them. Only those of the selected provider enter a sandbox.
var settings = map[string][]string{
	"amazon-bedrock": {
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEDROCK_FORCE_HTTP1", "AWS_BEDROCK_SKIP_AUTH",
	},
	"azure-openai-responses": {
		"AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_RESOURCE_NAME", "AZURE_OPENAI_API_VERSION", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP",
	},
	"cloudflare-ai-gateway": {"CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"},
	"cloudflare-workers-ai": {"CLOUDFLARE_ACCOUNT_ID"},
	"google-vertex":         {"GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"},
}

// companions are variables that make one credential only together with the first.
var companions = map[string][]string{
	"AWS_ACCESS_KEY_ID": {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
}

// unusable are credentials that name files or services of the host, which a sandbox
// doesn't have.
var unusable = []string{
	"AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS",
}

// Credential is what one provider needs from the caller's environment.
type Credential struct {
	Key      []string // the variables of the one selected key
	Settings []string // not secret
}

// SelectCredential picks the provider's first key that the caller has. KeyEnv lists the
// variables in Pi's order of precedence. Without one it returns false.
func SelectCredential(provider string, keyEnv []string, has func(name string) bool) (Credential, bool) {
	var c Credential
	for _, name := range settings[provider] {
		if has(name) {
			c.Settings = append(c.Settings, name)
		}
	}
	for _, name := range keyEnv {
		if slices.Contains(unusable, name) || !has(name) {
			continue
		}
		c.Key = append(c.Key, name)
		for _, more := range companions[name] {
			if has(more) {
				c.Key = append(c.Key, more)
			}
		}
		return c, true
	}
	return c, false
}

// KeyNames are the variables to tell a user without a key about.
func KeyNames(keyEnv []string) []string {
	var names []string
	for _, name := range keyEnv {
		if !slices.Contains(unusable, name) {
			names = append(names, name)
		}
	}
	return names
}
