package journal

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeaderAndDecode(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	line := string(append(appendPrefix(nil, 42, when, "s1", "rpc"), `{"a": [1,"}"]}}`...))
	for name, c := range map[string]struct {
		line   string
		header bool
		whole  bool
	}{
		"canonical":         {line, true, true},
		"cut in the data":   {line[:len(line)-4], true, false},
		"cut in the prefix": {line[:60], false, false},
		"other key order": {
			`{"type":"rpc","seq":42,"v":1,"session":"s1","data":{"a": [1,"}"]},"time":"2026-01-02T03:04:05.000000678Z"}`, true, true,
		},
		"spaces": {
			`{ "v": 1, "seq": 42, "time": "2026-01-02T03:04:05.000000678Z", "session": "s1", "type": "rpc", "data": {"a": [1,"}"]} }`, true, true,
		},
		"escaped session": {
			`{"v":1,"seq":42,"time":"2026-01-02T03:04:05.000000678Z","session":"\u00731","type":"rpc","data":{"a": [1,"}"]}}`, true, true,
		},
		"extra key behind": {
			`{"v":1,"seq":42,"time":"2026-01-02T03:04:05.000000678Z","session":"s1","type":"rpc","data":{"a": [1,"}"]},"x":1}`, true, true,
		},
		"not JSON":     {"hello", false, false},
		"empty":        {"", false, false},
		"version 2":    {`{"v":2,"seq":42,"time":"2026-01-02T03:04:05Z","session":"s1","type":"rpc","data":1}`, false, false},
		"no type":      {`{"v":1,"seq":42,"time":"2026-01-02T03:04:05Z","session":"s1","type":"","data":1}`, false, false},
		"negative seq": {`{"v":1,"seq":-1,"time":"2026-01-02T03:04:05Z","session":"s1","type":"a","data":1}`, false, false},
		"bad time":     {`{"v":1,"seq":1,"time":"yesterday","session":"s1","type":"a","data":1}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			seq, at, typ, ok := Header([]byte(c.line))
			require.Equal(t, c.header, ok)
			if ok {
				require.EqualValues(t, 42, seq)
				require.Equal(t, when, at)
				require.Equal(t, "rpc", typ)
			}
			r, err := Decode([]byte(c.line))
			if !c.whole {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Record{1, 42, when, "s1", "rpc", json.RawMessage(`{"a": [1,"}"]}`)}, r)
		})
	}
}

func TestHeaderAllocatesLittle(t *testing.T) {
	line := append(appendPrefix(nil, 42, time.Now(), "s1", "rpc"), "{}}"...)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		if _, _, _, ok := Header(line); !ok {
			t.Error("not a record")
		}
	}), 1.0)
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(`{"v":1,"seq":42,"time":"2026-01-02T03:04:05Z","session":"s1","type":"rpc","data":{}}`))
	f.Add([]byte(`{"seq":42,"v":1,"time":"2026-01-02T03:04:05Z","session":"s1","type":"rpc","data":{}}`))
	f.Add([]byte(`{"v":1,"seq":1,"time":"2026-01-02T03:04:05,5Z","session":"","type":"a","data":`))
	f.Fuzz(func(t *testing.T, line []byte) {
		seq, _, _, ok := Header(line)
		r, err := Decode(line)
		if err != nil {
			return
		}
		require.True(t, ok, "a record that decodes has a header")
		require.NotZero(t, seq)
		// Whatever was read, written again in this package's form, reads the same both ways.
		if checkSession(r.Session) != nil || checkType(r.Type) != nil || len(r.Data) == 0 || r.Time.Year() < 0 || r.Time.Year() > 9999 {
			return
		}
		again := append(append(appendPrefix(nil, r.Seq, r.Time, r.Session, r.Type), r.Data...), '}')
		seq, at, typ, ok := Header(again)
		require.True(t, ok)
		require.Equal(t, r.Seq, seq)
		require.True(t, at.Equal(r.Time))
		require.Equal(t, r.Type, typ)
		r2, err := Decode(again)
		require.NoError(t, err)
		require.Equal(t, r.Data, r2.Data)
		require.Equal(t, r.Session, r2.Session)
	})
}
