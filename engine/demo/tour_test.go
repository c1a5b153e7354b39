package demo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine answers the tools as Pi does, on a directory that holds only names and texts.
type machine struct {
	files  map[string]string
	bash   map[string]string
	write  string // result of write in place of success
	called []string
}

func (m *machine) do(t *testing.T, tool, args string) string {
	t.Helper()
	var a struct {
		Command, Path, Content string
		Edits                  []struct{ OldText, NewText string }
	}
	d := json.NewDecoder(strings.NewReader(args))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&a))
	m.called = append(m.called, tool+" "+a.Command+a.Path)
	switch tool {
	case toolBash:
		out, ok := m.bash[a.Command]
		require.True(t, ok, a.Command)
		return out
	case toolWrite:
		if m.write != "" {
			return m.write
		}
		require.NotContains(t, m.files, a.Path, "a file that exists must not be overwritten")
		m.files[a.Path] = a.Content
		return "Successfully wrote 9 bytes to " + a.Path
	case toolEdit:
		require.Len(t, a.Edits, 1)
		require.Equal(t, 1, strings.Count(m.files[a.Path], a.Edits[0].OldText))
		m.files[a.Path] = strings.Replace(m.files[a.Path], a.Edits[0].OldText, a.Edits[0].NewText, 1)
		return "Successfully replaced 1 block(s) in " + a.Path + "."
	case toolRead:
		require.Contains(t, m.files, a.Path)
		return m.files[a.Path]
	}
	require.Fail(t, "no tool "+tool)
	return ""
}

func newMachine() *machine {
	return &machine{files: map[string]string{}, bash: map[string]string{
		lookCommand:  ".git\nREADME.md\n",
		gitCommand:   "## main\n?? x\n",
		whoCommand:   "Linux box 4.4.0-gvisor #1 SMP x86_64 GNU/Linux\nuid=1000(pi) gid=1000(pi) groups=1000(pi)\n",
		reachCommand: "curl: (6) Could not resolve host: example.com\n\n\nCommand exited with code 6",
	}}
}

// run takes a tour to its end and gives the report.
func (m *machine) run(t *testing.T, c *chat) string {
	t.Helper()
	for range 20 {
		a := c.get(t)
		if a.tool == "" {
			return a.text
		}
		require.Contains(t, c.tools, a.tool)
		require.NotEmpty(t, a.text)
		c.called(a.callID, a.tool, a.args, m.do(t, a.tool, a.args))
	}
	require.Fail(t, "the tour doesn't end")
	return ""
}

func TestTour(t *testing.T) {
	m := newMachine()
	c := ask(modelTour, "Show me around")
	require.Contains(t, c.get(t).thought, "I am a script")
	report := m.run(t, c)
	require.Equal(t, []string{
		"bash " + lookCommand, "bash " + gitCommand, "bash " + whoCommand,
		"write patio-tour.md", "edit patio-tour.md", "read patio-tour.md", "bash " + reachCommand,
	}, m.called)
	require.Equal(t, `# patio tour

Written by patio's scripted demo model (no AI) with Pi's write tool.

- kernel: Linux box 4.4.0-gvisor #1 SMP x86_64 GNU/Linux
- user: uid=1000(pi) gid=1000(pi) groups=1000(pi)
- state: written, then edited
`, m.files["patio-tour.md"])
	require.Equal(t, "## What happened\n\n"+
		"I am patio's scripted demo model: no AI. Everything below is taken from the tool results of this session.\n\n"+
		"- **Directory**: 2 entries: `.git`, `README.md`\n"+
		"- **Git**:\n\n  ```text\n  ## main\n  ?? x\n  ```\n\n"+
		"- **Kernel and user**: `Linux box 4.4.0-gvisor #1 SMP x86_64 GNU/Linux`, `uid=1000(pi) gid=1000(pi) groups=1000(pi)` (the kernel names itself gVisor's)\n"+
		"- **File written**: `Successfully wrote 9 bytes to patio-tour.md`\n"+
		"- **File edited**: `Successfully replaced 1 block(s) in patio-tour.md.`\n"+
		"- **File read**: 7 lines, with the edit in it: `- state: written, then edited`\n"+
		"- **Network**: `curl -sS -m 5 https://example.com`: not reached:\n\n  ```text\n  curl: (6) Could not resolve host: example.com\n  Command exited with code 6\n  ```\n\n"+
		"\nThe file is `patio-tour.md`, in the directory you started me in.\n", report)

	// A second tour in the same session takes another file.
	m.bash[lookCommand] = ".git\nREADME.md\npatio-tour.md\npatio-tour.md\n"
	require.Contains(t, m.run(t, c.add("assistant", report).add("user", "again")), "The file is `patio-tour-2.md`")
}

func TestTourReportsWhatItSaw(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machine)
		want   []string
		not    []string
	}{
		"the network is open": {
			func(m *machine) { m.bash[reachCommand] = "<html>" }, []string{"**it was reached**, 6 bytes"}, []string{"not reached"},
		},
		"the gateway refuses": {
			func(m *machine) { m.bash[reachCommand] = "curl: (7) refused by policy\n\nCommand exited with code 7" }, []string{"refused by policy"}, nil,
		},
		"no curl": {
			func(m *machine) {
				m.bash[reachCommand] = "bash: curl: command not found\n\n\nCommand exited with code 127"
			}, []string{"curl is not there"}, []string{"not reached"},
		},
		"no answer": {
			func(m *machine) { m.bash[reachCommand] = "Command timed out after 5 seconds" }, []string{"no answer"}, []string{"it was reached"},
		},
		"another kernel and user": {
			func(m *machine) { m.bash[whoCommand] = "Linux host 6.1\nuid=0(root) gid=0\n" }, []string{"`Linux host 6.1`, `uid=0(root) gid=0`"}, []string{"gVisor"},
		},
		"no uname": {
			func(m *machine) { m.bash[whoCommand] = "bash: uname: command not found\n" }, []string{"`bash: uname: command not found`"}, nil,
		},
		"not a repository": {
			func(m *machine) {
				m.bash[gitCommand] = "fatal: not a git repository\n\n\nCommand exited with code 128"
			}, []string{"fatal: not a git repository"}, nil,
		},
		"empty directory": {
			func(m *machine) { m.bash[lookCommand] = "(no output)" }, []string{"**Directory**: empty", "`patio-tour.md`"}, nil,
		},
		"many files": {
			func(m *machine) { m.bash[lookCommand] = strings.Repeat("a\n", 3) + "b\nc\nd\ne\nf\ng\nh\ni\nj`k\n" }, []string{"10 entries", "and 2 more"}, nil,
		},
		"tours before": {
			func(m *machine) {
				m.files["patio-tour.md"], m.files["patio-tour-2.md"] = "mine", "mine"
				m.bash[lookCommand] = "patio-tour-2.md\npatio-tour.md\n"
			}, []string{"The file is `patio-tour-3.md`"}, nil,
		},
		"ls fails": {
			func(m *machine) {
				m.bash[lookCommand] = "ls: cannot open directory '.': Permission denied\n\n\nCommand exited with code 2"
			}, []string{"Permission denied", "The file is `patio-tour-"}, []string{"`patio-tour.md`"},
		},
		"the disk is full": {
			func(m *machine) { m.write = "ENOSPC: no space left on device, write" }, []string{"ENOSPC", "**File edited**: skipped: there is no file, for writing it failed"}, []string{"The file is"},
		},
		"long and hostile output": {
			func(m *machine) { m.bash[gitCommand] = "```\n" + strings.Repeat("# x\n", 2000) }, []string{"````text", "…"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			c.change(m)
			report := m.run(t, ask(modelTour, "go"))
			for _, want := range c.want {
				require.Contains(t, report, want)
			}
			for _, not := range c.not {
				require.NotContains(t, report, not)
			}
			require.Less(t, len(report), 5000)
			for name, content := range m.files {
				if strings.HasPrefix(name, "patio-tour") && content != "mine" {
					require.Contains(t, content, stateEdited)
				}
			}
		})
	}
}

func TestTourCallsOnlyOfferedTools(t *testing.T) {
	for name, c := range map[string]struct {
		tools  []string
		called int
		want   []string
	}{
		"none":       {nil, 0, []string{"no tool is offered", "**Network**: skipped", "**File read**: skipped: patio demo: no tool"}},
		"read only":  {[]string{toolRead}, 0, []string{"**File read**: skipped: there is no file", "the tool bash is not offered"}},
		"no edit":    {[]string{toolRead, toolBash, toolWrite}, 6, []string{"the tool edit is not offered", "the edit is not in it"}},
		"no bash":    {[]string{toolRead, toolEdit, toolWrite}, 3, []string{"the tool bash is not offered", "The file is `patio-tour-"}},
		"only write": {[]string{toolWrite}, 1, []string{"The file is `patio-tour-"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			chat := ask(modelTour, "go")
			chat.tools = c.tools
			report := m.run(t, chat)
			require.Len(t, m.called, c.called)
			for _, want := range c.want {
				require.Contains(t, report, want)
			}
		})
	}
}
