package chat

import "slices"

// recall walks through what was typed before.
type recall struct {
	stored []string      // of the workspace, oldest first
	sent   []string      // from here, in this session
	list   []string      // while walking
	at     int           // index into list; len(list) is the draft
	edits  map[int]draft // what stood there when it was left
	active bool
}

// add notes what was just sent.
func (r *recall) add(text string) {
	if text == "" {
		return
	}
	r.sent = append(r.sent, text)
	if len(r.sent) > maxInputs {
		r.sent = slices.Delete(r.sent, 0, len(r.sent)-maxInputs)
	}
	r.active = false
}

// start gathers what there is: each text once, where it stands last.
func (r *recall) start(prompts []string) {
	all := slices.Concat(r.stored, prompts, r.sent)
	seen := make(map[string]bool, len(all))
	r.list = r.list[:0]
	for _, text := range slices.Backward(all) {
		if text == "" || seen[text] {
			continue
		}
		seen[text] = true
		r.list = append(r.list, text)
	}
	slices.Reverse(r.list)
	r.at, r.edits, r.active = len(r.list), map[int]draft{}, true
}

// older shows the text before; ok is false at the first.
func (e *editor) older(r *recall, prompts []string) (ok bool) {
	if !r.active {
		r.start(prompts)
	}
	if r.at == 0 {
		return false
	}
	e.show(r, r.at-1)
	return true
}

// newer is older's inverse; behind the last text is the draft.
func (e *editor) newer(r *recall) {
	if !r.active || r.at >= len(r.list) {
		return
	}
	e.show(r, r.at+1)
	r.active = r.at < len(r.list)
}

// show leaves the text that is shown, as it was edited, for another.
func (e *editor) show(r *recall, at int) {
	r.edits[r.at] = e.save()
	r.at = at
	if d, ok := r.edits[at]; ok {
		e.restore(d)
		return
	}
	e.set(r.list[at])
}
