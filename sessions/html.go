package sessions

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// style is the page's only style: its policy names its digest, and so no other.
const style = `:root{color-scheme:light dark;--line:#8884;--soft:#8882;--user:#2563eb;--bad:#b91c1c}
@media (prefers-color-scheme:dark){:root{--user:#7aa2f7;--bad:#f87171}}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
article{border-top:1px solid var(--line);padding:.5rem 0}
h1{font-size:1.4rem}h2{font-size:1rem;margin:.5rem 0}h2 small{font-weight:normal}small,dl,.change{opacity:.75}
dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem}dd{margin:0}
.text,pre{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}
.text{margin:.5rem 0}
pre{background:var(--soft);padding:.6rem;border-radius:.3rem;margin:.5rem 0}
details{margin:.5rem 0}summary{cursor:pointer}img{max-width:100%}
.branch{border-left:.2rem solid var(--line);padding-left:.8rem}
.user{border-left:.3rem solid var(--user);padding-left:.7rem}.bad{color:var(--bad)}
`

// policy forbids everything but that style and pictures that are in the page.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// WriteHTML writes the conversation as one page that needs nothing else and can run
// nothing, whatever the file says: its texts are text, escaped, and no Markdown in them
// becomes a tag but for fences, which become blocks of code.
func (f *File) WriteHTML(w io.Writer, o ExportOptions) error {
	p := page{document{bufio.NewWriterSize(w, 64<<10), o}}
	title, facts, err := f.headOf(o)
	if err != nil {
		return err
	}
	p.put("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"", policy,
		"\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>")
	p.escape(title)
	p.put("</title>\n<style>", style, "</style></head><body>\n<header><h1>")
	p.escape(title)
	p.put("</h1>\n<dl>")
	for _, fact := range facts {
		p.put("<dt>", fact.name, "</dt><dd>")
		p.escape(fact.value)
		p.put("</dd>\n")
	}
	p.put("</dl></header>\n<main>\n")
	if err := f.render(p, o.Leaf, maxNest); err != nil {
		return err
	}
	p.put("</main></body></html>\n")
	return p.Flush()
}

// page writes HTML. Whatever comes from the file goes through escape or picture.
type page struct{ document }

// escape writes text that is neither markup nor a control character, in content as in
// quoted attributes.
func (p page) escape(s string) {
	start := 0
	for i, r := range s {
		var as string
		switch {
		case r == '<':
			as = "&lt;"
		case r == '>':
			as = "&gt;"
		case r == '&':
			as = "&amp;"
		case r == '"':
			as = "&#34;"
		case r == '\'':
			as = "&#39;"
		case r == utf8.RuneError || isControl(r) && r != '\r':
			as = "\uFFFD"
		default:
			continue
		}
		p.put(s[start:i], as)
		_, size := utf8.DecodeRuneInString(s[i:])
		start = i + size
	}
	p.put(s[start:])
}

// text writes a text, what is fenced in it as code.
func (p page) text(s string) {
	s = p.o.text(s)
	for s != "" {
		before, code, after := cutFence(s)
		if strings.TrimSpace(before) != "" {
			p.put("<div class=\"text\" dir=\"auto\">")
			p.escape(strings.Trim(before, "\n"))
			p.put("</div>\n")
		}
		if code != "" {
			p.code(code)
		}
		s = after
	}
}

func (p page) code(s string) {
	p.put("<pre>")
	p.escape(strings.TrimSuffix(s, "\n"))
	p.put("</pre>\n")
}

// cutFence finds the first fenced block of a text. A fence that isn't closed is none.
func cutFence(s string) (before, code, after string) {
	for from := 0; from < len(s); {
		open, next := lineFrom(s, from)
		fence := fenceOf(open)
		if fence == "" {
			from = next
			continue
		}
		for at := next; at < len(s); {
			l, end := lineFrom(s, at)
			if strings.TrimSpace(l) == fence || strings.HasPrefix(l, fence) && strings.Trim(l, "`~ \r") == "" {
				return s[:from], s[next:at], s[end:]
			}
			at = end
		}
		return s, "", ""
	}
	return s, "", ""
}

// lineFrom is the line that begins at an offset, and where the next one does.
func lineFrom(s string, from int) (text string, next int) {
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
		return s[from : from+i], from + i + 1
	}
	return s[from:], len(s)
}

// fenceOf is the fence that a line opens a block with.
func fenceOf(l string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(l) - len(strings.TrimLeft(l, c)); n >= 3 && !strings.Contains(l[n:], c) {
			return l[:n]
		}
	}
	return ""
}

func (p page) turn(t Turn) error {
	class := ""
	if t.Role == RoleUser || t.Role == RoleBash {
		class = ` class="user"`
	}
	p.put("<article", class, ">")
	if who := speakers[t.Role]; who != "" {
		p.put("<h2>", who, " <small>")
		p.escape(p.o.line(aboutTurn(t)))
		p.put("</small></h2>\n")
	}
	if t.Label != "" {
		p.put("<p class=\"change\">label: ")
		p.escape(p.o.line(t.Label))
		p.put("</p>\n")
	}
	if t.Hidden {
		p.put("<p class=\"change\">for the model alone</p>\n")
	}
	for _, b := range t.Blocks {
		if err := p.block(b); err != nil {
			return err
		}
	}
	if n := len(t.Branches); n > 0 {
		p.put(fmt.Sprintf("<p class=\"change\">%d more way(s) on from here</p>\n", n))
	}
	p.put("</article>\n")
	return p.Flush()
}

func aboutTurn(t Turn) string {
	about := stamp(t.Entry.Time)
	if t.Model != "" {
		about += " · " + t.Model
	}
	if t.Usage.Cost > 0 {
		about += fmt.Sprintf(" · $%.4f", t.Usage.Cost)
	}
	return strings.TrimPrefix(about, " · ")
}

func (p page) block(b Block) error {
	switch b.Kind {
	case BlockText:
		p.text(b.Text)
	case BlockThinking:
		p.folded("", "Thinking", func() { p.text(b.Text) })
	case BlockSummary:
		p.folded("", b.Title, func() { p.text(b.Text) })
	case BlockCall:
		return p.call(b)
	case BlockImage:
		p.picture(b)
	case BlockError:
		p.put("<p class=\"bad\">")
		p.escape(p.o.text(b.Text))
		p.put("</p>\n")
	case BlockChange:
		p.put("<p class=\"change\">")
		p.escape(p.o.line(b.Text))
		p.put("</p>\n")
	case BlockOther:
		p.folded("", b.Title, func() { p.code(p.o.text(b.Text)) })
	}
	return nil
}

func (p page) folded(attributes, title string, content func()) {
	p.put("<details", attributes, "><summary>")
	p.escape(p.o.line(title))
	p.put("</summary>\n")
	content()
	p.put("</details>\n")
}

func (p page) call(b Block) error {
	open := ""
	if b.Failed {
		open = " open"
	}
	p.put("<details", open, "><summary><b>")
	p.escape(p.o.line(b.Title))
	p.put("</b>")
	if b.Failed {
		p.put(" <span class=\"bad\">failed</span>")
	}
	p.put("</summary>\n")
	if b.Text != "" {
		p.code(p.o.text(b.Text))
	}
	if b.Result != nil {
		blocks, err := b.Result()
		if err != nil {
			return err
		}
		for _, r := range blocks {
			switch {
			case r.Kind == BlockImage:
				p.picture(r)
			case r.Text != "":
				p.code(p.o.text(r.Text))
			}
		}
	}
	p.put("</details>\n")
	return nil
}

// picture shows an image that is what it says it is, of a type that can't hold script.
// Its data is base64 and nothing else.
func (p page) picture(b Block) {
	switch {
	case !slices.Contains(imageTypes, b.Title) || !isBase64(b.Text) || sniffImage(b.Text) != b.Title:
		p.put("<p class=\"change\">an image that can't be shown: ")
	case p.o.Limit > 0 && len(b.Text) > maxPicture:
		p.put("<p class=\"change\">an image too big to be shown: ")
	default:
		p.put("<img alt=\"image\" src=\"data:", b.Title, ";base64,", b.Text, "\">\n")
		return
	}
	p.escape(imageLine(b, p.o))
	p.put("</p>\n")
}

func (p page) open(b branch) error {
	p.put(fmt.Sprintf("<details class=\"branch\" id=\"branch-%d\"><summary>Branch %d: ", b.number, b.number))
	p.escape(p.o.line(b.describe()))
	p.put("</summary>\n")
	return nil
}

func (p page) later(b branch) error { return p.open(b) }

func (p page) end() error {
	p.put("</details>\n")
	return p.Flush()
}

func (p page) mention(b branch) error {
	p.put("<p class=\"change\">")
	p.escape(p.o.line(b.describe()))
	p.put(fmt.Sprintf(": branch %d, at the end</p>\n", b.number))
	return nil
}
