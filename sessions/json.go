package sessions

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxDepth bounds how deep a line may nest before anything recursive looks at it. JSON of
// the standard library has the same bound.
const maxDepth = 10_000

// kind is what JSON.parse makes of a line.
type kind int

const (
	malformed kind = iota // passed over by Pi
	falsy                 // null, false, 0 or "": passed over too
	truthy                // another value that is no object: for Pi an entry without anything
	object
)

// spaces are what JSON takes for white space; a line end is none here.
const spaces = " \t\r\n"

func kindOf(text string) kind {
	text = strings.Trim(text, spaces)
	if text == "" {
		return malformed
	}
	if deepest, balanced := nesting(text); deepest > maxDepth {
		// Pi can read it. What is in it isn't checked, and is only passed on.
		if balanced && text[0] == '{' {
			return object
		}
		return malformed
	}
	if !gjson.Valid(text) {
		return malformed
	}
	v := gjson.Parse(text)
	switch {
	case v.IsObject():
		return object
	case v.Type == gjson.Null, v.Type == gjson.False, v.Type == gjson.Number && v.Num == 0, v.Type == gjson.String && v.Str == "":
		return falsy
	default:
		return truthy
	}
}

// nesting is how deep a line's arrays and objects go, and whether each is closed, the
// outermost one at the end.
func nesting(text string) (deepest int, balanced bool) {
	depth, inString, ended := 0, false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString:
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
			}
		case ended:
			return deepest, false
		case c == '"':
			inString = true
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
			ended = depth <= 0
		}
	}
	return deepest, ended && depth == 0
}

func tooDeep(text string) bool {
	deepest, _ := nesting(text)
	return deepest > maxDepth
}

// entryStart is how Pi begins every entry.
const entryStart = `{"type":"`

// salvage finds the entry in a damaged line: behind zeros that a crash left, or behind a
// torn line that Pi has glued it to.
func salvage(text string) (entry, how string) {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "")
		if kindOf(text) == object {
			return text, "without its NUL bytes it is whole"
		}
	}
	for tries, from := 0, 1; tries < 8 && from < len(text); tries++ {
		i := strings.Index(text[from:], entryStart)
		if i < 0 {
			break
		}
		if rest := text[from+i:]; kindOf(rest) == object && parseRecord(rest).id.Type == gjson.String {
			return rest, "a torn line stands before a whole one"
		}
		from += i + 1
	}
	return "", ""
}
