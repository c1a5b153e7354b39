package resources

import (
	"encoding/json"
	"time"

	"patio/engine/api"
	"patio/tui/chart"
)

// meters are the histories of what a session uses. Their size is bounded.
type meters struct {
	last     *api.Usage
	previous *api.Usage // of another second than last, for rates

	cpu, memory, inside, pids, in, out chart.Series
	unreadable                         int
}

// read takes the data of a stats record.
func (m *meters) read(data []byte) bool {
	var u api.Usage
	if json.Unmarshal(data, &u) != nil {
		m.unreadable++
		return false
	}
	return m.add(u)
}

// add takes figures that are newer than those before; others are known already.
func (m *meters) add(u api.Usage) bool {
	if u.Time.IsZero() || m.last != nil && !u.Time.After(m.last.Time) {
		return false
	}
	m.previous, m.last = m.last, &u
	m.cpu.Add(u.Time, max(u.CPUPercent, 0))
	m.memory.Add(u.Time, float64(max(u.Memory, 0)))
	if u.SandboxMemory > 0 {
		m.inside.Add(u.Time, float64(u.SandboxMemory))
	}
	m.pids.Add(u.Time, float64(max(u.Pids, 0)))
	if p := m.previous; p != nil {
		if seconds := u.Time.Sub(p.Time).Seconds(); seconds > 0 {
			m.in.Add(u.Time, rate(p.NetworkIn, u.NetworkIn, seconds))
			m.out.Add(u.Time, rate(p.NetworkOut, u.NetworkOut, seconds))
		}
	}
	return true
}

// rate is bytes a second between two readings of a counter, which begins anew when a
// session is resumed.
func rate(before, after uint64, seconds float64) float64 {
	if after < before {
		return float64(after) / seconds
	}
	return float64(after-before) / seconds
}

// end is where the charts end: now, or at the last figure of a session that is over.
func (m *meters) end(now time.Time, over bool) time.Time {
	if over && m.last != nil {
		return m.last.Time.Truncate(time.Second)
	}
	return now.Truncate(time.Second)
}
