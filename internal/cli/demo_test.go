package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"patio/engine/api"
	"patio/engine/journal"
)

// provenFacts are those of a sandbox as it must be.
func provenFacts() *demoFacts {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ready := created.Add(2 * time.Second)
	d := &demoFacts{
		session: api.Session{Created: created, Ready: &ready},
		kernel:  "Linux version 4.19.0-gvisor", hostKernel: "Linux version 6.1.0",
		status: map[string]string{
			"Uid": "1000 1000 1000 1000", "NoNewPrivs": "1",
			"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
		},
		made: []fileFact{{path: "/tmp/demo/patio-tour.md", size: 270, owner: 4242424}},
	}
	for _, r := range []journal.Record{
		{Type: api.RecordEgress, Data: []byte(`{"kind":"dns","verdict":"deny","host":"example.com","reason":"no_rule","message":"no rule allows this host","bytes_in":0,"bytes_out":0,"count":2}`)},
		{Type: api.RecordEgress, Data: []byte(`{"kind":"dns","verdict":"deny","host":"example.com","reason":"no_rule","message":"no rule allows this host","bytes_in":0,"bytes_out":0}`)},
		{Type: api.RecordEgress, Data: []byte(`{"kind":"connection","verdict":"allow","host":"model.patio.internal","port":80,"reason":"service_allowed","bytes_in":0,"bytes_out":0}`)},
		{Type: api.RecordStats, Data: []byte(`{"cpu_percent":50,"memory_bytes":104857600,"memory_limit_bytes":1073741824}`)},
		{Type: api.RecordStats, Data: []byte(`{"cpu_percent":90,"memory_bytes":52428800}`)},
		rpcRecord(`{"direction":"from_pi","line":{"type":"tool_execution_end","toolName":"bash","isError":true}}`),
		rpcRecord(`{"direction":"from_pi","line":{"type":"tool_execution_end","toolName":"write"}}`),
	} {
		d.observe(r)
	}
	return d
}

func TestDemoReport(t *testing.T) {
	d := provenFacts()
	require.NoError(t, d.verdict())
	var b bytes.Buffer
	require.NoError(t, d.report(&b))
	requireSafe(t, b.String())
	requireGolden(t, "demo.txt", b.Bytes())
}

// The report follows what was seen: a sandbox that holds nothing must not look like one.
func TestDemoVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*demoFacts)
		report string
		err    string
	}{
		"the host's kernel": {func(d *demoFacts) { d.kernel = d.hostKernel }, "THE SAME AS THE HOST'S", "the kernel inside is the host's"},
		"root":              {func(d *demoFacts) { d.status["Uid"] = "0 0 0 0" }, "0 (real uid", "root or unknown"},
		"a capability":      {func(d *demoFacts) { d.status["CapBnd"] = "0000000000000400" }, "CapBnd 0000000000000400", "has capabilities"},
		"unread sets":       {func(d *demoFacts) { delete(d.status, "CapAmb") }, "only 4 of 5", "has capabilities"},
		"privileges":        {func(d *demoFacts) { d.status["NoNewPrivs"] = "0" }, "NOT SET", "may gain privileges"},
		"nothing refused":   {func(d *demoFacts) { d.refused = nil }, "", "no connection was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			d := provenFacts()
			c.spoil(d)
			var b bytes.Buffer
			require.NoError(t, d.report(&b))
			require.Contains(t, b.String(), c.report)
			require.ErrorContains(t, d.verdict(), c.err)
		})
	}
}

func TestNewFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old"), nil, 0o600))
	before, err := listFiles(dir)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "new"), []byte("12345"), 0o600))
	// A link out of the workspace isn't followed.
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "link")))
	after, err := listFiles(dir)
	require.NoError(t, err)
	made := newFiles(before, after)
	require.Len(t, made, 1)
	require.Equal(t, filepath.Join(dir, "sub", "new"), made[0].path)
	require.EqualValues(t, 5, made[0].size)
	require.EqualValues(t, os.Getuid(), made[0].owner)
}
