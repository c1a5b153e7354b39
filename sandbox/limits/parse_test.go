package limits

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	base := Limits{Memory: 1 * gib, Pids: 100, CPUs: 1}
	for setting, change := range map[string]func(*Limits){
		"memory=4G":           func(l *Limits) { l.Memory = 4 * gib },
		"memory=4g":           func(l *Limits) { l.Memory = 4 * gib },
		"memory=4GB":          func(l *Limits) { l.Memory = 4 * gib },
		"memory=4GiB":         func(l *Limits) { l.Memory = 4 * gib },
		"memory=4 GiB":        func(l *Limits) { l.Memory = 4 * gib },
		"memory=1.5G":         func(l *Limits) { l.Memory = 1536 * mib },
		"memory=536870912":    func(l *Limits) { l.Memory = 512 * mib },
		"memory=536870912b":   func(l *Limits) { l.Memory = 512 * mib },
		"memory=1T":           func(l *Limits) { l.Memory = 1024 * gib },
		"memory=none":         func(l *Limits) { l.Memory = 0 },
		"memory=0":            func(l *Limits) { l.Memory = 0 },
		" Memory = 4G ":       func(l *Limits) { l.Memory = 4 * gib },
		"headroom=256m":       func(l *Limits) { l.MemoryHeadroom = 256 * mib },
		"pids=2048":           func(l *Limits) { l.Pids = 2048 },
		"pids=none":           func(l *Limits) { l.Pids = 0 },
		"cpus=2":              func(l *Limits) { l.CPUs = 2 },
		"cpus=0.5":            func(l *Limits) { l.CPUs = 0.5 },
		"cpus=NONE":           func(l *Limits) { l.CPUs = 0 },
		"files=1024":          func(l *Limits) { l.OpenFiles = 1024 },
		"fsize=10G":           func(l *Limits) { l.FileSize = 10 << 30 },
		"tmp=512M":            func(l *Limits) { l.TmpSize = 512 * mib },
		"tmp-inodes=1000":     func(l *Limits) { l.TmpInodes = 1000 },
		"fsize=1048576":       func(l *Limits) { l.FileSize = 1 << 20 },
		"memory=134217728.0b": func(l *Limits) { l.Memory = 128 * mib },
	} {
		t.Run(setting, func(t *testing.T) {
			want := base
			change(&want)
			got, err := Parse(base, setting)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for setting, want := range map[string]string{
		"":                    "want key=value, such as memory=4G; the keys are memory, headroom, pids, cpus, files, fsize, tmp, tmp-inodes",
		"memory":              "want key=value",
		"memory=":             "want key=value",
		"ram=4G":              `unknown key "ram"; the keys are memory,`,
		"memory=4X":           "want a size such as 512M or 4G",
		"memory=4iB":          "want a size",
		"memory=G":            "want a size",
		"memory=-4G":          "want a size",
		"memory=4G4":          "want a size",
		"memory=1,000M":       "want a size",
		"memory=4":            "too small: want at least 128M, or none",
		"memory=3000P":        "too large",
		"memory=99999999999G": "want a size",
		"headroom=1M":         "at least 64M",
		"pids=1":              "at least 32",
		"pids=1.5":            "want a whole number",
		"pids=-1":             "want a whole number",
		"pids=1k":             "want a whole number",
		"cpus=-1":             "too small",
		"cpus=NaN":            "want a number of processors",
		"cpus=Inf":            "want a number of processors",
		"cpus=two":            "want a number of processors",
		"cpus=0.001":          "at least 0.05",
		"cpus=1e9":            "too large",
		"files=1":             "at least 64",
		"fsize=1":             "at least 1M",
		"tmp=1":               "at least 1M",
	} {
		t.Run(setting, func(t *testing.T) {
			base := Limits{Memory: 7 * gib}
			got, err := Parse(base, setting)
			require.ErrorContains(t, err, "parse limit ")
			require.ErrorContains(t, err, want)
			require.Equal(t, base, got)
		})
	}
}

func TestParseSeveral(t *testing.T) {
	got, err := Parse(Limits{}, "memory=1G", "pids=64", "memory=2G")
	require.NoError(t, err)
	require.Equal(t, Limits{Memory: 2 * gib, Pids: 64}, got)
	_, err = Parse(Limits{}, "memory=x", "pids=64", "cpus=y")
	require.ErrorContains(t, err, "memory=x")
	require.ErrorContains(t, err, "cpus=y")
}

func TestStringIsParsedBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int64 {
			return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(128*mib, 1<<45)).Draw(t, name)
		}
		want := Limits{
			Memory: size("memory"), MemoryHeadroom: size("headroom"), TmpSize: size("tmp"), FileSize: uint64(size("fsize")),
			Pids:      rapid.Int64Range(32, 1<<22).Draw(t, "pids"),
			CPUs:      rapid.Float64Range(0.05, 512).Draw(t, "cpus"),
			OpenFiles: rapid.Uint64Range(64, 1<<30).Draw(t, "files"),
			TmpInodes: rapid.Int64Range(16, 1<<30).Draw(t, "inodes"),
		}
		got, err := Parse(Limits{}, strings.Fields(want.String())...)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"memory=4G", "cpus=1e5", "tmp=1.5 GiB", "pids=", "=", "fsize=٣G"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, setting string) {
		got, err := Parse(Limits{}, setting)
		if err != nil {
			require.Equal(t, Limits{}, got)
			return
		}
		again, err := Parse(Limits{}, strings.Fields(got.String())...)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func TestLimitsAsJSON(t *testing.T) {
	data, err := json.Marshal(Default(16*gib, 8))
	require.NoError(t, err)
	require.JSONEq(t, `{"memory":4294967296,"memoryHeadroom":536870912,"pids":1024,"cpus":7,"openFiles":4096,
		"fileSize":4294967296,"tmpSize":1073741824,"tmpInodes":262144}`, string(data))
	var back Limits
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, Default(16*gib, 8), back)
}
