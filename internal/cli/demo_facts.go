package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/sandbox/network/policy"
)

// fileFact is a file of the workspace as the host sees it.
type fileFact struct {
	path  string
	size  int64
	owner uint32
}

// demoFacts is what a demo's records and checks have shown. Nothing is in the report that
// isn't in here.
type demoFacts struct {
	session api.Session
	// kernel, hostKernel are /proc/version inside and outside; status is /proc/1/status
	// inside: Pi's own.
	kernel, hostKernel string
	status             map[string]string
	made               []fileFact
	refused            []api.EgressRecord
	allowed            []api.EgressRecord
	tools              map[string]int
	toolErrors         int
	samples            int
	peakCPU            float64
	peakMemory         int64
	memoryLimit        int64
}

// observe takes the session's next record.
func (d *demoFacts) observe(r journal.Record) {
	switch r.Type {
	case api.RecordEgress:
		var e api.EgressRecord
		if !decodeData(r.Data, &e) {
			return
		}
		if e.Verdict == policy.Deny {
			d.refused = append(d.refused, e)
		} else if e.Kind == "connection" {
			d.allowed = append(d.allowed, e)
		}
	case api.RecordStats:
		var u api.Usage
		if decodeData(r.Data, &u) {
			d.usage(&u)
		}
	case api.RecordRPC:
		e := rpcEvent(r.Data)
		if e.direction != api.FromPi || e.line.Get("type").Str != "tool_execution_end" {
			return
		}
		if d.tools == nil {
			d.tools = map[string]int{}
		}
		d.tools[e.line.Get("toolName").Str]++
		if e.line.Get("isError").Bool() {
			d.toolErrors++
		}
	}
}

func (d *demoFacts) usage(u *api.Usage) {
	d.samples++
	d.peakCPU = max(d.peakCPU, u.CPUPercent)
	d.peakMemory = max(d.peakMemory, u.Memory)
	d.memoryLimit = max(d.memoryLimit, u.MemoryLimit)
}

// separator stands between two files in what look reads; no line of them is like it.
const separator = "---"

// look reads from inside what the records don't hold: which kernel answers there, and
// what Pi's own process may do.
func (d *demoFacts) look(ctx context.Context, a *app, client *api.Client) error {
	var out, errOut bytes.Buffer
	inside := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, lookupEnv: a.lookupEnv}
	code, err := inside.execIn(ctx, client, api.ExecRequest{
		Argv: []string{"/bin/sh", "-c", "cat /proc/version; echo " + separator + "; cat /proc/1/status"},
	})
	if err != nil {
		return fmt.Errorf("look from inside: %w", err)
	}
	if code != 0 {
		return fmt.Errorf("look from inside: exit %d: %s", code, strings.TrimSpace(errOut.String()))
	}
	version, status, _ := strings.Cut(out.String(), separator+"\n")
	d.kernel = strings.TrimSpace(version)
	d.status = map[string]string{}
	for line := range strings.Lines(status) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			d.status[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	host, err := os.ReadFile("/proc/version")
	if err != nil {
		return fmt.Errorf("look at the host's kernel: %w", err)
	}
	d.hostKernel = strings.TrimSpace(string(host))
	return nil
}

// listFiles lists the regular files below dir. Nothing is followed: what is in there may
// have been made inside.
func listFiles(dir string) (map[string]fileFact, error) {
	files := map[string]fileFact{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fact := fileFact{path: path, size: info.Size()}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			fact.owner = st.Uid
		}
		files[path] = fact
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the workspace: %w", err)
	}
	return files, nil
}

// newFiles are those that weren't there before.
func newFiles(before, after map[string]fileFact) []fileFact {
	var made []fileFact
	for path, fact := range after {
		if _, ok := before[path]; !ok {
			made = append(made, fact)
		}
	}
	slices.SortFunc(made, func(a, b fileFact) int { return strings.Compare(a.path, b.path) })
	return made
}

// capabilitySets are Linux's five, as /proc/PID/status names them.
var capabilitySets = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}

// capabilities says what the sets hold.
func (d *demoFacts) capabilities() (text string, empty bool) {
	var held []string
	known := 0
	for _, set := range capabilitySets {
		v, ok := d.status[set]
		if !ok {
			continue
		}
		known++
		if strings.Trim(v, "0") != "" {
			held = append(held, set+" "+v)
		}
	}
	switch {
	case known < len(capabilitySets):
		return fmt.Sprintf("only %d of 5 sets could be read", known), false
	case len(held) > 0:
		return strings.Join(held, ", "), false
	}
	return "none: all five sets are empty", true
}

// report writes what was seen.
func (d *demoFacts) report(w io.Writer) error {
	if _, err := fmt.Fprintln(w, "\nWhat this session showed"); err != nil {
		return err
	}
	capabilities, _ := d.capabilities()
	differs := "not the host's, which is " + shorten(d.hostKernel, 60)
	if d.kernel == d.hostKernel {
		differs = "THE SAME AS THE HOST'S"
	}
	err := fields(w,
		[2]string{"  Kernel inside", d.kernel + " (" + differs + ")"},
		[2]string{"  Pi's user inside", firstNonEmpty(firstField(d.status["Uid"]), "unknown") + " (real uid of process 1)"},
		[2]string{"  Capabilities", capabilities},
		[2]string{"  No new privileges", map[string]string{"1": "set", "0": "NOT SET"}[d.status["NoNewPrivs"]]},
		[2]string{"  Tool calls", d.toolSummary()},
		[2]string{"  Ready after", readyAfter(d.session)},
		[2]string{"  Use", d.useSummary()},
	)
	if err != nil {
		return err
	}
	if err := section(w, "Files made, as the host sees them", d.fileLines()...); err != nil {
		return err
	}
	if err := section(w, "Connections and lookups refused", d.egressLines(d.refused)...); err != nil {
		return err
	}
	return section(w, "Connections allowed", d.egressLines(d.allowed)...)
}

func firstField(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}

func (d *demoFacts) toolSummary() string {
	var parts []string
	for name, n := range d.tools {
		parts = append(parts, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(parts)
	text := firstNonEmpty(strings.Join(parts, ", "), "none")
	if d.toolErrors > 0 {
		text += fmt.Sprintf("; %d ended with an error", d.toolErrors)
	}
	return text
}

func (d *demoFacts) useSummary() string {
	if d.session.Usage != nil {
		d.peakCPU = max(d.peakCPU, d.session.Usage.CPUPercent)
		d.peakMemory = max(d.peakMemory, d.session.Usage.Memory)
	}
	if d.samples == 0 && d.session.Usage == nil {
		return "not measured: the session was too short for a sample"
	}
	return fmt.Sprintf("CPU at most %s, memory at most %s (%d samples)", formatPercent(d.peakCPU), formatShare(d.peakMemory, d.memoryLimit), d.samples)
}

func (d *demoFacts) fileLines() []string {
	var lines []string
	for _, f := range d.made {
		lines = append(lines, fmt.Sprintf("%s, %s, owned by %s", f.path, formatBytes(f.size), ownerName(f.owner)))
	}
	return lines
}

func ownerName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username + " (" + id + ")"
	}
	return id
}

// egressLines has each destination once, with how often and why.
func (d *demoFacts) egressLines(events []api.EgressRecord) []string {
	var order []string
	counts := map[string]int64{}
	for _, e := range events {
		line := fmt.Sprintf("%s %s: %s [%s]", e.Kind, egressTarget(e), firstNonEmpty(e.Message, e.Reason.Message()), e.Reason)
		if counts[line] == 0 {
			order = append(order, line)
		}
		counts[line] += max(e.Count, 1)
	}
	for i, line := range order {
		if n := counts[line]; n > 1 {
			order[i] += fmt.Sprintf(", %d times", n)
		}
	}
	return order
}

// verdict is an error when something that a sandbox must hold was seen not to.
func (d *demoFacts) verdict() error {
	var failed []string
	if d.kernel == d.hostKernel {
		failed = append(failed, "the kernel inside is the host's")
	}
	if uid := firstField(d.status["Uid"]); uid == "0" || uid == "" {
		failed = append(failed, "Pi's user inside is root or unknown")
	}
	if _, empty := d.capabilities(); !empty {
		failed = append(failed, "Pi has capabilities inside")
	}
	if d.status["NoNewPrivs"] != "1" {
		failed = append(failed, "Pi may gain privileges inside")
	}
	if len(d.refused) == 0 {
		failed = append(failed, "no connection was refused, though the tour tries one")
	}
	if len(failed) == 0 {
		return nil
	}
	return errors.New("this sandbox is not as it must be: " + strings.Join(failed, "; "))
}
