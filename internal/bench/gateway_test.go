package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goTestOutput = `goos: linux
goarch: amd64
pkg: patio/sandbox/network
BenchmarkThroughput/loopback/download-2         	     276	   7700000 ns/op	1090.00 MB/s
BenchmarkThroughput/gateway/download/mtu1500-2  	      16	 137500000 ns/op	  61.00 MB/s
BenchmarkThroughput/gateway/download/mtu65520-2 	      86	  25000000 ns/op	 335.50 MB/s
BenchmarkThroughput/loopback/upload             	     210	   9700000 ns/op	 864.00 MB/s
BenchmarkOther/loopback/upload-2                	     210	   9700000 ns/op	   1.00 MB/s
PASS
ok  	patio/sandbox/network	17.0s
`

func TestReadSpeeds(t *testing.T) {
	speeds, err := readSpeeds(strings.NewReader(goTestOutput))
	require.NoError(t, err)
	require.Equal(t, map[string]float64{
		"loopback/download": 1090, "gateway/download/mtu1500": 61, "gateway/download/mtu65520": 335.5, "loopback/upload": 864,
	}, speeds)
	_, err = readSpeeds(strings.NewReader("BenchmarkThroughput/loopback/upload-2 210 x MB/s\n"))
	require.ErrorContains(t, err, "x MB/s")
}

func TestCompareThroughput(t *testing.T) {
	speeds, err := readSpeeds(strings.NewReader(goTestOutput))
	require.NoError(t, err)
	figures := compareThroughput(speeds)
	require.Len(t, figures, 2, "no figure without both sides")
	require.Equal(t, "gateway, one stream, download, MTU 65520: 336 MB/s, 0.308 times loopback (1090 MB/s)", figures[0].String())
	require.Empty(t, compareThroughput(map[string]float64{"gateway/upload/mtu1500": 1}))
}
