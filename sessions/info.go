package sessions

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// infoText bounds each text of an Info, in bytes.
const infoText = 64 << 10

// Info is what a conversation says about itself. Its texts are cut where they are long.
type Info struct {
	Name     string // the last one given; an empty one clears it
	Provider string // of the model that the conversation has now
	ModelID  string
	Thinking string // the level, "" when the file says none
	// Messages are the user's and the model's on the way to the leaf.
	Messages int
	// First is the text of the first message of the user's in the file, which Pi takes for
	// a title. The others are on the way to the leaf.
	First, Last             string
	FirstAnswer, LastAnswer string
	// Models, Usage and Counts are of the whole file: what other branches took was paid.
	Models []ModelUse
	Usage  Usage
	Counts Counts
	// LastActivity is when something was said last, Started when nothing was.
	Started, LastActivity time.Time
}

// Model is the model as `--model` takes it, "" when there is none.
func (i Info) Model() string {
	if i.Provider == "" || i.ModelID == "" {
		return ""
	}
	return i.Provider + "/" + i.ModelID
}

// Title is what Pi lists the session as: its name, or else how it began. It is "" where
// Pi says that there are no messages.
func (i Info) Title() string {
	if i.Name != "" {
		return i.Name
	}
	return i.First
}

// Info tells what was found while reading, and reads the few entries that it quotes.
func (f *File) Info() (Info, error) {
	t := f.totals
	i := Info{Name: t.name, Models: t.models, Usage: t.usage, Counts: t.counts, Started: f.header.Timestamp, LastActivity: t.activity}
	i.Counts.Branches = len(f.Leaves())
	if i.LastActivity.IsZero() {
		i.LastActivity = i.Started
	}
	var err error
	if t.firstUser >= 0 {
		if i.First, err = f.said(f.entries[t.firstUser]); err != nil {
			return i, err
		}
	}
	path := f.Path()
	for _, e := range path {
		if e.Type == TypeMessage && (e.Role == RoleUser || e.Role == RoleAssistant) {
			i.Messages++
			if i.FirstAnswer == "" && e.Role == RoleAssistant {
				if i.FirstAnswer, err = f.said(e); err != nil {
					return i, err
				}
			}
		}
	}
	return i, f.lastOnPath(path, &i)
}

// lastOnPath goes back from the leaf until it knows all that the last entries decide.
func (f *File) lastOnPath(path []Entry, i *Info) error {
	model, thinking := false, false
	for at := len(path) - 1; at >= 0 && (!model || !thinking || i.Last == "" || i.LastAnswer == ""); at-- {
		e := path[at]
		isModel := e.Type == TypeModelChange || e.Role == RoleAssistant
		switch {
		case isModel && !model, e.Role == RoleAssistant && i.LastAnswer == "", e.Role == RoleUser && i.Last == "", e.Type == TypeThinking && !thinking:
		default:
			continue
		}
		body, err := f.text(e)
		if err != nil {
			return err
		}
		v := gjson.Parse(body)
		switch {
		case e.Type == TypeModelChange:
			i.Provider, i.ModelID, model = key(v.Get("provider").Str), key(v.Get("modelId").Str), true
		case e.Type == TypeThinking:
			i.Thinking, thinking = key(v.Get("thinkingLevel").Str), true
		case e.Role == RoleAssistant:
			if !model {
				i.Provider, i.ModelID, model = key(v.Get("message.provider").Str), key(v.Get("message.model").Str), true
			}
			if i.LastAnswer == "" {
				i.LastAnswer = bounded(v.Get("message.content"))
			}
		default:
			i.Last = bounded(v.Get("message.content"))
		}
	}
	return nil
}

// said is the text of a message.
func (f *File) said(e Entry) (string, error) {
	body, err := f.text(e)
	if err != nil {
		return "", err
	}
	return bounded(gjson.Get(body, "message.content")), nil
}

func bounded(content gjson.Result) string {
	return strings.Clone(cut(messageText(content, infoText), infoText))
}

// cut is the start of a text, of at most limit bytes, that ends with a whole character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xc0 == 0x80 {
		limit--
	}
	return s[:limit]
}
