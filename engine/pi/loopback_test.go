package pi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCustomProviderOnTheHostsLoopback(t *testing.T) {
	c, found, err := ReadCustomProvider([]byte(`{"providers":{"local":{"baseUrl":"http://127.0.0.1:8080/v1","apiKey":"x","models":[
		{"id":"a","contextWindow":10000},
		{"id":"b","baseUrl":"http://localhost:9/v1"},
		{"id":"c","baseUrl":"http://[::1]:9/v1"},
		{"id":"d","baseUrl":"https://model.example.com/127.0.0.1"}]}}}`), "local")
	require.NoError(t, err)
	require.True(t, found)
	require.JSONEq(t, `{"providers":{"local":{"baseUrl":"http://host.patio.internal:8080/v1","apiKey":"x","models":[
		{"id":"a","contextWindow":10000},
		{"id":"b","baseUrl":"http://host.patio.internal:9/v1"},
		{"id":"c","baseUrl":"http://host.patio.internal:9/v1"},
		{"id":"d","baseUrl":"https://model.example.com/127.0.0.1"}]}}}`, string(c.JSON))

	e, err := EndpointOf(Model{Provider: "local", ID: "a", BaseURL: "http://host.patio.internal:8080/v1"}, func(string) string { return "" })
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", e.Rule(), "the rule names the host's address, the sandbox its alias")
}
