package chat

import (
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"patio/tui/safe"
)

// maxTree bounds the rows of a conversation: the newest are kept.
const maxTree = 5000

// maxIndent bounds how deep branches are drawn.
const maxIndent = 12

// node is an entry of Pi's session file that a person would know: a message or a summary.
type node struct {
	id, role, text string
	time           time.Time
	parent         int // -1 for none
	children       []int
	on             bool // on the way to the leaf
}

// tree is a conversation with its branches, as get_entries has it. That is a flat list:
// get_tree nests as deep as the conversation is long.
type tree struct {
	nodes []node
	leaf  int // -1 for none
}

// way is how the conversation can go on from an entry. Pi's RPC forks before a message of
// the user's, or copies all up to the leaf; nothing else.
type way struct {
	fork  string
	again bool // the message's text is to be edited
	clone bool
}

func readTree(data gjson.Result) tree {
	t := tree{leaf: -1}
	known := map[string]int{} // to each entry the node that it is, or that is above it
	data.Get("entries").ForEach(func(_, e gjson.Result) bool {
		id := e.Get("id").Str
		parent, ok := known[e.Get("parentId").Str]
		if !ok {
			parent = -1
		}
		role, text := roleOf(e)
		if role == "" {
			known[id] = parent
			return true
		}
		when, _ := time.Parse(time.RFC3339, e.Get("timestamp").Str)
		t.nodes = append(t.nodes, node{id: id, role: role, text: text, time: when, parent: parent})
		n := len(t.nodes) - 1
		known[id] = n
		if parent >= 0 {
			t.nodes[parent].children = append(t.nodes[parent].children, n)
		}
		return true
	})
	if leaf, ok := known[data.Get("leafId").Str]; ok {
		t.leaf = leaf
	}
	for n := t.leaf; n >= 0 && !t.nodes[n].on; n = t.nodes[n].parent {
		t.nodes[n].on = true
	}
	return t
}

// roleOf says whose an entry is, and its text; nobody's for what isn't shown.
func roleOf(e gjson.Result) (role, text string) {
	switch e.Get("type").Str {
	case "compaction":
		return "summary", e.Get("summary").Str
	case "branch_summary":
		return "branch", e.Get("summary").Str
	case "message":
	default:
		return "", ""
	}
	m := e.Get("message")
	role = m.Get("role").Str
	if role != "user" && role != "assistant" {
		return "", ""
	}
	content := m.Get("content")
	if content.Type == gjson.String {
		return role, content.Str
	}
	tools := ""
	content.ForEach(func(_, b gjson.Result) bool {
		switch b.Get("type").Str {
		case "text":
			text = b.Get("text").Str
		case "toolCall":
			if tools != "" {
				tools += ", "
			}
			tools += safe.Fit(b.Get("name").Str, 40)
		case "image":
			tools = "an image"
		}
		return strings.TrimSpace(text) == "" && len(tools) < maxLabel
	})
	if strings.TrimSpace(text) == "" {
		text = tools
		if role == "assistant" && tools != "" {
			text = "uses " + tools
		}
	}
	return role, text
}

// items are the rows, oldest first, branches indented under where they part.
func (t tree) items(now time.Time) ([]item, map[string]way) {
	type visit struct {
		node, indent int
		prefix       string
	}
	var stack []visit
	push := func(nodes []int, indent int, above string) {
		for i, n := range slices.Backward(nodes) {
			v := visit{node: n, indent: indent, prefix: above}
			if len(nodes) > 1 && indent < maxIndent {
				v.indent++
				v.prefix = above + "├─ "
				if i == len(nodes)-1 {
					v.prefix = above + "└─ "
				}
			}
			stack = append(stack, v)
		}
	}
	var roots []int
	for n := range t.nodes {
		if t.nodes[n].parent < 0 {
			roots = append(roots, n)
		}
	}
	push(roots, 0, "")
	var order []visit
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		order = append(order, v)
		push(t.nodes[v.node].children, v.indent, strings.NewReplacer("├─", "│ ", "└─", "  ").Replace(v.prefix))
	}
	var items []item
	if n := len(order) - maxTree; n > 0 {
		items = append(items, item{label: thousand(n) + " older ones are left out", muted: true, off: "it isn't shown"})
		order = order[n:]
	}
	ways := make(map[string]way, len(order))
	for _, v := range order {
		n := t.nodes[v.node]
		it := t.item(n, v.node, v.prefix, now)
		if w := t.way(v.node); w != (way{}) {
			ways[n.id] = w
		} else {
			it.off = "Pi can go on from before a message of yours, or from the end; this is neither"
		}
		items = append(items, it)
	}
	return items, ways
}

func (t tree) item(n node, index int, prefix string, now time.Time) item {
	who := map[string]string{"user": "you: ", "assistant": "Pi: ", "summary": "summary: ", "branch": "left branch: "}[n.role]
	it := item{id: n.id, prefix: prefix, label: safe.Fit(who+firstLine(n.text), maxLabel), muted: !n.on, current: index == t.leaf}
	if !n.time.IsZero() {
		layout := "15:04"
		if local := n.time.In(now.Location()); local.YearDay() != now.YearDay() || local.Year() != now.Year() {
			layout = "2 Jan 15:04"
		}
		it.detail = n.time.In(now.Location()).Format(layout)
	}
	if it.current {
		it.detail = "you are here  " + it.detail
	}
	return it
}

// way finds how to go on from an entry: a message of the user's is said again, and behind
// another entry it goes on where the user spoke next.
func (t tree) way(index int) way {
	n := t.nodes[index]
	if n.role == "user" {
		return way{fork: n.id, again: true}
	}
	if index == t.leaf {
		return way{clone: true}
	}
	for _, child := range n.children {
		if t.nodes[child].role == "user" {
			return way{fork: t.nodes[child].id}
		}
	}
	return way{}
}
