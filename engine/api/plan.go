package api

import (
	"patio/sandbox/limits"
	"patio/sandbox/mounts"
	"patio/sandbox/network/policy"
)

// What a Plan is made of, by names of the wire: who shows plans needn't know sandboxes.
type (
	Mount      = mounts.Mount
	MountMode  = mounts.Mode
	LeftOut    = mounts.LeftOut
	Rule       = policy.Rule
	Limits     = limits.Limits
	LimitEntry = limits.Entry
)

// The modes of a Mount, and the actions of a Rule.
const (
	ReadOnly  = mounts.ReadOnly
	ReadWrite = mounts.ReadWrite

	ActionAllow = policy.ActionAllow
	ActionDeny  = policy.ActionDeny
)

// LimitKeys are the keys of `--limit` with a line of help for each.
func LimitKeys() (keys, help []string) { return limits.Keys() }
