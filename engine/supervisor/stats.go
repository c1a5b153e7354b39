package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"patio/engine/api"
	"patio/sandbox"
	"patio/sandbox/limits"
)

// sampleInterval is how often a session's use is measured.
const sampleInterval = time.Second

// sample journals what the session uses, each second until the sandbox ends. The cgroup
// counts best where there is one; otherwise the process tree is summed up. What programs
// inside use comes from gVisor itself.
func (s *Supervisor) sample() {
	ctx, cancel := context.WithCancel(context.Background())
	var last atomic.Pointer[sandbox.Event]
	events := make(chan struct{})
	go func() {
		defer close(events)
		if err := s.box.Events(ctx, int(sampleInterval/time.Second), func(e sandbox.Event) { last.Store(&e) }); err != nil && ctx.Err() == nil {
			s.log.Warn("gVisor's figures are missing", "err", err)
		}
	}()
	defer func() { cancel(); <-events }()
	sampler := limits.NewSampler("", s.box.InitPid(), time.Now)
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.box.Done():
			return
		case <-s.stopped:
			return
		case <-tick.C:
		}
		u, err := s.measure(sampler, last.Load())
		if err != nil {
			if !errors.Is(err, os.ErrProcessDone) {
				s.log.Warn("measure the session", "err", err)
			}
			continue
		}
		s.tracker.update(func(t *api.Session) { t.Usage = &u })
		if _, err := s.journal.Append(api.RecordStats, u); err != nil {
			s.fail(err)
			return
		}
	}
}

func (s *Supervisor) measure(sampler *limits.Sampler, inside *sandbox.Event) (api.Usage, error) {
	tree, rates, err := sampler.Sample()
	if err != nil {
		return api.Usage{}, err
	}
	u := api.Usage{
		Time: time.Now().UTC(), Source: "processes",
		CPUPercent: rates.CPU * 100, CPUSeconds: tree.CPU.Seconds(),
		Memory: tree.Memory, SandboxMemory: tree.Sandboxed,
		// gVisor keeps this one itself; a limit of memory needs a cgroup.
		PidsLimit: s.spec.Sandbox.Limits.Pids,
	}
	if group, err := s.box.Group().Stats(); err == nil {
		u.Source = "cgroup"
		u.CPUSeconds = group.CPUTotal.Seconds()
		// Page cache that the kernel takes back when it must isn't use.
		u.Memory = group.MemoryCurrent - group.MemoryReclaimable
		u.MemoryLimit = group.MemoryLimit
	}
	if inside != nil {
		u.Source += "+gvisor"
		u.Pids = int64(inside.Data.Pids.Current)
		if used := int64(inside.Data.Memory.Usage.Usage); used > 0 {
			u.SandboxMemory = used
		}
	}
	counters := s.box.Gateway().Counters()
	u.NetworkOut, u.NetworkIn = uint64(counters.ReceivedBytes), uint64(counters.SentBytes)
	return u, nil
}

// limitReason says which limit ended the session, if one did.
func (s *Supervisor) limitReason() string {
	group, err := s.box.Group().Stats()
	if err != nil || group.OOMKills == 0 {
		return ""
	}
	return fmt.Sprintf("out of memory: the session reached its limit of %d MiB (%d MiB for programs and %d MiB for gVisor); start it with a higher --limit memory=…",
		group.MemoryLimit>>20, s.spec.Sandbox.Limits.Memory>>20, s.spec.Sandbox.Limits.MemoryHeadroom>>20)
}
