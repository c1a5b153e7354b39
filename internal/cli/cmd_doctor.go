package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"patio/engine/api"
)

func doctorCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, and say how to mend what is missing",
		Long: `doctor checks what sessions need on this machine. It changes nothing.

Exit codes: 0 sessions can run · 5 something has to be installed or built · 6 this machine
can't run sandboxes as it is set up.`,
		Args: arguments(cobra.NoArgs),
	}
	o := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		m, err := a.thisMachine()
		if err != nil {
			return err
		}
		return a.doctor(cmd.Context(), m, o)
	}
	return cmd
}

// health is what doctor found.
type health struct {
	OK     bool      `json:"ok"`
	Checks []finding `json:"checks"`
}

func (a *app) doctor(ctx context.Context, m *machine, o *output) error {
	h, code := examine(ctx, m)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := o.object(a, h, func(w io.Writer) error { return writeHealth(w, h) }); err != nil {
		return err
	}
	if code != "" {
		return &exitStatus{exitCode(code)}
	}
	return nil
}

// examine runs every check. The code is that of the worst failure: a machine that can't
// comes before a program that isn't there.
func examine(ctx context.Context, m *machine) (health, api.Code) {
	h := health{OK: true}
	var code api.Code
	for _, c := range checks {
		f := c.run(ctx, m)
		f.Name = c.name
		h.Checks = append(h.Checks, f)
		if f.Status != statusFail {
			continue
		}
		h.OK = false
		if f.code == api.CodeUnsupported || code == "" {
			code = f.code
		}
	}
	return h, code
}

func writeHealth(w io.Writer, h health) error {
	failed := 0
	for _, f := range h.Checks {
		if f.Status == statusFail {
			failed++
		}
		if _, err := fmt.Fprintf(w, "%-4s  %-16s %s\n", f.Status, f.Name, cleanLine(f.Detail)); err != nil {
			return err
		}
		if f.Meaning != "" {
			if _, err := fmt.Fprintf(w, "%24s%s\n", " ", cleanLine(f.Meaning)); err != nil {
				return err
			}
		}
		for line := range strings.Lines(f.Fix) {
			if _, err := fmt.Fprintf(w, "%24s$ %s\n", " ", cleanLine(line)); err != nil {
				return err
			}
		}
	}
	verdict := "Sessions can run on this machine."
	if failed == 1 {
		verdict = "One thing has to be mended first."
	} else if failed > 1 {
		verdict = fmt.Sprintf("%d things have to be mended first.", failed)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict)
	return err
}
