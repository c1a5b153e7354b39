package network

import (
	"encoding/json"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"patio/sandbox/network/policy"
)

func TestRecorderJoinsRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		r := newRecorder(j.record, time.Now)
		refused := func(host string) Event {
			return Event{Kind: KindDNS, Host: host, Reason: policy.ReasonNoRule}
		}
		for range 5 {
			r.repeat(refused("a.example"))
		}
		r.repeat(refused("b.example"))
		synctest.Wait()
		require.Len(t, j.all(), 2, "the first of each comes at once")
		time.Sleep(window) // synctest's clock
		synctest.Wait()
		events := j.all()
		require.Len(t, events, 3)
		require.Equal(t, "a.example", events[2].Host)
		require.EqualValues(t, 4, events[2].Count)

		r.repeat(refused("a.example"))
		time.Sleep(window)
		time.Sleep(window)
		synctest.Wait()
		require.Len(t, j.all(), 4)
		r.repeat(refused("a.example"))
		synctest.Wait()
		require.Len(t, j.all(), 5, "after a quiet window the next one is a first one again")
		r.close()
	})
}

func TestRecorderBoundsWhatItTellsApart(t *testing.T) {
	j := newJournal()
	r := newRecorder(j.record, time.Now)
	const many = 10 * maxKeys
	for i := range many {
		r.repeat(Event{Kind: KindConnection, Host: "192.0.2.1", Port: uint16(i), Reason: policy.ReasonLiteral})
	}
	r.close()
	events, total := j.all(), int64(0)
	for _, e := range events {
		total += e.Count
	}
	require.LessOrEqual(t, len(events), maxKeys+4)
	require.EqualValues(t, many, total, "nothing is lost, only put together")
	r.repeat(Event{Kind: KindDNS})
	r.emit(Event{Kind: KindEnd})
	require.Len(t, j.all(), len(events))
}

func TestRecorderNeverBlocks(t *testing.T) {
	hold := make(chan struct{})
	var once sync.Once
	entered := make(chan struct{})
	j := newJournal()
	r := newRecorder(func(e Event) {
		once.Do(func() { close(entered) })
		<-hold
		j.record(e)
	}, time.Now)
	r.emit(Event{Kind: KindEnd})
	<-entered
	const more = 7
	for range queueSize + more {
		r.emit(Event{Kind: KindEnd})
	}
	require.EqualValues(t, more, r.dropped.Load())
	close(hold)
	r.close()
	lost := int64(0)
	for _, e := range j.all() {
		if e.Kind == KindDropped {
			lost += e.Count
		}
	}
	require.EqualValues(t, more, lost)
	require.Len(t, j.all(), 1+queueSize+1)
}

func TestEventJSON(t *testing.T) {
	e := Event{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kind: KindEnd, ID: "c1", Verdict: policy.Allow, Host: "example.com", Port: 443,
		Protocol: policy.TLS, Rule: "example.com:443", Address: netip.MustParseAddrPort("1.2.3.4:443"),
		BytesIn: 10, BytesOut: 20, Duration: 1500 * time.Millisecond,
	}
	data, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{"time":"2026-01-02T03:04:05Z","kind":"end","id":"c1","verdict":"allow","host":"example.com","port":443,
		"protocol":"tls","rule":"example.com:443","address":"1.2.3.4:443","bytes_in":10,"bytes_out":20,"duration_ms":1500}`, string(data))
	var back Event
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, e, back)
}

func TestNewRefusesBadConfig(t *testing.T) {
	live, err := policy.NewLive()
	require.NoError(t, err)
	_, err = New(Config{Policy: live})
	require.ErrorContains(t, err, "TAP is missing")
	for name, change := range map[string]func(*Config){
		"the policy is missing": func(c *Config) { c.Policy = nil },
		"the MTU 100":           func(c *Config) { c.MTU = 100 },
		"handler is missing":    func(c *Config) { c.Services = map[string]Service{"a.internal": {}} },
		"name is taken":         func(c *Config) { c.Services = map[string]Service{policy.HostAlias: {}} },
		"can't be in a host":    func(c *Config) { c.Services = map[string]Service{"a_b": {}} },
	} {
		w, fd := newWire(t)
		cfg := Config{TAP: w, Policy: live}
		change(&cfg)
		_, err := New(cfg)
		require.ErrorContains(t, err, name)
		require.Error(t, w.Close(), "New owns the TAP also when it fails")
		(&wire{t: t, fd: fd}).close()
	}
}
