# Runs a command of the image inside its scratch tree. Started by unshare in new user, mount, pid, ipc, uts and network
# namespaces, so that nothing it mounts is seen outside and nothing it runs reaches a network.
# Arguments: the tree, then the command.
set -eu
root=$1
shift
PATH="${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin"

mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
# A container may hide parts of /proc, and then the kernel refuses a fresh one.
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
for device in null zero full random urandom; do
	: >"$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/tmp/home" "$root/tmp/agent"
exec env -i \
	PATH=/usr/local/bin:/usr/bin:/bin HOME=/tmp/home TMPDIR=/tmp LANG=C.UTF-8 TZ=UTC \
	PI_OFFLINE=1 PI_CODING_AGENT_DIR=/tmp/agent \
	"$(command -v chroot)" "$root" "$@"
