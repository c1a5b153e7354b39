package home

import (
	"time"

	"patio/engine/api"
)

// samples is how many figures are kept of a session: two minutes of one a second, more
// than the widest sparkline.
const samples = 120

// history is the recent use of one session, oldest first.
type history struct {
	cpu, memory []float64
	last        time.Time // of the newest sample
}

// add takes a sample in, unless it is the one that is there already.
func (h *history) add(u *api.Usage) {
	if u == nil || !u.Time.After(h.last) {
		return
	}
	h.last = u.Time
	h.cpu = push(h.cpu, u.CPUPercent)
	h.memory = push(h.memory, float64(u.Memory))
}

func push(ring []float64, v float64) []float64 {
	if len(ring) >= samples {
		copy(ring, ring[1:])
		ring = ring[:samples-1]
	}
	return append(ring, v)
}

// cpuLimit is the percentage that a session may use, one processor's when it has no limit.
func cpuLimit(s *api.Session) float64 {
	if s.Plan.Limits.CPUs > 0 {
		return s.Plan.Limits.CPUs * 100
	}
	return 100
}

// memoryLimit is in bytes, 0 for none.
func memoryLimit(s *api.Session) int64 {
	if s.Usage != nil && s.Usage.MemoryLimit > 0 {
		return s.Usage.MemoryLimit
	}
	return s.Plan.Limits.Memory
}
