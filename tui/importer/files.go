package importer

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	tea "charm.land/bubbletea/v2"

	"patio/sessions"
	"patio/sessions/catalog"
)

const (
	// maxHits bounds what a search holds in memory and in its list.
	maxHits = 1000
	// maxTurns bounds a preview, and maxText each text of one, in bytes.
	maxTurns = 80
	maxText  = 2000
	// maxReaders bounds how many files are read at once for previews.
	maxReaders = 4
)

// Files is the Source of what is on disk. Close ends it.
type Files struct {
	ctx     context.Context
	cancel  context.CancelFunc
	options catalog.Options
	imports ImportFunc

	readers chan struct{} // taken by each that reads a file for a preview

	mu      sync.Mutex
	watcher *catalog.Watcher
	search  context.CancelFunc // of the search that is under way
	closed  bool
}

// NewFiles returns the session files under the roots of options. Nothing is read before
// the first Watch.
func NewFiles(ctx context.Context, options catalog.Options, imports ImportFunc) *Files {
	ctx, cancel := context.WithCancel(ctx)
	return &Files{ctx: ctx, cancel: cancel, options: options, imports: imports, readers: make(chan struct{}, maxReaders)}
}

// Close ends what is under way, and waits for the end of the watching.
func (f *Files) Close() error {
	f.cancel()
	f.mu.Lock()
	w := f.watcher
	f.closed, f.watcher = true, nil
	f.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.Close()
}

// errClosed says that the source was closed; nobody is left to be told.
var errClosed = errors.New("the session files are not watched any more")

func (f *Files) updates() (<-chan catalog.Update, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if f.watcher == nil {
		f.watcher = catalog.Watch(f.ctx, f.options)
	}
	return f.watcher.Updates(), nil
}

// Watch implements Source.
func (f *Files) Watch(done func(catalog.Update, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		updates, err := f.updates()
		if err != nil {
			return nil
		}
		u, ok := <-updates
		if f.ctx.Err() != nil {
			return nil
		}
		if !ok {
			return done(u, errClosed)
		}
		return done(u, nil)
	}
}

// Search implements Source.
func (f *Files) Search(query string, in []catalog.Summary, done func(Hits, error) tea.Msg) tea.Cmd {
	ctx, cancel := context.WithCancel(f.ctx)
	f.mu.Lock()
	if f.search != nil {
		f.search()
	}
	f.search = cancel
	f.mu.Unlock()
	if query == "" {
		cancel()
		return nil
	}
	return func() tea.Msg {
		defer cancel()
		hits := Hits{Matches: []catalog.Match{}}
		if len(in) == 0 {
			return done(hits, nil)
		}
		stats, err := catalog.Search(ctx, catalog.SearchOptions{Sessions: in, Query: query}, func(m catalog.Match) error {
			if len(hits.Matches) == maxHits {
				hits.More = true
				return fs.SkipAll
			}
			hits.Matches = append(hits.Matches, m)
			return nil
		})
		if ctx.Err() != nil {
			return nil
		}
		hits.Files, hits.Unread = stats.Files, len(stats.Problems)
		if hits.Unread > 0 {
			hits.Problem = stats.Problems[0].Error()
		}
		return done(hits, err)
	}
}

// Preview implements Source.
func (f *Files) Preview(path, entry string, done func(Preview, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		select {
		case f.readers <- struct{}{}:
			defer func() { <-f.readers }()
		case <-f.ctx.Done():
			return nil
		}
		p, err := read(f.ctx, path, entry)
		if f.ctx.Err() != nil {
			return nil
		}
		return done(p, err)
	}
}

// read reads a part of a conversation. Files are read once from end to end; texts only of
// what is shown.
func read(ctx context.Context, path, entry string) (p Preview, err error) {
	file, err := sessions.Open(path)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p.At = -1
	way := file.Path()
	at := len(way) - 1
	if e, ok := file.ByID(entry); ok && entry != "" {
		// What was found may be on another branch.
		way = file.PathTo(e)
		at = slices.IndexFunc(way, func(o sessions.Entry) bool { return o.Index == e.Index })
	}
	from := max(0, at-maxTurns/2)
	if entry == "" {
		from = max(0, len(way)-maxTurns)
	}
	to := min(len(way), from+maxTurns)
	p.Before, p.After = from, len(way)-to
	p.Branches = len(file.Leaves())
	shown := map[int]bool{}
	for i, e := range way[from:to] {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		if e.Role == sessions.RoleToolResult && answered(way[from:from+i], shown) && from+i != at {
			continue // it is shown with its call
		}
		t, err := file.Turn(e)
		if err != nil {
			return p, err
		}
		if len(t.Blocks) == 0 || t.Hidden {
			continue
		}
		if entry != "" && from+i == at {
			p.At = len(p.Turns)
		}
		shown[e.Index] = e.Role == sessions.RoleAssistant
		p.Turns = append(p.Turns, bounded(t))
	}
	info, err := file.Info()
	if err != nil {
		return p, err
	}
	p.Usage = info.Usage
	return p, nil
}

// answered says that a shown answer is among the entries before, with which results are shown.
func answered(before []sessions.Entry, shown map[int]bool) bool {
	for i := len(before) - 1; i >= 0; i-- {
		switch before[i].Role {
		case sessions.RoleToolResult:
		case sessions.RoleAssistant:
			return shown[before[i].Index]
		default:
			return false
		}
	}
	return false
}

// bounded keeps the beginning of each text, and of results a few lines.
func bounded(t sessions.Turn) Turn {
	turn := Turn{Role: t.Role, Time: t.Entry.Time}
	for _, b := range t.Blocks {
		turn.Blocks = append(turn.Blocks, cutBlock(b))
		if b.Result == nil {
			continue
		}
		results, err := b.Result()
		if err != nil {
			turn.Blocks = append(turn.Blocks, Block{Kind: sessions.BlockError, Text: err.Error()})
		}
		for _, r := range results {
			turn.Blocks = append(turn.Blocks, cutBlock(r))
		}
	}
	return turn
}

func cutBlock(b sessions.Block) Block {
	if b.Kind == sessions.BlockImage {
		return Block{Kind: b.Kind, Title: clip(b.Title, 100)}
	}
	// Cloned, or the little that is kept would hold the whole line of the file in memory.
	return Block{Kind: b.Kind, Title: clip(b.Title, 500), Text: clip(b.Text, maxText), Cut: len(b.Text) > maxText, Failed: b.Failed}
}

// Check implements Source.
func (f *Files) Check(path string, done func(sessions.Report, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if f.ctx.Err() != nil {
			return nil
		}
		r, err := sessions.Validate(path)
		return done(r, err)
	}
}

// Import implements Source.
func (f *Files) Import(path string, copyInto bool, done func(Result, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		r, err := f.imports(f.ctx, path, copyInto)
		if f.ctx.Err() != nil {
			return nil
		}
		return done(r, err)
	}
}
