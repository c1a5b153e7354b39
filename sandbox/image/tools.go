package image

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Tool is a program that the image promises, and how to see that it is there.
type Tool struct {
	Name string `json:"name"`
	// Argv prints the version on stdout.
	Argv []string `json:"argv"`
	// Expect is what Version found in that output when the image was built.
	Expect string `json:"expectVersion"`
}

// toolProbe is a Tool before the image that it is asked of exists.
type toolProbe struct {
	Name string
	Argv []string
}

var toolProbes = []toolProbe{
	{"node", []string{"node", "--version"}},
	{"pi", []string{"pi", "--version"}},
	{adapterPackage, []string{"node", "-p", `require("` + AdapterDir + `/package.json").version`}},
	{"bash", []string{"bash", "--version"}},
	{"git", []string{"git", "--version"}},
	{"rg", []string{"rg", "--version"}},
	{"fd", []string{"fd", "--version"}},
	{"python3", []string{"python3", "--version"}},
	{"curl", []string{"curl", "--version"}},
	// ssh prints its version on stderr.
	{"ssh", []string{"sh", "-c", "ssh -V 2>&1"}},
	{"ps", []string{"ps", "--version"}},
	// The number of trusted roots stands in for a version.
	{"ca-certificates", []string{"grep", "-c", "BEGIN CERTIFICATE", "/etc/ssl/certs/ca-certificates.crt"}},
}

var versionPattern = regexp.MustCompile(`[0-9]+(\.[0-9]+)*[0-9A-Za-z.+~-]*`)

// Version is the first version-like word in a program's output, without a leading v; empty when there is none.
func Version(output []byte) string {
	for line := range strings.Lines(string(output)) {
		if v := versionPattern.FindString(line); v != "" {
			return strings.TrimRight(v, ".-+~")
		}
	}
	return ""
}

// ToolReport is what one tool answered. Err is nil when the tool ran and its version is the expected one.
type ToolReport struct {
	Tool Tool
	Got  string
	Err  error
}

// ErrToolMismatch marks a tool whose version is not the manifest's.
var ErrToolMismatch = errors.New("tool differs from the image manifest")

// Run runs a command in a sandbox of the image and returns its stdout.
type Run func(ctx context.Context, argv []string) (stdout []byte, err error)

// VerifyTools runs every tool of the manifest through run and compares versions. The reports are in the manifest's
// order; the error joins the failures and is nil when there are none.
func VerifyTools(ctx context.Context, img Image, run Run) ([]ToolReport, error) {
	reports := make([]ToolReport, 0, len(img.Manifest.Tools))
	var errs []error
	for _, tool := range img.Manifest.Tools {
		report := ToolReport{Tool: tool}
		out, err := run(ctx, tool.Argv)
		report.Got = Version(out)
		switch {
		case ctx.Err() != nil:
			return reports, fmt.Errorf("verify tools of image %s: %w", img.Short(), context.Cause(ctx))
		case err != nil:
			report.Err = fmt.Errorf("run %s: %w", tool.Name, err)
		case report.Got != tool.Expect:
			report.Err = fmt.Errorf("%w: %s is %q, the image was built with %q", ErrToolMismatch, tool.Name, report.Got, tool.Expect)
		}
		if report.Err != nil {
			errs = append(errs, report.Err)
		}
		reports = append(reports, report)
	}
	if len(reports) == 0 {
		errs = append(errs, fmt.Errorf("image %s: its manifest lists no tools; rebuild it with `patio image build`", img.Short()))
	}
	return reports, errors.Join(errs...)
}
