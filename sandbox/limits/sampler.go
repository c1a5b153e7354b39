package limits

import (
	"sync"
	"time"
)

// Rates is what a tree did between two samples.
type Rates struct {
	// Interval is zero on the first sample, and so are the rates.
	Interval time.Duration `json:"interval"`
	// CPU is processor time per wall time: 1.5 is one and a half processors busy.
	CPU float64 `json:"cpu"`
	// Roles has the same by role.
	Roles map[Role]float64 `json:"roles,omitempty"`
	// Memory is how much the estimate grew, in bytes per second.
	Memory float64 `json:"memory"`
}

// Sampler samples one process tree again and again. Its methods may be called from several goroutines.
type Sampler struct {
	procRoot string
	root     int
	now      func() time.Time

	mu   sync.Mutex
	last TreeUsage
	at   time.Time
	rate Rates
}

// NewSampler returns a sampler of root and its descendants. now gives the time, with a monotonic reading as time.Now has;
// nil means time.Now.
func NewSampler(procRoot string, root int, now func() time.Time) *Sampler {
	if now == nil {
		now = time.Now
	}
	return &Sampler{procRoot: procRoot, root: root, now: now}
}

// Sample samples the tree and compares it with the sample before. It costs one short read for each process of the machine
// and four for each of the tree.
func (s *Sampler) Sample() (TreeUsage, Rates, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	usage, err := SampleTree(s.procRoot, s.root)
	if err != nil {
		return TreeUsage{}, Rates{}, err
	}
	at := s.now()
	usage.Time = at
	s.rate = Rates{}
	if elapsed := at.Sub(s.at); !s.at.IsZero() && elapsed > 0 {
		s.rate = rates(s.last, usage, elapsed)
	}
	s.last, s.at = usage, at
	return usage, s.rate, nil
}

// Last returns the latest sample; its Time is zero before the first.
func (s *Sampler) Last() (TreeUsage, Rates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.rate
}

// rates compares process by process: when one ends, its time leaves the sums, and a difference of sums would be negative. What
// a process used after its last sample is lost; the cgroup's counters have it.
func rates(before, after TreeUsage, elapsed time.Duration) Rates {
	type identity struct {
		pid     int
		started uint64
	}
	known := make(map[identity]time.Duration, len(before.Processes))
	for _, p := range before.Processes {
		known[identity{p.PID, p.Started}] = p.CPU
	}
	r := Rates{Interval: elapsed, Roles: make(map[Role]float64)}
	for _, p := range after.Processes {
		used := max(p.CPU-known[identity{p.PID, p.Started}], 0)
		r.Roles[p.Role] += float64(used) / float64(elapsed)
		r.CPU += float64(used) / float64(elapsed)
	}
	r.Memory = float64(after.Memory-before.Memory) / elapsed.Seconds()
	return r
}
