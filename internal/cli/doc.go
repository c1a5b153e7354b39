// Package cli is patio's command line: it turns arguments into calls of the engine and
// what the engine says into text, JSON and exit codes. It decides nothing about
// sandboxes, and nothing that comes from inside one reaches a terminal unsanitized.
package cli
