package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/tidwall/gjson"

	"patio/engine/api"
	"patio/engine/journal"
)

// Unanswered returns the last message that a session was given and that no answer came
// to, "" when there is none. Pi writes a conversation down with its first answer: a
// message that it died over is in the journal alone.
func (e *Engine) Unanswered(ctx context.Context, id string) (string, error) {
	r, err := e.OpenJournal(ctx, id, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	message := ""
	for {
		record, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return message, nil
		}
		if err != nil {
			return "", err
		}
		if _, _, typ, ok := journal.Header(record); !ok || typ != api.RecordRPC {
			continue
		}
		line := gjson.GetBytes(record, "data.line")
		switch {
		case gjson.GetBytes(record, "data.direction").Str == string(api.ToPi):
			if t := line.Get("type").Str; t == "prompt" || t == "steer" || t == "follow_up" {
				message = line.Get("message").Str
			}
		case line.Get("type").Str == "message_end" && line.Get("message.role").Str == "assistant",
			line.Get("type").Str == "response" && line.Get("command").Str == "prompt" && !line.Get("success").Bool():
			message = ""
		}
	}
}
