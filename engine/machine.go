package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"patio/engine/api"
	"patio/sandbox/image"
	"patio/sandbox/namespace"
	"patio/sandbox/runsc"
)

// tunDevice is what the sandbox's network device is made with.
const tunDevice = "/dev/net/tun"

// checkMachine refuses a launch that this machine can't make, before anything is made.
func checkMachine() error {
	if _, _, err := namespace.Subordinate(os.Geteuid()); err != nil {
		if errors.Is(err, namespace.ErrNoIDMapper) {
			return api.Errorf(api.CodeMissing, "", "%w", err)
		}
		return api.Errorf(api.CodeUnsupported, "`patio doctor` checks the whole machine", "%w", err)
	}
	f, err := os.OpenFile(tunDevice, os.O_RDWR, 0)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrPermission):
		return api.Errorf(api.CodeUnsupported, "as root, run: chmod 666 "+tunDevice+" (udev's default on most systems)", "%s isn't open to you: %w", tunDevice, err)
	case errors.Is(err, fs.ErrNotExist):
		return api.Errorf(api.CodeUnsupported, "as root, run: modprobe tun", "%s is missing: %w", tunDevice, err)
	default:
		return api.Errorf(api.CodeUnsupported, "as root, run: modprobe tun", "%s can't be used: %w", tunDevice, err)
	}
}

// kvmTimeout bounds the probe of the platform kvm: it hangs on some machines that have
// /dev/kvm.
const kvmTimeout = 10 * time.Second

// probePlatform fails when gVisor can't run on a platform here. The default needs no
// probe: a start that fails on it says why.
func (e *Engine) probePlatform(ctx context.Context, img image.Image, platform string) error {
	if platform != runsc.KVM {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kvmTimeout)
	defer cancel()
	out, err := e.runInImage(ctx, img, platform, []string{"/usr/bin/uname", "-s"})
	if err == nil && string(out) == "Linux\n" {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("a program printed %q", out)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v", kvmTimeout)
	}
	return api.Errorf(api.CodeUnsupported, "leave --platform out: systrap works everywhere", "gVisor's platform kvm doesn't work on this machine: %w", err)
}

// stamp tells an image file from a changed one without reading it.
type stamp struct {
	Size   int64  `json:"size"`
	Mtime  int64  `json:"mtime"`
	Ctime  int64  `json:"ctime"`
	Inode  uint64 `json:"inode"`
	Device uint64 `json:"device"`
}

func stampOf(path string) (stamp, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return stamp{}, fmt.Errorf("look at image: %w", err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, errors.New("look at image: no file information")
	}
	return stamp{Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Inode: st.Ino, Device: st.Dev}, nil
}

// checkImage makes sure that an image's bytes are those of its name. Reading it takes a
// second, so an image that was read once is read again only when its file has changed:
// any write changes its ctime.
func (e *Engine) checkImage(ctx context.Context, img image.Image) error {
	now, err := stampOf(img.Path)
	if err != nil {
		return err
	}
	file := filepath.Join(e.o.Dirs.Cache, "images", img.Manifest.Digest+".json")
	var seen stamp
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &seen) == nil && seen == now {
		return nil
	}
	store := e.Store()
	if err := store.VerifyDigest(ctx, img, nil); err != nil {
		if errors.Is(err, image.ErrDigestMismatch) {
			return api.Errorf(api.CodeRefused, "", "%w", err)
		}
		return err
	}
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	// A cache that can't be written only costs the second read.
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		if err := renameio.WriteFile(file, b, 0o600); err != nil {
			e.o.Log.Debug("note the verified image", "err", err)
		}
	}
	return nil
}
