package limits

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childEnv makes the test binary act as a process to be limited instead of running tests.
const childEnv = "PATIO_LIMITS_TEST_CHILD"

func TestMain(m *testing.M) {
	if action := os.Getenv(childEnv); action != "" {
		os.Exit(childMain(action))
	}
	goleak.VerifyTestMain(m)
}

// childMain waits for a line on stdin, by which time the process is in its cgroup, and then misbehaves.
func childMain(action string) int {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return 3
	}
	name, argument, _ := strings.Cut(action, " ")
	n, _ := strconv.Atoi(argument)
	switch name {
	case "wait":
		_, _ = in.ReadString('\n')
	case "allocate": // MiB, touched one by one
		var kept [][]byte
		for range n {
			chunk := make([]byte, mib)
			for i := 0; i < len(chunk); i += 4096 {
				chunk[i] = 1
			}
			kept = append(kept, chunk)
		}
		fmt.Println("allocated", len(kept))
	case "fork": // processes, until one fails
		started, refused := 0, 0
		for range n {
			cmd := exec.Command("/bin/sleep", "100")
			if err := cmd.Start(); err != nil {
				refused++
				break
			}
			started++
		}
		fmt.Println("forked", started, "refused", refused)
		_, _ = in.ReadString('\n')
	case "spin": // until the process has used so many milliseconds
		fmt.Println("spinning")
		for used(syscall.RUSAGE_SELF) < time.Duration(n)*time.Millisecond {
		}
		fmt.Println("spun")
	}
	return 0
}

func used(who int) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return time.Hour
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// child is a running process to be limited.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	done bool
}

func startChild(t *testing.T, action string) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+action, "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = 10 * time.Second
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		cancel()
		if !c.done {
			_ = cmd.Wait() // It was killed.
		}
	})
	return c
}

// goOn lets the child begin, or end its wait.
func (c *child) goOn(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(c.in, "\n")
	require.NoError(t, err)
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// wait returns how the child ended.
func (c *child) wait() syscall.WaitStatus {
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait() // The status tells more.
	c.done = true
	return c.cmd.ProcessState.Sys().(syscall.WaitStatus)
}
