package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"patio/engine/api"
	"patio/sandbox/limits"
	"patio/sandbox/mounts"
	"patio/sandbox/network/policy"
)

func planCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "plan [PATH]",
		Short:             "Show the launch that `patio new` would make, touching nothing",
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeDirectory,
	}
	launch := addLaunchFlags(cmd)
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		e, err := a.engine()
		if err != nil {
			return err
		}
		l, err := a.plan(cmd.Context(), e, launch.request(workspaceArgument(args), "patio plan"))
		if err != nil {
			return err
		}
		s := l.Session
		return o.object(a, s.Plan, func(w io.Writer) error {
			if err := fields(w, [2]string{"Workspace", s.Workspace}, [2]string{"Model", s.Model.String()}, [2]string{"Thinking", s.Model.Thinking}); err != nil {
				return err
			}
			return writePlan(w, s.Plan)
		})
	}
	return cmd
}

// section writes a title and lines below it; without lines it writes nothing.
func section(w io.Writer, title string, lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", cleanLine(title))
	for _, line := range lines {
		// Leading blanks are the caller's layout, and stay.
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		fmt.Fprintf(&b, "  %s%s\n", indent, cleanLine(strings.TrimLeft(line, " ")))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sectionTable is a section whose lines are a table's.
func sectionTable[T any](w io.Writer, title string, l listing[T], items []T) error {
	if len(items) == 0 {
		return nil
	}
	var b strings.Builder
	if err := l.table(&b, 0, false, items); err != nil {
		return err
	}
	return section(w, title, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
}

// writePlan writes a launch: what is inside, what gets out, what is bounded, and what is
// left out.
func writePlan(w io.Writer, p api.Plan) error {
	if p.Image.Digest != "" {
		lines := []string{p.Image.Digest, p.Image.Path}
		if p.Image.Pi != "" {
			lines = append(lines, "Pi "+p.Image.Pi+", Node "+firstNonEmpty(p.Image.Node, "unknown"))
		}
		if err := section(w, "Image", lines...); err != nil {
			return err
		}
	}
	if len(p.Argv) > 0 {
		quoted := make([]string, len(p.Argv))
		for i, arg := range p.Argv {
			quoted[i] = shellQuote(arg)
		}
		if err := section(w, "Program", strings.Join(quoted, " "), "in "+p.Cwd, "as "+p.User, "on gVisor's platform "+p.Platform); err != nil {
			return err
		}
	}
	steps := []func() error{
		func() error { return sectionTable(w, "Mounts", mountListing, p.Mounts) },
		func() error { return sectionTable(w, "Environment", envListing, p.Env) },
		func() error { return writeEgress(w, p) },
		func() error { return writeLimits(w, p) },
		func() error { return sectionTable(w, "Generated files", generatedListing, p.Files) },
		func() error { return sectionTable(w, "Left out", leftOutListing, p.LeftOut) },
		func() error { return section(w, "Notes", p.Notes...) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

var mountListing = listing[mounts.Mount]{columns: []column[mounts.Mount]{
	{cell: func(m mounts.Mount) string { return string(m.Mode) }},
	{cell: func(m mounts.Mount) string {
		if m.Source == m.Destination {
			return m.Source
		}
		return m.Source + " at " + m.Destination
	}},
	{cell: func(m mounts.Mount) string { return m.Reason }},
}}

var envListing = listing[api.EnvVar]{columns: []column[api.EnvVar]{
	{cell: func(e api.EnvVar) string {
		if e.Secret {
			return e.Name + " (secret)"
		}
		return e.Name + "=" + e.Value
	}},
	{cell: func(e api.EnvVar) string { return e.Reason }},
}}

var ruleListing = listing[policy.Rule]{columns: []column[policy.Rule]{
	{cell: func(r policy.Rule) string { return string(r.Action) }},
	{cell: func(r policy.Rule) string { return r.String() }},
	{cell: func(r policy.Rule) string {
		if r.Source == "" {
			return ""
		}
		return "from " + r.Source
	}},
}}

var generatedListing = listing[api.GeneratedFile]{columns: []column[api.GeneratedFile]{
	{cell: func(f api.GeneratedFile) string { return f.Path }},
	{cell: func(f api.GeneratedFile) string { return f.Reason }},
}}

var leftOutListing = listing[mounts.LeftOut]{columns: []column[mounts.LeftOut]{
	{cell: func(l mounts.LeftOut) string { return l.Path }},
	{cell: func(l mounts.LeftOut) string { return l.Reason }},
}}

var entryListing = listing[limits.Entry]{columns: []column[limits.Entry]{
	{cell: func(e limits.Entry) string { return e.Name }},
	{cell: func(e limits.Entry) string { return e.Requested }},
	{cell: func(e limits.Entry) string {
		if e.Enforced {
			return "by " + e.By
		}
		return "not enforced"
	}},
	{cell: func(e limits.Entry) string { return e.Why }},
}}

// writeEgress writes what gets out, also when that is nothing.
func writeEgress(w io.Writer, p api.Plan) error {
	if len(p.Egress) == 0 && len(p.Argv) > 0 {
		return section(w, "Network", "every host is refused")
	}
	return sectionTable(w, "Network: these are allowed, all else is refused", ruleListing, p.Egress)
}

// writeLimits writes what is asked for, and once a session runs what became of it.
func writeLimits(w io.Writer, p api.Plan) error {
	if len(p.Enforced) > 0 {
		return sectionTable(w, "Limits", entryListing, p.Enforced)
	}
	if len(p.Argv) == 0 {
		return nil
	}
	return section(w, "Limits", strings.Fields(p.Limits.String())...)
}

// shellQuote writes an argument as a shell would need it.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("@%+=:,./_-", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
