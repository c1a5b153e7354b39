package pi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"patio/sandbox/network/policy"
)

// projectLoopback rewrites the base URLs of a models.json entry that name the host's own
// loopback: inside, 127.0.0.1 is the sandbox. The gateway has a name for the host's.
func projectLoopback(entry json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(entry))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode models.json: %w", err)
	}
	rewriteBaseURLs(v)
	return json.Marshal(v)
}

func rewriteBaseURLs(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if base, ok := value.(string); ok && key == "baseUrl" {
				v[key] = projectURL(base)
				continue
			}
			rewriteBaseURLs(value)
		}
	case []any:
		for _, value := range v {
			rewriteBaseURLs(value)
		}
	}
}

func projectURL(base string) string {
	u, err := url.Parse(base)
	if err != nil || !isLoopback(u.Hostname()) {
		return base
	}
	host := policy.HostAlias
	if port := u.Port(); port != "" {
		host = net.JoinHostPort(host, port)
	}
	u.Host = host
	return u.String()
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Rule is the endpoint as an egress rule.
func (e Endpoint) Rule() string {
	if e.Host == policy.HostAlias {
		return net.JoinHostPort("127.0.0.1", e.Port)
	}
	return net.JoinHostPort(e.Host, e.Port)
}
