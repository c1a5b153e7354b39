#!/bin/bash
# Installs the Debian packages that patio needs and this machine lacks.
#
#   packages.sh run      to run sessions
#   packages.sh build    also to build patio, runsc and the image
#   packages.sh check    also to run every test and check
#   packages.sh bench    also what the benchmarks compare with
#
# It says which ones and why, and asks before it uses sudo; root and CI aren't asked.
# A program that is there already counts, wherever it came from.
set -euo pipefail

level=${1:-run}
missing=()
reasons=()

need() { # COMMAND PACKAGE WHY
	command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null && return
	missing+=("$2")
	reasons+=("  $2: $3")
}

need newuidmap uidmap "maps user ids, so that a sandbox needs no root"
if [ "$level" != run ]; then
	need mmdebstrap mmdebstrap "makes the sandbox image's Debian"
	need mkfs.erofs erofs-utils "packs the image into one file"
	need npm npm "installs Pi into the image, from package-lock.json"
	need git git "reads this repository's version"
	[ -e /etc/ssl/certs/ca-certificates.crt ] || { missing+=(ca-certificates) && reasons+=("  ca-certificates: to download safely"); }
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || { missing+=(debian-archive-keyring) && reasons+=("  debian-archive-keyring: verifies the image's packages"); }
fi
if [ "$level" = check ]; then
	need gcc gcc "the race detector needs a C compiler"
	[ -e /usr/include/stdlib.h ] || { missing+=(libc6-dev) && reasons+=("  libc6-dev: the race detector needs C headers"); }
	need shellcheck shellcheck "checks the shell scripts"
	need tmux tmux "tests of the terminal"
fi

if [ "$level" = bench ]; then
	need rg ripgrep "the search that patio's is compared with"
fi

# Any Go since 1.21 fetches by itself the version that go.mod asks for.
go_is_new_enough() {
	local go
	go=$(command -v go || find /usr/lib -path '/usr/lib/go-*/bin/go' 2>/dev/null | sort -V | tail -n 1)
	[ -n "$go" ] && [[ $("$go" env GOVERSION 2>/dev/null) =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= 21))
}
backports=
if [ "$level" != run ] && ! go_is_new_enough; then
	missing+=(golang-go)
	reasons+=("  golang-go: builds patio and runsc")
	# Debian 12's own Go is 1.19; its backports have a newer one.
	if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
		backports=bookworm-backports
	fi
fi

[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
	printf 'patio needs these programs; install them with your package manager (Debian names):\n' >&2
	printf '%s\n' "${reasons[@]}" >&2
	exit 5
fi
printf 'patio needs Debian packages that are missing here:\n' >&2
printf '%s\n' "${reasons[@]}" >&2

sudo=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || {
		printf 'as root, run: apt-get install -y %s\n' "${missing[*]}" >&2
		exit 5
	}
	sudo=(sudo)
	if [ -z "${CI:-}" ]; then
		if ! [ -t 0 ]; then
			printf 'run: sudo apt-get install -y %s\n' "${missing[*]}" >&2
			exit 5
		fi
		read -r -p "Install them with sudo apt-get? [y/N] " answer
		[[ $answer =~ ^[Yy] ]] || {
			printf 'nothing was installed\n' >&2
			exit 130
		}
	fi
fi

options=(-y -qq --no-install-recommends)
if [ -n "$backports" ]; then
	# The same mirror that this machine uses, in a source list for this one call.
	# shellcheck disable=SC2016 # apt expands these itself
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" { print $1; exit }')
	list=$(mktemp --suffix=.list)
	trap 'rm -f "$list"' EXIT
	chmod 644 "$list"
	{
		# shellcheck disable=SC2016
		apt-get indextargets --format 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' | grep ' bookworm' | sort -u
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bookworm-backports main\n' "${mirror:?no Debian mirror is configured}"
	} >"$list"
	options+=(-o "Dir::Etc::SourceList=$list" -o Dir::Etc::SourceParts=/dev/null)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq "${options[@]:3}"
for i in "${!missing[@]}"; do
	[ "${missing[$i]}" = golang-go ] && [ -n "$backports" ] && missing[i]="golang-go/$backports"
done
"${sudo[@]}" apt-get install "${options[@]}" "${missing[@]}"
