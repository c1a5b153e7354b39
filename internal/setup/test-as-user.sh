#!/bin/bash
# Runs the tests that use real namespaces and sandboxes as an unprivileged user. Root runs
# it: it makes the user when it is missing, compiles the tests as root, and gives the user a
# copy of what they need.
#
#   test-as-user.sh USER
set -euo pipefail
cd "$(dirname "$0")/../.."
user=${1:?usage: test-as-user.sh USER}

id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
# useradd gives subordinate ids where login.defs says so; a user without gets them here.
for file in /etc/subuid /etc/subgid; do
	grep -q "^$user:" "$file" 2>/dev/null || echo "$user:$((600000000 + $(id -u "$user") * 65536)):65536" >>"$file"
done

make build runsc image
dir=$(mktemp -d /var/tmp/patio-test.XXXXXX)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
# The sources too: some tests read them, and testdata lies among them.
{ git ls-files -z && find bin libexec -type f -print0; } | tar --null -T - -cf - | tar -xf - -C "$dir"

packages=(. ./sandbox ./sandbox/limits ./sandbox/mounts ./sandbox/namespace ./sandbox/network ./sandbox/image ./engine ./engine/supervisor ./sessions ./internal/cli)
for p in "${packages[@]}"; do
	go test -c -o "$dir/$p/package.test" "$p"
done
chown -R "$user:" "$dir"

# The user's own home and nothing of root's environment. Not in root's session, so that
# XDG_RUNTIME_DIR isn't root's.
failed=0
for p in "${packages[@]}"; do
	echo "=== as $user: $p"
	(
		cd "$dir/$p"
		[ -x package.test ] || exit 0
		setpriv --reuid "$user" --regid "$user" --init-groups env -i \
			HOME="$(getent passwd "$user" | cut -d: -f6)" USER="$user" LOGNAME="$user" LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin \
			PATIO_REQUIRE_SANDBOX="${PATIO_REQUIRE_SANDBOX:-}" PATIO_TEST_IMAGE_BUILD="${PATIO_TEST_IMAGE_BUILD:-}" PATIO_TEST_ROOT="$dir" \
			./package.test -test.timeout 20m -test.skip '^Test(ImportArrows|FilesAreShort)$'
	) || failed=1
done
exit "$failed"
