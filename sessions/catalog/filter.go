package catalog

import (
	"path/filepath"
	"strings"
	"time"
)

// Filter narrows a list down. Its zero value lets everything pass.
type Filter struct {
	Project string    // the session's directory is this one or lies in it
	Model   string    // part of provider/id, in any case
	Since   time.Time // the last activity isn't before
	Until   time.Time // the session wasn't created after
}

// Match says whether the filter lets a session pass. What a Summary doesn't know doesn't pass a filter that asks for it, except
// for Created: a session without it is as old as its last activity.
func (f Filter) Match(s Summary) bool {
	if f.Project != "" && (s.Cwd == "" || !within(filepath.Clean(s.Cwd), filepath.Clean(f.Project))) {
		return false
	}
	if f.Model != "" && !strings.Contains(strings.ToLower(s.Model), strings.ToLower(f.Model)) {
		return false
	}
	if !f.Since.IsZero() && s.LastActivity.Before(f.Since) {
		return false
	}
	if !f.Until.IsZero() {
		created := s.Created
		if created.IsZero() {
			created = s.LastActivity
		}
		return !created.After(f.Until)
	}
	return true
}
