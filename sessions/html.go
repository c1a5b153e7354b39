package sessions

import (
	"bufio"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// imageTypes are what an export shows as a picture. SVG isn't one: it can hold script.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// pageHead and turnTemplate escape everything that comes from the file. The page has no
// script, and its policy forbids any, and any request.
var pageHead = template.Must(template.New("head").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
article { border-top: 1px solid var(--line); padding: .5rem 0; }
h2 { font-size: 1rem; margin: .5rem 0; } header p, small { opacity: .7; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: .3rem; }
details { margin: .5rem 0; } summary { cursor: pointer; } img { max-width: 100%; }
.user { border-left: .3rem solid #48f; padding-left: .7rem; } .error { color: #c33; }
</style></head><body>
<header><h1>{{.Title}}</h1><p>{{.Cwd}} · {{.Started}} · {{.Model}}{{if gt .Branches 1}} · one of {{.Branches}} branches{{end}}</p></header>
`))

var turnTemplate = template.Must(template.New("turn").Parse(`<article{{if eq .Role "user"}} class="user"{{end}}>{{with .Who}}<h2>{{.}}</h2>{{end}}
{{range .Blocks}}{{if eq .Kind "text"}}<div class="text">{{.Text}}</div>
{{else if eq .Kind "thinking"}}<details><summary>Thinking</summary><div class="text">{{.Text}}</div></details>
{{else if eq .Kind "call"}}<details{{if .Failed}} open{{end}}><summary><b>{{.Title}}</b>{{if .Failed}} <span class="error">failed</span>{{end}}</summary><pre>{{.Text}}</pre>{{with .Result}}<pre>{{.Text}}</pre>{{end}}</details>
{{else if eq .Kind "image"}}{{if .Picture}}<img alt="image" src="{{.Picture}}">{{else}}<p><small>{{.Text}}</small></p>{{end}}
{{else if eq .Kind "summary"}}<details><summary>{{.Title}}</summary><div class="text">{{.Text}}</div></details>
{{else if eq .Kind "error"}}<p class="error">{{.Text}}</p>
{{else if eq .Kind "change"}}<p><small>{{.Text}}</small></p>
{{else}}<details><summary>{{.Title}}</summary><pre>{{.Text}}</pre></details>
{{end}}{{end}}{{with .Branches}}<p><small>{{len .}} more way(s) on from here</small></p>{{end}}</article>
`))

type htmlBlock struct {
	Kind, Title, Text string
	Failed            bool
	Result            *htmlBlock
	// Picture is a data URI of one of the imageTypes with nothing but base64 in it.
	Picture template.URL
}

// WriteHTML writes the conversation as one page that needs nothing else and can run
// nothing, whatever the file says.
func (f *File) WriteHTML(w io.Writer, o ExportOptions) error {
	out := bufio.NewWriter(w)
	info, err := f.Info()
	if err != nil {
		return err
	}
	title := o.line(info.Title())
	if title == "" {
		title = "Conversation"
	}
	err = pageHead.Execute(out, map[string]any{
		"Title": title, "Cwd": o.line(f.header.Cwd), "Started": f.header.Timestamp.Format("2006-01-02 15:04:05 MST"),
		"Model": o.line(info.Model()), "Branches": len(f.Leaves()),
	})
	if err != nil {
		return err
	}
	err = f.Conversation(o.Leaf, func(t Turn) error {
		var blocks []htmlBlock
		for _, b := range t.Blocks {
			blocks = append(blocks, htmlOf(b, o))
		}
		if err := turnTemplate.Execute(out, map[string]any{"Role": t.Role, "Who": speakers[t.Role], "Blocks": blocks, "Branches": t.Branches}); err != nil {
			return err
		}
		return out.Flush()
	})
	if err != nil {
		return err
	}
	if _, err := out.WriteString("</body></html>\n"); err != nil {
		return err
	}
	return out.Flush()
}

func htmlOf(b Block, o ExportOptions) htmlBlock {
	h := htmlBlock{Kind: string(b.Kind), Title: o.line(b.Title), Failed: b.Failed}
	if b.Kind == BlockImage {
		if slices.Contains(imageTypes, b.Title) && isBase64(b.Text) {
			h.Picture = template.URL("data:" + b.Title + ";base64," + b.Text) //nolint:gosec // G203: both parts were just checked
		} else {
			h.Text = fmt.Sprintf("an image that can't be shown: %s, %d bytes", o.line(b.Title), len(b.Text))
		}
		return h
	}
	h.Text = o.text(b.Text)
	if b.Result != nil {
		r := htmlOf(*b.Result, o)
		h.Result = &r
	}
	return h
}

func isBase64(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '/' && r != '='
	}) < 0
}
