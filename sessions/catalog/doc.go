// Package catalog finds Pi's session files; it never writes to one, never decodes one whole to list it, never follows a
// path that a file names.
package catalog
