package panetest

import (
	"maps"
	"strings"
)

// Endless is the length of the longest of the hostile texts.
const Endless = 10 << 20

// Hostile are texts that would do something to a terminal, or take too long, if they were
// drawn as they are: those of at most longest bytes, by what they do.
func Hostile(longest int) map[string]string {
	all := map[string]string{
		"colour":                 "\x1b[2J\x1b[31mred",
		"colour, home":           "\x1b[31mred\x1b[2J\x1b[H",
		"colour, title":          "\x1b[2J\x1b[31mred\x1b]0;title\x07",
		"title without an end":   "\x1b]0;title",
		"hyperlink":              "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
		"clipboard":              "\x1b]52;c;aGk=\x07",
		"clipboard, text":        "\x1b]52;c;cm0gLXJm\x07copied",
		"clipboard in text":      "a\x1b[2J\x1b]52;c;aGk=\x07b",
		"sixel":                  "\x1bPq#0\x1b\\",
		"sixel, other strings":   "\x1bPq#0\x1b\\ \x1b_apc\x1b\\ \x1b^pm\x1b\\",
		"all kinds":              "\x1b[31m\x1b]52;c;aGk=\x07\x1bP\x9b0m\x9d8;;x\x9c",
		"C1":                     "\u009b31m\u009d0;x\u009c",
		"C1, raw":                "\x9b31m\x9d52;c;x\x9c",
		"C1, mixed":              "\u009b2J\u009d0;t\u009c\x9b31m",
		"C1 in text":             "a\u009b31m\u0090q\u009cb",
		"C1, next line":          "\u009b2J\u0085",
		"direction":              "\u202eevil\u2066x\u2069",
		"direction in text":      "a\u202eevil\u2066b",
		"direction, ended":       "\u202eright to left\u202c\u2066x\u2069",
		"direction, no width":    "\u202edlrow\u2066\u200b\u200d\ufeff\u00ad",
		"no width":               "z\u200bw\u200dj\ufeff\u00ad",
		"no width, more":         "a\u200bb\u200dc\ufeffd\u00ad",
		"no width, joined":       "a\u200b\u200d\ufeff\u2060b",
		"no width, at the end":   "zero\u200bwidth\u200d\ufeff",
		"marks":                  "e" + strings.Repeat("\u0301", 300),
		"marks, another":         "a" + strings.Repeat("\u0301", 300),
		"marks, then text":       "a" + strings.Repeat("\u0301", 300) + "b",
		"marks on nothing":       strings.Repeat("\u0301", 9000),
		"not UTF-8":              "\xff\xfe\xc3\x28",
		"not UTF-8, more":        "\xff\xfe\xc3(\xe2\x28\xa1",
		"not UTF-8 in text":      "a\xff\xfe\xc3b",
		"not UTF-8, cut":         "\xff\xfe broken \xc3",
		"line ends":              "a\rb\nc\td\x00e\x7f",
		"line ends, words":       "one\r\ntwo\rthree\u2028four\tfive\vsix",
		"line ends of all kinds": "a\r\nb\rc\u2028d\u0085e\x0bf\x0cg",
		"line ends, controls":    "tab\tand\rreturn\r\nand\vmore\f\b\x00\x7f",
		"separators":             " \u2028\u2029 ",
		"separators in text":     "a\u2028b\u2029c",
		"tabs":                   strings.Repeat("\t", 200),
		"controls":               "\x00\x01\x02\x08\x7f",
		"tags, controls":         "\U000e0041\ufe0f\u115f\x00\x08",
		"variation":              "☎\ufe0f❤\ufe0f",
		"private":                "\U00100000\U0010fffd\ue000",
		"blank":                  "\u3164\u115f\u2800",
		"blank, more":            "\u1160\u2800\u3164\u034f",
		"right to left":          "שלום עולם مرحبا",
		"scripts":                "日本語👩‍👩‍👧‍👦 عربي",
		"scripts, more":          "漢字👩‍👩‍👧‍👦 שלום",
		"scripts, long":          "漢字👩‍👩‍👧‍👦 שלום " + strings.Repeat("漢", 100),
		"wide":                   strings.Repeat("漢字🧑‍🚀", 40),
		"wide, joined":           strings.Repeat("漢字👩\u200d👧", 100),
		"wide, long":             strings.Repeat("漢字", 3000),
		"pictures":               strings.Repeat("👩‍👩‍👧‍👦🏳️‍🌈", 300),
		"much colour":            strings.Repeat("x\x1b[31m", 1<<20/6),
		"endless":                strings.Repeat("x", Endless),
	}
	maps.DeleteFunc(all, func(_, text string) bool { return len(text) > longest })
	return all
}
