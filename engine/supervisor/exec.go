package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"patio/engine/api"
	"patio/sandbox"
)

// Exec implements api.Controller: the client's descriptors become the program's, so its
// input and output don't pass through here.
func (s *Supervisor) Exec(ctx context.Context, r api.ExecRequest, conn *net.UnixConn) error {
	if err := s.ready(); err != nil {
		return err
	}
	if len(r.Argv) == 0 {
		return api.Errorf(api.CodeUsage, "", "exec needs a program to run")
	}
	files, err := receiveFiles(conn, 3)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if _, err := s.journal.Append(api.RecordExec, api.ExecRecord{Argv: r.Argv}); err != nil {
		s.fail(err)
		return err
	}
	p, err := s.box.Exec(ctx, sandbox.Exec{Argv: r.Argv, Env: r.Env, Cwd: r.Cwd, TTY: r.TTY, Files: files})
	if err != nil {
		return err
	}
	// The client's signals, and the end of the client.
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			var m api.ExecMessage
			if json.Unmarshal(lines.Bytes(), &m) == nil && m.Signal > 0 {
				_ = p.Signal(syscall.Signal(m.Signal))
			}
		}
		select {
		case <-p.Done():
		default:
			// A client that is gone can't see the program any more: it is hung up, as when a
			// terminal closes.
			_ = p.Signal(syscall.SIGHUP)
			if err := p.Kill(ctx); err != nil {
				s.log.Debug("kill the program of a client that is gone", "err", err)
			}
		}
	}()
	status, err := p.Wait(ctx)
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	if err == nil {
		err = json.NewEncoder(conn).Encode(api.ExecMessage{Exited: true, ExitCode: code})
	}
	// Only the reading ends: what went wrong is still to be told.
	_ = conn.SetReadDeadline(time.Now())
	<-watched
	if _, jerr := s.journal.Append(api.RecordExec, api.ExecRecord{Argv: r.Argv, Exited: true, ExitCode: code}); jerr != nil {
		s.log.Debug("record the end of a program", "err", jerr)
	}
	return err
}

// receiveFiles reads one message with exactly n descriptors beside it.
func receiveFiles(conn *net.UnixConn, n int) ([]*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4*n))
	var b [1]byte
	_, oobn, _, _, err := conn.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, fmt.Errorf("receive descriptors: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, fmt.Errorf("receive descriptors: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("receive descriptors: %w", err)
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "client"))
		}
	}
	if len(files) != n {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, errors.New("receive descriptors: the client sent the wrong number of them")
	}
	return files, nil
}

// processColumns are what ps prints; the command line is last, for it has spaces.
const processColumns = "pid=,ppid=,uid=,pcpu=,rss=,etimes=,args="

// Processes implements api.Observer. The image is read-only, so its ps can be believed.
func (s *Supervisor) Processes(ctx context.Context) ([]api.Process, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	out, err := s.box.Output(ctx, "/usr/bin/ps", "-e", "-ww", "-o", processColumns)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var ps []api.Process
	for line := range strings.Lines(string(out)) {
		p, ok := parseProcess(line)
		// ps itself isn't part of the session.
		if ok && !strings.HasSuffix(p.Command, processColumns) {
			ps = append(ps, p)
		}
	}
	return ps, nil
}

func parseProcess(line string) (api.Process, bool) {
	var p api.Process
	fields := strings.Fields(line)
	if len(fields) < 6 {
		return p, false
	}
	var err error
	number := func(s string) int64 {
		n, e := strconv.ParseInt(s, 10, 64)
		err = errors.Join(err, e)
		return n
	}
	p.PID, p.PPID, p.UID = int(number(fields[0])), int(number(fields[1])), int(number(fields[2]))
	cpu, e := strconv.ParseFloat(fields[3], 64)
	err = errors.Join(err, e)
	p.CPUPercent, p.RSS, p.Elapsed = cpu, number(fields[4])<<10, number(fields[5])
	rest := strings.TrimSpace(line)
	for range 6 {
		if i := strings.IndexAny(rest, " \t"); i >= 0 {
			rest = strings.TrimLeft(rest[i:], " \t")
		} else {
			rest = ""
		}
	}
	p.Command = strings.TrimSpace(rest)
	return p, err == nil
}
