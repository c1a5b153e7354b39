// Package sessions reads Pi's session files: JSON lines that make a tree of entries.
//
// It is tolerant where a file is shown and strict where one is resumed, and it never
// changes a file but for its torn tail, of which it keeps a copy. It knows no engine and
// no sandbox. Facts are those of Pi 0.84.2; testdata/pi-outcomes.json has what it did
// with each file of the corpus.
package sessions
