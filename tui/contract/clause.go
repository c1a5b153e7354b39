package contract

import (
	"fmt"
	"strings"

	"patio/engine/api"
)

// clause is one part of what a sandbox has to keep.
type clause struct {
	id, title string
	promise   string
	// launch is what the session's own plan says about it, empty when it says nothing. It
	// is what was asked for and set up, not what was seen from inside.
	launch func(api.Session) string
}

// clauses are the contract, in its order.
var clauses = []clause{
	{"C1", "Identity", "Programs inside are an ordinary user, never root, without capabilities, in namespaces of their own; no runtime socket is visible.",
		func(s api.Session) string { return s.Plan.User }},
	{"C2", "Image", "Pi, Node and the tools are exactly the versions of the image's manifest, and the image's file is the one that its name says.",
		func(s api.Session) string {
			i := s.Plan.Image
			var parts []string
			for _, p := range [][2]string{{"Pi ", i.Pi}, {"Node ", i.Node}, {"sha256 ", i.Digest}} {
				if p[1] != "" {
					parts = append(parts, p[0]+p[1])
				}
			}
			return strings.Join(parts, " · ")
		}},
	{"C3", "Workspace", "The workspace is at its own path, read-write, and nothing that its links point to comes along.",
		func(s api.Session) string { return mount(s, s.Plan.Cwd) }},
	{"C4", "Agent state", "Pi's own directory is private to the session. Home directories, keys and the state of other programs are never mounted.",
		func(s api.Session) string { return mount(s, env(s, "PI_CODING_AGENT_DIR")) }},
	{"C5", "Sessions", "Pi's session files lie where the host sees them, at the same path in every launch.",
		func(s api.Session) string { return mount(s, env(s, "PI_CODING_AGENT_SESSION_DIR")) }},
	{"C6", "Credentials", "At most one provider's, never in arguments or logs, never a copy of a login.",
		func(s api.Session) string {
			n := 0
			for _, e := range s.Plan.Env {
				if e.Secret {
					n++
				}
			}
			if len(s.Plan.Env) == 0 {
				return ""
			}
			return count(n, "secret environment variable")
		}},
	{"C7", "Generated files", "What the launch makes is private to the session, and goes with it.",
		func(s api.Session) string {
			if len(s.Plan.Files) == 0 {
				return ""
			}
			return count(len(s.Plan.Files), "generated file") + ", in the Mounts tab"
		}},
	{"C8", "MCP", "MCP servers are reached by one private route, by exactly the path that was configured.", nil},
	{"C9", "Network", "The gateway's interface is the only one. Everything is denied that no rule allows, and each decision is recorded.",
		func(s api.Session) string {
			if s.Plan.Platform == "" {
				return ""
			}
			if len(s.Plan.Egress) == 0 {
				return "no rules: every host is denied; " + count(s.Denied, "attempt") + " denied so far"
			}
			return count(len(s.Plan.Egress), "rule") + "; " + count(s.Denied, "attempt") + " denied so far"
		}},
	{"C10", "Life cycle", "Every way to start a session makes the same launch, and its end leaves nothing behind.",
		func(s api.Session) string {
			if !s.Phase.Final() || s.End == nil {
				return ""
			}
			return "ended: " + s.End.Reason
		}},
	{"C11", "Limits", "Memory, CPU, tasks, files and disk are bounded. Each limit is read back; one that can't be kept here is said to be so.",
		func(s api.Session) string {
			e := s.Plan.Enforced
			if len(e) == 0 {
				return ""
			}
			kept := 0
			var not []string
			for _, l := range e {
				switch {
				case l.Enforced:
					kept++
				case l.Requested != "none" && l.Requested != "":
					not = append(not, l.Name)
				}
			}
			text := fmt.Sprintf("%d of %d limits are kept", kept, len(e))
			if len(not) > 0 {
				text += "; NOT kept: " + strings.Join(not, ", ")
			}
			return text
		}},
}

// count is a number of things, in words.
func count(n int, thing string) string {
	switch n {
	case 0:
		return "no " + thing + "s"
	case 1:
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// mount is how a path is mounted, empty when it isn't.
func mount(s api.Session, path string) string {
	for _, m := range s.Plan.Mounts {
		if path != "" && m.Destination == path {
			mode := "read-only"
			if string(m.Mode) == "rw" {
				mode = "read-write"
			}
			return m.Destination + ", " + mode + ": " + m.Reason
		}
	}
	return ""
}

// env is the value of an environment variable that isn't secret.
func env(s api.Session, name string) string {
	for _, e := range s.Plan.Env {
		if e.Name == name && !e.Secret {
			return e.Value
		}
	}
	return ""
}
