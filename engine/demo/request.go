package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// request is the part of a chat-completions request that the demo looks at.
type request struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	Tools         []tool          `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type tool struct {
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
	raw int
}

func (t *tool) UnmarshalJSON(b []byte) error {
	type plain tool
	if err := json.Unmarshal(b, (*plain)(t)); err != nil {
		return err
	}
	t.raw = len(b)
	return nil
}

// content is a message's content: a string, null, or a list of parts.
type content []part

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

const (
	partText  = "text"
	partImage = "image_url"
)

func (c *content) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case 'n':
		*c = nil
		return nil
	case '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = content{{Type: partText, Text: s}}
		return nil
	}
	var parts []part
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type != partText && p.Type != partImage {
			return fmt.Errorf("content part of type %q is not supported", p.Type)
		}
	}
	*c = parts
	return nil
}

func (c content) text() string {
	var texts []string
	for _, p := range c {
		if p.Type == partText {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (c content) images() []string {
	var urls []string
	for _, p := range c {
		if p.Type == partImage {
			urls = append(urls, p.ImageURL.URL)
		}
	}
	return urls
}

func (r request) check() error {
	if r.Model == "" {
		return errors.New("model is missing")
	}
	if len(r.Messages) == 0 {
		return errors.New("messages is missing or empty")
	}
	user := false
	for i, m := range r.Messages {
		switch m.Role {
		case "system", "developer", "assistant":
		case "user":
			user = true
		case "tool":
			if m.ToolCallID == "" {
				return fmt.Errorf("messages[%d].tool_call_id is missing", i)
			}
		default:
			return fmt.Errorf("messages[%d].role %q is not one of system, developer, user, assistant, tool", i, m.Role)
		}
	}
	if !user {
		return errors.New("messages holds no user message")
	}
	return nil
}

// imageTokens is what an image counts, whatever its size. Counting its bytes like text would make Pi believe that one
// picture fills the context window.
const imageTokens = 765

// promptTokens estimates the prompt at four bytes a token.
func (r request) promptTokens() int64 {
	var size, images int
	for _, m := range r.Messages {
		for _, p := range m.Content {
			size += len(p.Text)
		}
		images += len(m.Content.images())
		for _, c := range m.ToolCalls {
			size += len(c.Function.Name) + len(c.Function.Arguments)
		}
	}
	for _, t := range r.Tools {
		size += t.raw
	}
	return tokens(int64(size)) + int64(images)*imageTokens
}

func tokens(size int64) int64 { return (size + 3) / 4 }
