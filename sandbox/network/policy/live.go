package policy

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Live is the policy of a running session: reads are lock-free, changes replace the whole policy at once. A nil or zero
// Live denies everything.
type Live struct {
	current atomic.Pointer[Policy]

	mu      sync.Mutex // serializes changes
	changed chan struct{}
}

// NewLive makes a live policy of rules.
func NewLive(rules ...Rule) (*Live, error) {
	l := &Live{}
	if err := l.Replace(rules...); err != nil {
		return nil, err
	}
	return l, nil
}

// Current gives the policy as it is now.
func (l *Live) Current() *Policy {
	if l == nil {
		return nil
	}
	return l.current.Load()
}

// Decide answers a request by the policy as it is now.
func (l *Live) Decide(req Request) Decision { return l.Current().Decide(req) }

// Snapshot gives a copy of the current rules.
func (l *Live) Snapshot() []Rule { return l.Current().Rules() }

// Replace sets all rules. When one is not well formed, nothing changes.
func (l *Live) Replace(rules ...Rule) error {
	p, err := New(rules...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(p)
	return nil
}

// Add adds a rule. Adding one that is there changes nothing.
func (l *Live) Add(rule Rule) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rules := l.Snapshot()
	if slices.ContainsFunc(rules, rule.same) {
		return nil
	}
	p, err := New(append(rules, rule)...)
	if err != nil {
		return err
	}
	l.set(p)
	return nil
}

// Remove takes out every rule with the host, port and action of rule; it is an error when there is none.
func (l *Live) Remove(rule Rule) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rules := l.Snapshot()
	left := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
		return r.Host == rule.Host && r.Port == rule.Port && r.Action == rule.Action
	})
	if len(left) == len(rules) {
		return fmt.Errorf("remove rule %s: there is no such %s rule", rule, rule.Action)
	}
	p, err := New(left...)
	if err != nil {
		return err
	}
	l.set(p)
	return nil
}

// Changed gives a channel that is closed at the next change.
func (l *Live) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

func (l *Live) set(p *Policy) {
	l.current.Store(p)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
