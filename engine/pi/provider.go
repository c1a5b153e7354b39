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

// pairs are credentials of two variables, useless one without the other; optional is a
// third that some of them have.
var pairs = map[string]struct{ second, optional string }{
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
	for _, name := range KeyNames(provider, keyEnv) {
		if !has(name) {
			continue
		}
		pair, two := pairs[name]
		if two && !has(pair.second) {
			continue
		}
		c.Key = append(c.Key, name)
		if two {
			c.Key = append(c.Key, pair.second)
			if has(pair.optional) {
				c.Key = append(c.Key, pair.optional)
			}
		}
		return c, true
	}
	return c, false
}

// KeyNames are those of a provider's variables that can hold a key in a sandbox, to look
// for or to tell a user without one about. Pi also lists settings and the second parts
// of pairs, which are no key alone.
func KeyNames(provider string, keyEnv []string) []string {
	var names []string
	for _, name := range keyEnv {
		if slices.Contains(unusable, name) || slices.Contains(settings[provider], name) || isSecond(name) {
			continue
		}
		names = append(names, name)
	}
	return names
}

func isSecond(name string) bool {
	for _, pair := range pairs {
		if name == pair.second || name == pair.optional {
			return true
		}
	}
	return false
}
