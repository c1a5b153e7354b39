package supervisor

import (
	"bytes"
	"fmt"
	"os"
)

const (
	// ReserveFile is in a session's directory while it lives.
	ReserveFile = "reserve"
	// reserveSize is room for a session's last snapshot and its last journal record.
	reserveSize = 64 << 10
)

// reserve is disk space kept so that a session that ends because the disk is full can
// still say so.
type reserve struct{ path string }

func (r *reserve) take(path string) error {
	// Not zeros: some file systems store those as nothing.
	if err := os.WriteFile(path, bytes.Repeat([]byte{0xff}, reserveSize), 0o600); err != nil {
		return fmt.Errorf("reserve disk space: %w", err)
	}
	r.path = path
	return nil
}

// release gives the space back. Without it the end is still written if there is room.
func (r *reserve) release() {
	if r.path != "" {
		_ = os.Remove(r.path)
	}
}
