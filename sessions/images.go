package sessions

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// imageTypes are what an export shows as a picture. SVG isn't one: it can hold script.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// maxImage is what the strictest of the big providers takes as one image, in base64.
const maxImage = 5 << 20

// imageProblems looks at each image.
func (f *File) imageProblems(n *noteList) error {
	for _, e := range f.entries {
		if !e.images {
			continue
		}
		text, err := f.text(e)
		if err != nil {
			return err
		}
		content := gjson.Get(text, "content")
		if e.Type == TypeMessage {
			content = gjson.Get(text, "message.content")
		}
		content.ForEach(func(_, block gjson.Result) bool {
			if block.Get("type").Str != "image" {
				return true
			}
			if problem := imageProblem(block.Get("mimeType").Str, block.Get("data")); problem != "" {
				n.add(Problem{Line: e.Line, Severity: Note, kind: "image", Text: problem + ": a provider may refuse the conversation"})
			}
			return true
		})
	}
	return nil
}

// imageProblem says what is wrong with an image, "" when nothing is.
func imageProblem(mimeType string, data gjson.Result) string {
	switch {
	case data.Type != gjson.String || data.Str == "":
		return "an image without data"
	case !slices.Contains(imageTypes, mimeType):
		return fmt.Sprintf("an image of type %q", cut(mimeType, 100))
	case !isBase64(data.Str):
		return "an image that isn't base64"
	case len(data.Str) > maxImage:
		return fmt.Sprintf("an image of %d bytes of base64, more than %d", len(data.Str), maxImage)
	case sniffImage(data.Str) != mimeType:
		return fmt.Sprintf("an image that isn't the %s it says", mimeType)
	}
	return ""
}

// isBase64 decodes without keeping anything.
func isBase64(s string) bool {
	if s == "" || strings.ContainsAny(s, "\r\n") {
		return false
	}
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(s)))
	return err == nil
}

// sniffImage tells an image's type from how it begins, "" when it is none that is shown.
func sniffImage(data string) string {
	head := make([]byte, 12)
	n, err := io.ReadFull(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)), head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	switch s := string(head[:n]); {
	case strings.HasPrefix(s, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case strings.HasPrefix(s, "\xff\xd8\xff"):
		return "image/jpeg"
	case strings.HasPrefix(s, "GIF87a"), strings.HasPrefix(s, "GIF89a"):
		return "image/gif"
	case strings.HasPrefix(s, "RIFF") && len(s) == 12 && s[8:] == "WEBP":
		return "image/webp"
	}
	return ""
}
