package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The values of --output.
const (
	outputTable    = "table"
	outputJSON     = "json"
	outputYAML     = "yaml"
	outputTemplate = "template="
)

// output is how a command's result is written.
type output struct {
	format    string
	json      bool
	template  string
	quiet     bool
	noHeaders bool

	parsed *template.Template
}

// addOutput gives a command the flags of one object.
func addOutput(cmd *cobra.Command) *output {
	o := &output{}
	f := cmd.Flags()
	f.StringVarP(&o.format, "output", "o", outputTable, "table, json, yaml or template=GO-TEMPLATE")
	f.BoolVar(&o.json, "json", false, "the same as -o json")
	f.StringVar(&o.template, "format", "", "the same as -o template=GO-TEMPLATE")
	cmd.MarkFlagsMutuallyExclusive("json", "format")
	fromEnvironment(f, "output")
	completeFlag(cmd, "output", outputTable, outputJSON, outputYAML, outputTemplate)
	return o
}

// addListOutput gives a command the flags of a listing.
func addListOutput(cmd *cobra.Command) *output {
	o := addOutput(cmd)
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print ids only")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print the table without its headers")
	return o
}

// check refuses a format before anything is done for it.
func (o *output) check() error {
	if o.json {
		o.format = outputJSON
	}
	if o.template != "" {
		o.format = outputTemplate + o.template
	}
	switch o.format {
	case outputTable, outputJSON, outputYAML:
		return nil
	}
	text, ok := strings.CutPrefix(o.format, outputTemplate)
	if !ok {
		return usageError("", "unknown output format %q: table, json, yaml or template=GO-TEMPLATE", o.format)
	}
	t, err := template.New("format").Option("missingkey=error").Funcs(templateFuncs).Parse(text)
	if err != nil {
		return usageError("templates are those of Go: {{.ID}} {{.Phase}}; `-o json` shows the fields", "read the template: %w", err)
	}
	o.parsed = t
	return nil
}

var templateFuncs = template.FuncMap{
	"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	},
	"join":  strings.Join,
	"upper": strings.ToUpper,
	"lower": strings.ToLower,
}

// object writes one thing; human writes it for a person.
func (o *output) object(a *app, v any, human func(io.Writer) error) error {
	if o.format == outputTable {
		return human(a.display())
	}
	return o.encode(a, v, []any{v})
}

// encode writes v as JSON or YAML, or each item by the template.
func (o *output) encode(a *app, v any, items []any) error {
	switch o.format {
	case outputJSON:
		return writeJSON(a.data(), v)
	case outputYAML:
		b, err := yaml.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode YAML: %w", err)
		}
		_, err = a.display().Write(b)
		return err
	}
	for _, item := range items {
		var b bytes.Buffer
		if err := o.parsed.Execute(&b, item); err != nil {
			return usageError("`-o json` shows the fields", "%w", err)
		}
		if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
			b.WriteByte('\n')
		}
		if _, err := a.display().Write(b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes v indented, for people and programs alike.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// listing is a table of things of one kind.
type listing[T any] struct {
	columns []column[T]
	id      func(T) string
}

// write writes the items as the user asked.
func (l listing[T]) write(a *app, o *output, items []T) error {
	if o.quiet {
		for _, item := range items {
			if _, err := fmt.Fprintln(a.display(), l.id(item)); err != nil {
				return err
			}
		}
		return nil
	}
	if o.format == outputTable {
		return l.table(a.display(), a.width(), !o.noHeaders, items)
	}
	if items == nil {
		items = []T{} // an empty list is [], not null
	}
	each := make([]any, len(items))
	for i, item := range items {
		each[i] = item
	}
	return o.encode(a, items, each)
}
