package mounts

import (
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"patio/engine/api"
)

// tone is what a mode means, for its colour; the word says it too.
type tone int

const (
	neutral tone = iota
	open         // may change something of the host, or reach it
	closed
	missing
)

// item is one line of a section, with what the details say.
type item struct {
	name, mode, why string
	tone            tone
	copies          string // what y copies
	facts           []fact
	note            string // our own words
}

// fact is a name and a foreign text.
type fact struct{ name, text string }

// section is a heading with its items.
type section struct {
	title string
	items []item
	empty string // what it means that there are none
	note  string // what the section is, for the details of its heading
}

// sections are a plan in the order in which one asks: what of mine is inside, what may it
// reach, what bounds it, how is it made.
func sections(s api.Session) []section {
	p := s.Plan
	return []section{mountsOf(p), leftOut(p), files(p), rules(p), limits(p), environment(p), launch(p)}
}

func mountsOf(p api.Plan) section {
	sec := section{
		title: "Mounts", empty: "nothing of this machine",
		note: "Directories and files of this machine that programs inside see. What isn't listed here, or in the image, isn't there. They keep their paths, so what a session writes down stays true outside.",
	}
	for _, m := range p.Mounts {
		it := item{name: m.Destination, why: m.Reason, copies: m.Source, mode: "read-only", tone: closed,
			facts: []fact{{"inside", m.Destination}, {"outside", m.Source}, {"why", m.Reason}},
			note:  "Programs inside can read what is here, and change nothing."}
		if string(m.Mode) == "rw" {
			it.mode, it.tone = "read-write", open
			it.note = "Programs inside can change and delete what is here, and it is the same file outside."
		}
		if m.Source != m.Destination {
			it.name = m.Destination + " ← " + m.Source
		}
		it.facts = append(it.facts, fact{"mode", it.mode})
		sec.items = append(sec.items, it)
	}
	return sec
}

func leftOut(p api.Plan) section {
	sec := section{
		title: "Left out", empty: "nothing that a session would miss",
		note: "What a session might look for and doesn't find, with the reason.",
	}
	for _, l := range p.LeftOut {
		sec.items = append(sec.items, item{name: l.Path, mode: "not inside", tone: missing, why: l.Reason, copies: l.Path,
			facts: []fact{{"path", l.Path}, {"why", l.Reason}}, note: "Programs inside see nothing at this path."})
	}
	return sec
}

func files(p api.Plan) section {
	sec := section{
		title: "Generated files", empty: "none",
		note: "Files that patio writes for this session alone. Their contents aren't kept in the plan.",
	}
	for _, f := range p.Files {
		sec.items = append(sec.items, item{name: f.Path, mode: "made", why: f.Reason, copies: f.Path,
			facts: []fact{{"path", f.Path}, {"why", f.Reason}}, note: "Patio made this file when the session started."})
	}
	return sec
}

func rules(p api.Plan) section {
	sec := section{
		title: "Network rules", empty: "none: no host can be reached but patio's own services",
		note: "What programs inside may reach. All else is denied, and the Egress tab shows each decision.",
	}
	for _, r := range p.Egress {
		it := item{name: r.String(), mode: string(r.Action), why: "set by " + or(r.Source, "an unknown source"), copies: r.String(), tone: open,
			facts: []fact{{"host", r.Host}, {"port", portOf(r.Port)}, {"action", string(r.Action)}, {"set by", r.Source}}}
		it.note = "Connections to exactly this host and port leave the sandbox. That TLS and HTTP are meant for this host is checked on each."
		if it.mode == "deny" {
			it.tone, it.note = closed, "Nothing reaches this host, whatever another rule allows."
		}
		if strings.HasPrefix(r.Host, "*.") && it.mode != "deny" {
			it.note = "Connections to every name below this suffix leave the sandbox, to the suffix itself not."
		}
		if r.Private {
			it.why += ", may be a private address"
			it.facts = append(it.facts, fact{"private", "the name may lead into a private network"})
		}
		if !r.Since.IsZero() {
			it.facts = append(it.facts, fact{"since", r.Since.UTC().Format("2006-01-02 15:04:05 UTC")})
		}
		sec.items = append(sec.items, it)
	}
	return sec
}

func portOf(p uint16) string {
	if p == 0 {
		return "any"
	}
	return strconv.Itoa(int(p))
}

func limits(p api.Plan) section {
	sec := section{
		title: "Limits", empty: "which are kept isn't known yet",
		note: "What the session may use at most. The Resources tab draws what it uses against them.",
	}
	for _, e := range p.Enforced {
		it := item{name: e.Name, mode: e.Requested, why: "kept by " + e.By, tone: closed, copies: e.Name + "=" + e.Requested,
			facts: []fact{{"asked for", e.Requested}, {"in effect", known(e.Effective)}, {"kept by", e.By}, {"note", e.Why}},
			note:  "This limit is kept."}
		switch {
		case !e.Enforced && (e.Requested == "none" || e.Requested == ""):
			it.why, it.tone, it.note = "no limit was asked for", neutral, "No limit was asked for."
		case !e.Enforced:
			it.why, it.tone, it.note = "✗ NOT KEPT: "+e.Why, missing, "This limit was asked for and nothing keeps it: patio doctor tells what is missing on this machine."
		}
		sec.items = append(sec.items, it)
	}
	if len(sec.items) == 0 {
		for _, l := range asked(p) {
			sec.items = append(sec.items, item{name: l.name, mode: l.text, why: "asked for; whether it is kept isn't known yet", copies: l.name + "=" + l.text, facts: []fact{{"asked for", l.text}}})
		}
	}
	return sec
}

// known is a value that could be read back.
func known(v string) string {
	if v == "unknown" {
		return "can't be read from outside"
	}
	return v
}

// asked are the limits of a plan whose session hasn't started.
func asked(p api.Plan) []fact {
	l := p.Limits
	var out []fact
	add := func(name string, set bool, text string) {
		if set {
			out = append(out, fact{name, text})
		}
	}
	bytes := func(n uint64) string { return humanize.IBytes(n) }
	add("memory", l.Memory > 0, bytes(uint64(max(l.Memory, 0))))
	add("headroom", l.MemoryHeadroom > 0, bytes(uint64(max(l.MemoryHeadroom, 0))))
	add("cpus", l.CPUs > 0, strconv.FormatFloat(l.CPUs, 'g', 4, 64))
	add("pids", l.Pids > 0, strconv.FormatInt(l.Pids, 10))
	add("files", l.OpenFiles > 0, strconv.FormatUint(l.OpenFiles, 10))
	add("fsize", l.FileSize > 0, bytes(l.FileSize))
	add("tmp", l.TmpSize > 0, bytes(uint64(max(l.TmpSize, 0))))
	add("tmp-inodes", l.TmpInodes > 0, strconv.FormatInt(l.TmpInodes, 10))
	return out
}

func environment(p api.Plan) section {
	sec := section{
		title: "Environment", empty: "none",
		note: "The variables that Pi starts with. None of your shell's own come along. The values of secret ones aren't kept in the plan.",
	}
	for _, e := range p.Env {
		it := item{name: e.Name, why: e.Reason, copies: e.Name, facts: []fact{{"name", e.Name}, {"value", e.Value}, {"why", e.Reason}}}
		if e.Secret {
			it.mode, it.tone = "secret", open
			it.facts[1].text = ""
			it.note = "Its value is a secret: it is inside, and shown nowhere."
		}
		sec.items = append(sec.items, it)
	}
	return sec
}

func launch(p api.Plan) section {
	sec := section{title: "Image and launch", note: "What is started, in which image, as whom."}
	add := func(name, text, why, note string) {
		if text != "" {
			sec.items = append(sec.items, item{name: name + ": " + text, why: why, copies: text, facts: []fact{{name, text}}, note: note})
		}
	}
	add("Pi", p.Image.Pi, "the agent", "The version of Pi that the image holds.")
	add("Node", p.Image.Node, "what Pi runs on", "The version of Node that the image holds.")
	add("image", p.Image.Digest, "the programs inside, read-only", "The SHA-256 digest of the image's file.")
	add("file", p.Image.Path, "where the image is", "The image on this machine. It can't be changed from inside.")
	add("command", strings.Join(p.Argv, " "), "what is started", "The command line of the session's first process.")
	add("directory", p.Cwd, "where it starts", "The working directory inside.")
	add("user", p.User, "", "Who the programs are, inside and outside.")
	add("platform", p.Platform, "how gVisor catches system calls", "gVisor's platform.")
	for _, n := range p.Notes {
		add("note", n, "", "A note of the planner's.")
	}
	sec.empty = "nothing is known yet"
	return sec
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}
