package policy

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func rules(t testing.TB, texts ...string) []Rule {
	t.Helper()
	var all []Rule
	for _, text := range texts {
		parse := ParseRule
		if text[0] == '!' {
			parse, text = ParseDeny, text[1:]
		}
		r, err := parse(text)
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name    string
		rules   []string // "!" in front of a deny rule
		request Request
		verdict Verdict
		reason  Reason
		rule    string
	}{
		{"nothing allows nothing", nil, Request{TCP, "example.com", 443, netip.Addr{}}, Deny, ReasonEmptyPolicy, ""},
		{"exact", []string{"example.com"}, Request{TCP, "example.com", 443, netip.Addr{}}, Allow, ReasonRule, "example.com:443"},
		{"spelling", []string{"example.com"}, Request{TLS, "EXAMPLE.Com.", 443, netip.Addr{}}, Allow, ReasonRule, "example.com:443"},
		{"two final dots", []string{"example.com"}, Request{TLS, "example.com..", 443, netip.Addr{}}, Deny, ReasonInvalidName, ""},
		{"another port", []string{"example.com"}, Request{TCP, "example.com", 80, netip.Addr{}}, Deny, ReasonPort, ""},
		{"another name", []string{"example.com"}, Request{TCP, "www.example.com", 443, netip.Addr{}}, Deny, ReasonNoRule, ""},
		{"name as a suffix", []string{"example.com"}, Request{TCP, "badexample.com", 443, netip.Addr{}}, Deny, ReasonNoRule, ""},
		{"wildcard", []string{"*.example.com"}, Request{TCP, "a.example.com", 443, netip.Addr{}}, Allow, ReasonRule, "*.example.com:443"},
		{"wildcard, two labels", []string{"*.example.com"}, Request{TCP, "a.b.example.com", 443, netip.Addr{}}, Allow, ReasonRule, "*.example.com:443"},
		{"wildcard, bare suffix", []string{"*.example.com"}, Request{TCP, "example.com", 443, netip.Addr{}}, Deny, ReasonNoRule, ""},
		{"wildcard, no dot", []string{"*.example.com"}, Request{TCP, "badexample.com", 443, netip.Addr{}}, Deny, ReasonNoRule, ""},
		{"exact before wildcard", []string{"*.example.com", "a.example.com"}, Request{TCP, "a.example.com", 443, netip.Addr{}}, Allow, ReasonRule, "a.example.com:443"},
		{"deny beats allow", []string{"*.example.com", "!a.example.com"}, Request{TCP, "a.example.com", 443, netip.Addr{}}, Deny, ReasonRuleDenied, "a.example.com:*"},
		{"wildcard deny beats exact allow", []string{"a.example.com", "!*.example.com"}, Request{TCP, "a.example.com", 443, netip.Addr{}}, Deny, ReasonRuleDenied, "*.example.com:*"},
		{"deny on another port", []string{"a.example.com", "!a.example.com:80"}, Request{TCP, "a.example.com", 443, netip.Addr{}}, Allow, ReasonRule, "a.example.com:443"},
		{"DNS on any port", []string{"example.com:22"}, Request{DNS, "example.com", 0, netip.Addr{}}, Allow, ReasonRule, "example.com:22"},
		{"DNS of a refused name", []string{"example.com:22"}, Request{DNS, "example.org", 0, netip.Addr{}}, Deny, ReasonNoRule, ""},
		{"DNS of a denied name", []string{"example.com:22", "!example.com"}, Request{DNS, "example.com", 0, netip.Addr{}}, Deny, ReasonRuleDenied, "example.com:*"},
		{"DNS, one port denied", []string{"example.com:22", "example.com:80", "!example.com:80"}, Request{DNS, "example.com", 0, netip.Addr{}}, Allow, ReasonRule, "example.com:22"},
		{"DNS of an address", []string{"10.0.0.1:22"}, Request{DNS, "10.0.0.1", 0, netip.Addr{}}, Deny, ReasonInvalidName, ""},
		{"address", []string{"example.com"}, Request{TCP, "", 443, netip.MustParseAddr("192.0.2.1")}, Deny, ReasonLiteral, ""},
		{"address as a name", []string{"example.com"}, Request{TCP, "192.0.2.1", 443, netip.Addr{}}, Deny, ReasonLiteral, ""},
		{"IPv6 address", []string{"example.com"}, Request{TCP, "[2001:db8::1]", 443, netip.Addr{}}, Deny, ReasonIPv6, ""},
		{"named address", []string{"10.0.0.1:22"}, Request{TCP, "", 22, netip.MustParseAddr("10.0.0.1")}, Allow, ReasonRule, "10.0.0.1:22"},
		{"named address, mapped", []string{"10.0.0.1:22"}, Request{TCP, "", 22, netip.MustParseAddr("::ffff:10.0.0.1")}, Allow, ReasonRule, "10.0.0.1:22"},
		{"named address, another port", []string{"10.0.0.1:22"}, Request{TCP, "", 23, netip.MustParseAddr("10.0.0.1")}, Deny, ReasonLiteral, ""},
		{"denied address", []string{"10.0.0.1:22", "!10.0.0.1"}, Request{TCP, "", 22, netip.MustParseAddr("10.0.0.1")}, Deny, ReasonRuleDenied, "10.0.0.1:*"},
		{"loopback by its alias", []string{"127.0.0.1:8080"}, Request{HTTP, HostAlias, 8080, netip.Addr{}}, Allow, ReasonRule, "127.0.0.1:8080"},
		{"alias, another port", []string{"127.0.0.1:8080"}, Request{HTTP, HostAlias, 80, netip.Addr{}}, Deny, ReasonPort, ""},
		{"alias without a rule", []string{"example.com"}, Request{HTTP, HostAlias, 8080, netip.Addr{}}, Deny, ReasonNoRule, ""},
		{"alias of a denied address", []string{"127.0.0.1:8080", "!127.0.0.1"}, Request{DNS, HostAlias, 0, netip.Addr{}}, Deny, ReasonNoRule, ""},
		{"UDP", []string{"example.com"}, Request{UDP, "example.com", 443, netip.Addr{}}, Deny, ReasonUDP, ""},
		{"ICMP", []string{"example.com"}, Request{ICMP, "example.com", 0, netip.Addr{}}, Deny, ReasonICMP, ""},
		{"IPv6", []string{"example.com"}, Request{IPv6, "example.com", 443, netip.Addr{}}, Deny, ReasonIPv6, ""},
		{"no protocol", []string{"example.com"}, Request{"", "example.com", 443, netip.Addr{}}, Deny, ReasonProtocol, ""},
		{"nothing asked", []string{"example.com"}, Request{Protocol: TCP, Port: 443}, Deny, ReasonInvalidName, ""},
		{"odd name", []string{"example.com"}, Request{TCP, "example.com\x00.evil", 443, netip.Addr{}}, Deny, ReasonInvalidName, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := New(rules(t, c.rules...)...)
			require.NoError(t, err)
			d := p.Decide(c.request)
			require.Equal(t, c.verdict, d.Verdict)
			require.Equal(t, c.reason, d.Reason)
			require.Equal(t, c.rule, d.Rule)
			require.NotEmpty(t, d.Message)
		})
	}
}

func TestZeroPolicyDenies(t *testing.T) {
	request := Request{Protocol: TCP, Host: "example.com", Port: 443}
	var none *Policy
	var live *Live
	require.Equal(t, ReasonEmptyPolicy, none.Decide(request).Reason)
	require.Equal(t, ReasonEmptyPolicy, (&Policy{}).Decide(request).Reason)
	require.Equal(t, ReasonEmptyPolicy, live.Decide(request).Reason)
	require.Equal(t, ReasonEmptyPolicy, (&Live{}).Decide(request).Reason)
	require.False(t, Decision{}.Allowed())
	require.Equal(t, ReasonLiteral, none.Decide(Request{Protocol: TCP, Address: netip.MustParseAddr("1.2.3.4"), Port: 1}).Reason)
}

func TestParseRule(t *testing.T) {
	for _, c := range []struct {
		text, host string
		port       uint16
		private    bool
	}{
		{"example.com", "example.com", 443, false},
		{"Example.COM.:8443", "example.com", 8443, false},
		{"*.Example.com", "*.example.com", 443, false},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", 443, false},
		{"single:22", "single", 22, false},
		{"private:git.corp.example:22", "git.corp.example", 22, true},
		{"127.0.0.1:8080", "127.0.0.1", 8080, true},
		{"192.168.1.5:11434", "192.168.1.5", 11434, true},
		{"1.1.1.1:443", "1.1.1.1", 443, false},
		{"[::ffff:10.0.0.1]:80", "10.0.0.1", 80, true},
		{"[fd00:0::5]:80", "fd00::5", 80, true},
		{"host.patio.internal:11434", "127.0.0.1", 11434, true},
	} {
		r, err := ParseRule(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, Rule{Host: c.host, Port: c.port, Action: ActionAllow, Private: c.private}, r, c.text)
		again, err := ParseRule(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	}
}

func TestParseRuleRefuses(t *testing.T) {
	label := "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl" // 64
	for text, want := range map[string]string{
		"":                          "host is missing",
		":443":                      "host name is empty",
		"https://example.com":       "not a URL",
		"example.com/path":          "not a URL",
		"user@example.com":          "not a URL",
		"example.com:":              "not a number from 1 to 65535",
		"example.com:0":             "not a number from 1 to 65535",
		"example.com:65536":         "not a number from 1 to 65535",
		"example.com:+80":           "not a number from 1 to 65535",
		"example.com:http":          "not a number from 1 to 65535",
		"example.com:*":             "needs a port",
		"*":                         `write *.example.com`,
		"*.com":                     "whole top-level domain",
		"*.":                        "host name is empty",
		"a.*.example.com":           `write *.example.com`,
		"*a.example.com":            `write *.example.com`,
		"*.10.0.0.1":                "is an address",
		".example.com":              "empty part",
		"a..example.com":            "empty part",
		"-a.example.com":            "hyphen",
		"a-.example.com":            "hyphen",
		"a_b.example.com":           "can't be in a host name",
		"a b.example.com":           "can't be in a host name",
		label + ".example.com":      "63 are the most",
		"127.1:80":                  "ends in a number",
		"0x7f.0x1:80":               "ends in a number",
		"2130706433:80":             "ends in a number",
		"10.0.0.1":                  "write 10.0.0.1:443",
		"[::1]":                     "write [::1]:443",
		"[example.com]:80":          "only an IPv6 address",
		"[::1":                      `"]"`,
		"[::1]80":                   "colon and the port",
		"[fe80::1%eth0]:80":         "zone",
		"169.254.169.254:80":        "metadata",
		"[::ffff:a9fe:a9fe]:80":     "metadata",
		"[fd00:ec2::254]:80":        "metadata",
		"0.0.0.0:80":                "can't be allowed",
		"224.0.0.1:80":              "can't be allowed",
		"198.18.0.1:80":             "sandbox's own address range",
		"private:*.corp.example:22": "exact name",
		"localhost:8080":            "write 127.0.0.1:PORT",
		"app.localhost:8080":        "write 127.0.0.1:PORT",
	} {
		_, err := ParseRule(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestParseDeny(t *testing.T) {
	for text, want := range map[string]string{
		"example.com": "example.com:*", "example.com:*": "example.com:*", "*.com": "*.com:*", "example.com:80": "example.com:80",
		"169.254.169.254": "169.254.169.254:*",
	} {
		r, err := ParseDeny(text)
		require.NoError(t, err, text)
		require.Equal(t, want, r.String())
		require.Equal(t, ActionDeny, r.Action)
	}
}

// A rule that did not come from ParseRule is checked as well.
func TestNewRefusesDamagedRules(t *testing.T) {
	for name, r := range map[string]Rule{
		"no action":           {Host: "example.com", Port: 443},
		"allow any port":      {Host: "example.com", Action: ActionAllow},
		"upper case":          {Host: "Example.com", Port: 443, Action: ActionAllow},
		"unmarked private":    {Host: "10.0.0.1", Port: 80, Action: ActionAllow},
		"metadata":            {Host: "169.254.169.254", Port: 80, Action: ActionAllow, Private: true},
		"the alias":           {Host: HostAlias, Port: 80, Action: ActionAllow},
		"private wildcard":    {Host: "*.corp.example", Port: 80, Action: ActionAllow, Private: true},
		"no host":             {Port: 80, Action: ActionAllow},
		"mapped address":      {Host: "::ffff:1.1.1.1", Port: 80, Action: ActionAllow},
		"whole domain, allow": {Host: "*.com", Port: 80, Action: ActionAllow},
	} {
		_, err := New(r)
		require.Error(t, err, name)
	}
}

func TestRuleJSON(t *testing.T) {
	r := rules(t, "private:git.corp.example:22")[0]
	r.Source = "flag"
	data, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"host":"git.corp.example","port":22,"action":"allow","source":"flag","private":true}`, string(data))
	var back Rule
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, r, back)

	d, err := json.Marshal(Decision{Verdict: Allow, Reason: ReasonRule, Message: "m", Rule: "example.com:443"})
	require.NoError(t, err)
	require.JSONEq(t, `{"verdict":"allow","rule":"example.com:443","reason":"rule_allowed","message":"m"}`, string(d))
}

func TestEveryReasonHasAMessage(t *testing.T) {
	for reason, message := range messages {
		require.NotEmpty(t, message, reason)
		require.NotEqual(t, string(reason), reason.Message())
	}
}

func TestLive(t *testing.T) {
	l, err := NewLive(rules(t, "example.com")...)
	require.NoError(t, err)
	request := Request{Protocol: TCP, Host: "example.org", Port: 443}
	before := l.Current()
	changed := l.Changed()
	added := rules(t, "example.org")[0]
	require.NoError(t, l.Add(added))
	select {
	case <-changed:
	default:
		t.Fatal("the change was not announced")
	}
	require.True(t, l.Decide(request).Allowed())
	require.False(t, before.Decide(request).Allowed(), "a policy never changes")
	require.NoError(t, l.Add(added))
	require.Len(t, l.Snapshot(), 2)
	l.Snapshot()[0].Host = "changed.example"
	require.Equal(t, "example.com", l.Snapshot()[0].Host)
	require.Error(t, l.Add(Rule{Host: "example.net"}))
	require.Len(t, l.Snapshot(), 2)
	require.NoError(t, l.Remove(added))
	require.False(t, l.Decide(request).Allowed())
	require.ErrorContains(t, l.Remove(added), "no such")
	require.Error(t, l.Replace(Rule{}))
	require.Len(t, l.Snapshot(), 1)
	require.NoError(t, l.Replace())
	require.Equal(t, ReasonEmptyPolicy, l.Decide(request).Reason)
}
