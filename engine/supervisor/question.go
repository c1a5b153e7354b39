package supervisor

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"patio/engine/api"
	"patio/engine/pi"
)

// ownQuestion begins the ids of the questions that patio itself asks. They are answered as
// Pi's are, with an extension_ui_response, which then never reaches Pi.
const ownQuestion = "patio/"

// questions are the open ones of patio's own.
type questions struct {
	mu   sync.Mutex
	next uint64
	open map[string]*openQuestion
}

type openQuestion struct {
	options []string
	answer  chan string // buffered by one
}

// ask puts a question to whoever watches the session, and waits for one of the options.
// False means that there is no answer: it was dismissed, or ctx ended.
func (s *Supervisor) ask(ctx context.Context, title, message string, options ...string) (string, bool) {
	o := &openQuestion{options: options, answer: make(chan string, 1)}
	s.questions.mu.Lock()
	s.questions.next++
	id := ownQuestion + strconv.FormatUint(s.questions.next, 10)
	s.questions.open[id] = o
	s.questions.mu.Unlock()
	defer func() {
		s.questions.mu.Lock()
		delete(s.questions.open, id)
		s.questions.mu.Unlock()
	}()
	q := api.Question{ID: id, Method: "select", Title: title, Message: message, Options: options, Asked: time.Now().UTC()}
	s.state(s.tracker.asked(q))
	select {
	case a := <-o.answer:
		return a, a != ""
	case <-ctx.Done():
		if r, ok := s.tracker.answered(id); ok {
			r.Reason = "the question timed out"
			s.state(r)
		}
		return "", false
	}
}

// answerOwn takes the answer to a question of patio's own. It is false for Pi's questions.
func (s *Supervisor) answerOwn(cmd pi.Command) (bool, error) {
	var a struct {
		ID        string `json:"id"`
		Value     string `json:"value"`
		Cancelled bool   `json:"cancelled"`
	}
	if cmd.Type != "extension_ui_response" || json.Unmarshal(cmd.Line, &a) != nil || !strings.HasPrefix(a.ID, ownQuestion) {
		return false, nil
	}
	s.questions.mu.Lock()
	defer s.questions.mu.Unlock()
	o, ok := s.questions.open[a.ID]
	switch {
	case !ok:
		return true, api.Errorf(api.CodeConflict, "", "question %s isn't open any more", a.ID)
	case a.Cancelled:
		a.Value = ""
	case !slices.Contains(o.options, a.Value):
		return true, api.Errorf(api.CodeUsage, "", "%q is no answer to this question: one of %s", a.Value, strings.Join(o.options, ", "))
	}
	delete(s.questions.open, a.ID)
	if r, ok := s.tracker.answered(a.ID); ok {
		s.state(r)
	}
	o.answer <- a.Value
	return true, nil
}
