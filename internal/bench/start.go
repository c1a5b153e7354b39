package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"patio/engine/pi"
	"patio/engine/supervisor"
)

// benchStart measures the time from the request for a session to Pi's first RPC reply, against the same Pi started on
// the host without a sandbox. Every start is cold: nothing of an earlier one is used but the page cache, which both
// sides have warm.
func benchStart(ctx context.Context, s settings, show func(figure)) (err error) {
	bare, err := installPi(ctx, s)
	if err != nil {
		return err
	}
	p, err := newPatio(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	sides := []func(context.Context) (time.Duration, error){p.timeStart, bare.timeStart}
	times := make([][]time.Duration, len(sides))
	// The first round isn't counted: it fills the page cache, and patio reads the image whole once to verify it.
	for round := range s.runs + 1 {
		for turn := range sides {
			// Who goes first alternates too.
			i := (round + turn) % len(sides)
			d, err := sides[i](ctx)
			if err != nil {
				return err
			}
			if round > 0 {
				times[i] = append(times[i], d)
			}
		}
	}
	for _, stat := range []struct {
		name string
		of   func([]time.Duration) time.Duration
	}{
		{"median", median},
		{"p95", func(d []time.Duration) time.Duration { return quantile(d, 0.95) }},
	} {
		show(figure{
			name:  fmt.Sprintf("start, cold, to the first reply, %s of %d", stat.name, s.runs),
			value: stat.of(times[0]).Seconds(), unit: "s",
			to: "bare Pi", ref: stat.of(times[1]).Seconds(),
		})
	}
	return nil
}

func (p *patio) timeStart(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	session, err := p.start(ctx)
	if err != nil {
		return 0, err
	}
	return time.Since(begin), p.stop(ctx, session)
}

func (p barePi) timeStart(ctx context.Context) (_ time.Duration, err error) {
	begin := time.Now()
	// Nothing is asked of the model, so it needn't be there.
	s, err := p.start(ctx, supervisor.DemoBaseURL)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.send(`{"type":"get_state","id":"1"}`); err != nil {
		return 0, err
	}
	if _, err := s.until(func(m pi.Message) bool { return m.Type == "response" }); err != nil {
		return 0, err
	}
	return time.Since(begin), nil
}
