package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"patio/engine"
	"patio/engine/api"
	"patio/engine/journal"
)

// decodeData reads a record's data. A record of another version of patio may not fit:
// it is then as if it weren't there.
func decodeData(data []byte, v any) bool { return json.Unmarshal(data, v) == nil }

// errDone ends a walk over records early, without an error.
var errDone = errors.New("done")

// records reads a session's journal in order, from its supervisor while it lives and from
// its file once it has ended, and calls f with each line (without its LF).
type records struct {
	engine *engine.Engine // nil when only a live session is read
	client *api.Client
	id     string
	since  uint64
	types  []string
}

// follow reads until the session has ended, f fails, or ctx is done. A supervisor that
// goes away in the middle costs nothing: the rest is in the file.
func (r *records) follow(ctx context.Context, f func(line []byte) error) error {
	err := r.read(ctx, true, f)
	switch {
	case errors.Is(err, errDone):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.engine == nil || isCallback(err):
		return unwrapCallback(err)
	}
	return r.file(ctx, f)
}

// once reads what there is now.
func (r *records) once(ctx context.Context, live bool, f func(line []byte) error) error {
	if !live {
		return r.file(ctx, f)
	}
	err := r.read(ctx, false, f)
	if err != nil && r.engine != nil && !isCallback(err) && ctx.Err() == nil {
		return r.file(ctx, f) // it ended a moment ago
	}
	if errors.Is(err, errDone) {
		return nil
	}
	return unwrapCallback(err)
}

// callbackError tells an error of f from one of reading.
type callbackError struct{ error }

func (e callbackError) Unwrap() error { return e.error }

func isCallback(err error) bool {
	var c callbackError
	return errors.As(err, &c)
}

func unwrapCallback(err error) error {
	var c callbackError
	if errors.As(err, &c) {
		return c.error
	}
	return err
}

func (r *records) read(ctx context.Context, follow bool, f func([]byte) error) error {
	stream, err := r.client.Journal(ctx, api.JournalOptions{Since: r.since, Types: r.types, Follow: follow})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for {
		line, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the session's journal: %w", err)
		}
		if err := r.give(line, f); err != nil {
			return err
		}
	}
}

func (r *records) file(ctx context.Context, f func([]byte) error) error {
	reader, err := r.engine.OpenJournal(ctx, r.id, r.since)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	for {
		line, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.give(line, f); err != nil {
			if errors.Is(err, errDone) {
				return nil
			}
			return unwrapCallback(err)
		}
	}
}

// give hands a line on if it is wanted, and remembers how far the walk has come.
func (r *records) give(line []byte, f func([]byte) error) error {
	seq, _, typ, ok := journal.Header(line)
	if !ok {
		return nil // of another version
	}
	if seq > r.since {
		r.since = seq
	}
	if len(r.types) > 0 && !slices.Contains(r.types, typ) {
		return nil
	}
	if err := f(line); err != nil {
		return callbackError{err}
	}
	return nil
}

// decoded makes a line function of one that wants records.
func decoded(f func(journal.Record) error) func([]byte) error {
	return func(line []byte) error {
		r, err := journal.Decode(line)
		if err != nil {
			return nil // of another version
		}
		return f(r)
	}
}
