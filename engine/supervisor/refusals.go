package supervisor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"patio/engine/api"
	"patio/engine/rules"
	"patio/sandbox/network/policy"
)

// What counts as many refusals: a build tool that misses one host retries it some ten
// times, a program that looks for a way out tries dozens of things.
const (
	refusalBudget = 40
	refusalWindow = time.Minute
)

// refusals counts refused connections and names over the last minute.
type refusals struct {
	mu     sync.Mutex
	recent []refused
	sum    int
	told   bool
}

type refused struct {
	at    time.Time
	count int
}

// add counts refusals. It is true when they have become many, once until reset.
func (r *refusals) add(now time.Time, count int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := 0
	for old < len(r.recent) && now.Sub(r.recent[old].at) > refusalWindow {
		r.sum -= r.recent[old].count
		old++
	}
	r.recent = append(slices.Delete(r.recent, 0, old), refused{now, count})
	r.sum += count
	if r.told || r.sum < refusalBudget {
		return false
	}
	r.told, r.recent, r.sum = true, nil, 0
	return true
}

// reset lets add tell again.
func (r *refusals) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.recent, r.sum = false, nil, 0
}

// manyRefused tells the session's users once, and pauses the sandbox if that is wished.
func (s *Supervisor) manyRefused() {
	now := s.Session()
	s.state(api.StateRecord{
		Phase: now.Phase, Activity: now.Activity,
		Notice: fmt.Sprintf("%d connections or names were refused within a minute: `patio egress %s --denied` shows them, `patio policy learn %s` what would allow them", refusalBudget, now.ID, now.ID),
	})
	if s.spec.OnDeny != api.OnDenyPause || now.Phase != api.PhaseReady {
		return
	}
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		if err := s.pause(); err != nil {
			s.log.Error("pause the sandbox", "err", err)
		}
	}()
}

// The answers to the question of a paused sandbox.
const (
	pauseGoOn   = "Go on"
	pauseIgnore = "Go on, and don't pause again"
	pauseStop   = "Stop the session"
)

// pause stops the sandbox where it is until somebody says how to go on.
func (s *Supervisor) pause() error {
	ctx, cancel := s.whileRunning()
	defer cancel()
	if err := s.box.Pause(ctx); err != nil {
		return err
	}
	s.paused.Store(true)
	answer, _ := s.ask(ctx, "The sandbox is paused: it tried many connections that are refused",
		fmt.Sprintf("%d connections or names were refused within a minute. `patio egress %s --denied` shows them.", refusalBudget, s.spec.Session.ID),
		pauseGoOn, pauseIgnore, pauseStop)
	if answer == pauseStop {
		select {
		case s.stopRequest <- api.StopRequest{Reason: "stopped after many refused connections"}:
		default: // one is on its way
		}
		return nil // a stop lets it go on by itself
	}
	if answer != pauseIgnore {
		s.refusals.reset()
	}
	return s.unpause(ctx)
}

// unpause lets a paused sandbox go on; it does nothing to another.
func (s *Supervisor) unpause(ctx context.Context) error {
	if !s.paused.CompareAndSwap(true, false) {
		return nil
	}
	return s.box.Resume(ctx)
}

// whileRunning is a context that ends when Pi is gone, or is being stopped.
func (s *Supervisor) whileRunning() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		select {
		case <-s.conn.gone:
		case <-s.stopping:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, cancel
}

// askTimeout is how long a connection waits for an answer: programs inside give up after
// some minutes by themselves.
const askTimeout = 2 * time.Minute

// The answers to the question about a connection.
const (
	askAllow   = "Allow for this session"
	askForGood = "Allow for good"
	askOnce    = "Refuse once"
	askRefuse  = "Refuse for this session"
)

// appeal asks about a connection that no rule allows. It blocks until there is an answer.
func (s *Supervisor) appeal(ctx context.Context, req policy.Request, d policy.Decision) policy.Decision {
	rule, err := policy.ParseRule(net.JoinHostPort(req.Host, strconv.Itoa(int(req.Port))))
	if err != nil {
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	message := "A program in the sandbox wants to connect. " + d.Message + "."
	if calls := s.tracker.tools(); len(calls) > 0 {
		message += " A tool is running."
	}
	answer, ok := s.ask(ctx, "Allow "+rule.String()+"?", message, askAllow, askForGood, askOnce, askRefuse)
	switch {
	case !ok && ctx.Err() != nil:
		return policy.Refuse(policy.ReasonAskTimeout)
	case answer == askAllow, answer == askForGood:
		if answer == askForGood {
			if err := rules.Add(ctx, s.spec.RulesFile, rule, askClient, time.Now()); err != nil {
				s.log.Error("keep a rule for good", "rule", rule.String(), "err", err)
			}
		}
		if err := s.changePolicy(askClient, api.RuleChange{Action: string(policy.ActionAllow), Rule: rule.String(), Source: askClient}); err != nil {
			s.log.Error("allow what was asked for", "rule", rule.String(), "err", err)
		}
		return s.policy.Decide(req)
	case answer == askRefuse:
		if err := s.changePolicy(askClient, api.RuleChange{Action: string(policy.ActionDeny), Rule: rule.String(), Source: askClient}); err != nil {
			s.log.Error("refuse what was asked for", "rule", rule.String(), "err", err)
		}
	}
	return policy.Refuse(policy.ReasonAskDenied)
}

// askClient names in rules and records whoever answered a question.
const askClient = "ask"
