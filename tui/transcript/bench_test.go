package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"patio/engine/api"
	"patio/engine/journal"
	"patio/tui/panetest"
)

// slow reports the times that took longest.
func slow(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "max-ms")
}

func BenchmarkLoad(b *testing.B) {
	r := numbered(b, 5000).records
	b.ReportAllocs()
	for b.Loop() {
		made(b, "patio-dark", 160, 46, r).View()
	}
}

func benchmarkStream(b *testing.B, source string) {
	for b.Loop() {
		b.StopTimer()
		tr := made(b, "patio-dark", 160, 46, numbered(b, 5000).records)
		tr.View()
		var deltas []journal.Record
		for k := range 10_000 {
			at := k * 50 % (len(source) - 50)
			line, _ := json.Marshal(object{"direction": "from_pi", "line": object{"type": "message_update", "assistantMessageEvent": object{"type": "text_delta", "contentIndex": 0, "delta": source[at : at+50]}}})
			deltas = append(deltas, journal.Record{Seq: uint64(k), Time: began, Type: api.RecordRPC, Data: line})
		}
		var times []time.Duration
		b.StartTimer()
		for k := range deltas {
			from := time.Now()
			tr.Apply(deltas[k : k+1])
			tr.View()
			times = append(times, time.Since(from))
		}
		b.StopTimer()
		slow(b, times)
		b.StartTimer()
	}
}

func BenchmarkStream(b *testing.B) {
	for name, source := range map[string]string{
		"prose": strings.Repeat("The quick **brown** fox jumps over the `lazy` dog and goes on. ", 9) + "\n\n",
		"mixed": prose,
		"list":  strings.Repeat("- an item with `code` in it\n", 100),
		"code":  "```go\n" + strings.Repeat("func f(a int, b string) error {\n\treturn fmt.Errorf(\"x: %w\", err) // comment\n}\n", 4000),
		"table": "| a | b |\n|---|---|\n" + strings.Repeat("| some cell | other cell |\n", 4000),
		"line":  strings.Repeat("word ", 40_000),
	} {
		b.Run(name, func(b *testing.B) { benchmarkStream(b, strings.Repeat(source, max(1, 100_000/len(source)))) })
	}
}

func BenchmarkScroll(b *testing.B) {
	p := &tape{t: b}
	for k := range 2000 {
		p.user(fmt.Sprint("question ", k)).run(fmt.Sprint(k), "bash", object{"command": "ls"}, strings.Repeat("a line\n", 40), false).answer("stop", text(prose))
	}
	tr := made(b, "patio-dark", 160, 46, p.records)
	tr.View()
	for b.Loop() {
		var times []time.Duration
		for k := range 4000 {
			from := time.Now()
			if k%2000 < 1000 {
				panetest.Press(tr, "up")
			} else {
				panetest.Press(tr, "pgup")
			}
			tr.View()
			times = append(times, time.Since(from))
		}
		panetest.Press(tr, "G")
		slow(b, times)
	}
}
