package namespace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The supervisor and the init process talk over a SOCK_SEQPACKET pair: one JSON
// message a packet, file descriptors beside it.

// maxMessage bounds one message. Linux's default socket buffer (net.core.wmem_default)
// is 208 KiB; an argv with its environment stays far below it.
const maxMessage = 192 << 10

// maxFDs bounds the descriptors of one message.
const maxFDs = 16

type message struct {
	Op     string   `json:"op"`
	ID     uint64   `json:"id,omitempty"`
	Argv   []string `json:"argv,omitempty"`
	Env    []string `json:"env,omitempty"`
	Dir    string   `json:"dir,omitempty"`
	TTY    bool     `json:"tty,omitempty"`
	PID    int      `json:"pid,omitempty"`
	Signal int      `json:"signal,omitempty"`
	Status int      `json:"status,omitempty"` // a wait status as wait4(2) gives it
	Err    string   `json:"err,omitempty"`
	TAP    string   `json:"tap,omitempty"`
	HasTAP bool     `json:"has_tap,omitempty"`
}

const (
	opSetup  = "setup"  // to init: ids are mapped, set the namespaces up
	opReady  = "ready"  // from init: done, the TAP's descriptor beside it unless it came with setup
	opStart  = "start"  // to init: start a program with the descriptors beside it as 0, 1, 2, …
	opAdopt  = "adopt"  // to init: report the exit of a process that some child left behind
	opExited = "exited" // from init
	opSignal = "signal" // to init
)

func send(c *net.UnixConn, m message, files ...*os.File) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("argv and environment are too long: %d bytes, at most %d", len(b), maxMessage)
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	_, _, err = c.WriteMsgUnix(b, oob, nil)
	// The kernel reads the descriptors out of f during the call: keep them open until here.
	for _, f := range files {
		_ = f.Name()
	}
	return err
}

// receive returns io.EOF when the other end has closed.
func receive(c *net.UnixConn) (message, []*os.File, error) {
	buf := make([]byte, maxMessage)
	oob := make([]byte, unix.CmsgSpace(maxFDs*4))
	n, oobn, flags, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		if errors.Is(err, syscall.ECONNRESET) {
			err = io.EOF
		}
		return message{}, nil, err
	}
	files, err := parseFiles(oob[:oobn])
	if err != nil {
		return message{}, nil, err
	}
	if n == 0 && oobn == 0 {
		return message{}, nil, io.EOF
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeAll(files)
		return message{}, nil, errors.New("message from the namespace's other end was cut off")
	}
	var m message
	if err := json.Unmarshal(buf[:n], &m); err != nil {
		closeAll(files)
		return message{}, nil, fmt.Errorf("decode message: %w", err)
	}
	return m, files, nil
}

func parseFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			closeAll(files)
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
