package pi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadCustomProvider(t *testing.T) {
	const models = `{
  // comments, as Pi allows them
  "providers": {
    "corp": {
      "baseUrl": "https://llm.example.com/v1", /* here too */
      "apiKey": "$CORP_KEY",
      "headers": {"X-Z": "a ${ZONE} b", "X-Team": "$TEAM-$CORP_KEY", "X-Price": "$$PRICE $!x ${not a name} $"},
      "models": [{"id": "big", "headers": {"X-Big": "$BIG"}}, {"id": "small"},],
      "modelOverrides": {"other": {"headers": {"X-Other": "$OTHER"}}, "another": {}},
    },
    "second": {"apiKey": "$SECOND_KEY", "note": "// not a comment"},
  },
}`
	p, ok, err := ReadCustomProvider([]byte(models), "corp")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "corp", p.ID)
	require.Equal(t, "https://llm.example.com/v1", p.BaseURL)
	require.True(t, p.HasKey)
	require.Equal(t, []string{"big", "small", "another", "other"}, p.Models)
	require.Equal(t, []string{"CORP_KEY", "TEAM", "ZONE", "BIG", "OTHER"}, p.Env)
	require.NotContains(t, string(p.JSON), "second")
	require.JSONEq(t, `{"providers":{"corp":{
		"baseUrl":"https://llm.example.com/v1","apiKey":"$CORP_KEY",
		"headers":{"X-Z":"a ${ZONE} b","X-Team":"$TEAM-$CORP_KEY","X-Price":"$$PRICE $!x ${not a name} $"},
		"models":[{"id":"big","headers":{"X-Big":"$BIG"}},{"id":"small"}],
		"modelOverrides":{"other":{"headers":{"X-Other":"$OTHER"}},"another":{}}}}}`, string(p.JSON))

	again, ok, err := ReadCustomProvider(p.JSON, "corp")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, p.Env, again.Env, "what is written can be read")

	_, ok, err = ReadCustomProvider([]byte(models), "third")
	require.NoError(t, err)
	require.False(t, ok)

	for _, empty := range []string{`{}`, `{"providers":{}}`, `{"providers":null}`} {
		_, ok, err = ReadCustomProvider([]byte(empty), "corp")
		require.NoError(t, err, empty)
		require.False(t, ok)
	}
	p, ok, err = ReadCustomProvider([]byte(`{"providers":{"local":{"baseUrl":"http://127.0.0.1:1/v1","models":[{"id":"m"}]}}}`), "local")
	require.NoError(t, err)
	require.True(t, ok)
	require.False(t, p.HasKey)
	require.Empty(t, p.Env)
}

func TestReadCustomProviderRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ models, want string }{
		"broken":               {`{"providers": {`, "not valid JSON"},
		"empty":                {``, "not valid JSON"},
		"an array":             {`[]`, "decode models.json"},
		"a provider too few":   {`{"providers":{"corp":7}}`, "decode provider corp"},
		"key by command":       {`{"providers":{"corp":{"apiKey":"!pass show corp"}}}`, `from a command ("!pass …")`},
		"header by command":    {`{"providers":{"corp":{"headers":{"A":"ok","X":"!id"}}}}`, "from a command"},
		"model's header":       {`{"providers":{"corp":{"models":[{"id":"m","headers":{"X":"!id"}}]}}}`, "from a command"},
		"an override's header": {`{"providers":{"corp":{"modelOverrides":{"m":{"headers":{"X":"!id"}}}}}}`, "from a command"},
		"no command at all":    {`{"providers":{"corp":{"apiKey":"!"}}}`, "from a command"},
	} {
		t.Run(name, func(t *testing.T) {
			p, ok, err := ReadCustomProvider([]byte(tc.models), "corp")
			require.ErrorContains(t, err, tc.want)
			require.False(t, ok)
			require.Empty(t, p.JSON)
		})
	}
	// Another provider's command is no concern of this one.
	_, ok, err := ReadCustomProvider([]byte(`{"providers":{"corp":{"apiKey":"k"},"other":{"apiKey":"!id"}}}`), "corp")
	require.NoError(t, err)
	require.True(t, ok)
}

// What a command's arguments say may be secret: the message has only its first word.
func TestCommandIsNotRepeated(t *testing.T) {
	_, _, err := ReadCustomProvider([]byte(`{"providers":{"corp":{"apiKey":"!echo sk-canary"}}}`), "corp")
	require.ErrorContains(t, err, "!echo")
	require.NotContains(t, err.Error(), "canary")
}
