package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
)

// defaultMaxBody holds a prompt with a few large images in base64.
const defaultMaxBody = 64 << 20

// Options of a handler. The zero value is good.
type Options struct {
	// Log gets one debug line a request, without any of its content. Default: none.
	Log *slog.Logger
	// MaxBody bounds a request's body, in bytes. Default: 64 MiB.
	MaxBody int64
}

// Handler serves the API: POST /v1/chat/completions, GET /v1/models and GET /v1/models/{id}. It asks for no
// authorization, keeps no state and is safe for concurrent use. A request that is cancelled ends at once.
func Handler(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	mux := http.NewServeMux()
	handle := func(method, path string, serve func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != method {
				w.Header().Set("Allow", method)
				o.finish(w, r, &apiError{status: http.StatusMethodNotAllowed, message: fmt.Sprintf("%s wants %s, not %s", r.URL.Path, method, r.Method)})
				return
			}
			o.finish(w, r, serve(w, r))
		})
	}
	handle(http.MethodPost, "/v1/chat/completions", o.complete)
	handle(http.MethodGet, "/v1/models", listModels)
	handle(http.MethodGet, "/v1/models/{id}", showModel)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		o.finish(w, r, &apiError{status: http.StatusNotFound, message: "patio demo has no " + r.URL.Path})
	})
	return mux
}

// apiError is an error of OpenAI's shape.
type apiError struct {
	status  int
	message string
	code    string
}

func (e *apiError) Error() string { return e.message }

// finish answers with an error if there is one that can still be told.
func (o Options) finish(w http.ResponseWriter, r *http.Request, err error) {
	var e *apiError
	if errors.As(err, &e) {
		err = sendError(w, e)
		o.Log.Debug("demo model refused a request", "method", r.Method, "status", e.status)
	}
	switch {
	case err == nil:
		o.Log.Debug("demo model answered", "method", r.Method)
	case r.Context().Err() == nil && !errors.Is(err, context.Canceled):
		o.Log.Debug("demo model was interrupted", "method", r.Method, "err", err)
	}
}

func sendError(w http.ResponseWriter, e *apiError) error {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	b := body{Message: e.message, Type: errorType(e.status)}
	if e.code != "" {
		b.Code = &e.code
	}
	return sendJSON(w, e.status, map[string]body{"error": b})
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

func sendJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (o Options) complete(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, o.MaxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &apiError{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		return &apiError{status: http.StatusBadRequest, message: "the request is not a chat completion: " + err.Error()}
	}
	if err := q.check(); err != nil {
		return &apiError{status: http.StatusBadRequest, message: err.Error()}
	}
	if !knownModel(q.Model) {
		return notFound(q.Model)
	}
	answer := currentTurn(q).answer()
	if answer.status != 0 {
		return &apiError{status: answer.status, message: answer.message, code: "scripted_failure"}
	}
	if q.Stream {
		return answer.stream(r.Context(), w, q)
	}
	var size int64
	for _, p := range answer.pieces {
		size += p.filler
	}
	if size > maxWhole {
		return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf("more than %d bytes of text are only streamed", maxWhole)}
	}
	return answer.sendWhole(w, q)
}

func notFound(model string) error {
	return &apiError{
		status: http.StatusNotFound, code: "model_not_found",
		message: fmt.Sprintf("the model %q does not exist; patio's demo has tour, echo, think and vision", model),
	}
}

type listedModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Name    string `json:"name"`
}

func listed(m Model) listedModel {
	return listedModel{ID: m.ID, Object: "model", OwnedBy: ProviderName, Name: m.Name}
}

func listModels(w http.ResponseWriter, _ *http.Request) error {
	data := []listedModel{}
	for _, m := range Models() {
		data = append(data, listed(m))
	}
	return sendJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

func showModel(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	for _, m := range Models() {
		if m.ID == id {
			return sendJSON(w, http.StatusOK, listed(m))
		}
	}
	return notFound(id)
}
