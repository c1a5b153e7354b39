#!/bin/bash
# Makes the README's pictures from a real session of the demo model in a real sandbox.
#
#   pictures.sh [DIRECTORY]     default: docs/pictures
#
# Needs tmux, and what patio needs to run. The session, its workspace and all of its state
# are in a temporary directory, and gone afterwards.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(realpath -m "${1:-$root/docs/pictures}")
patio=$root/bin/patio
dir=$(mktemp -d)
socket=$dir/tmux
export XDG_STATE_HOME=$dir/state XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config XDG_RUNTIME_DIR=$dir/run
export HOME=$dir/home PATIO_MODEL=demo/tour COLORTERM=truecolor TERM=tmux-256color
# Go keeps its own caches.
GOPATH=$(HOME=~ go env GOPATH)
GOCACHE=$(HOME=~ go env GOCACHE)
export GOPATH GOCACHE
mkdir -p "$out" "$XDG_RUNTIME_DIR" "$HOME"
chmod 700 "$XDG_RUNTIME_DIR"

finish() {
	tmux -S "$socket" kill-server 2>/dev/null || true
	"$patio" stop --all --now >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap finish EXIT

work=/tmp/patio-demo/shop
rm -rf /tmp/patio-demo
mkdir -p "$work"
trap 'finish; rm -rf /tmp/patio-demo' EXIT
git -C "$work" init -q
printf 'package shop\n' >"$work/shop.go"
cd "$work"

screen() { tmux -S "$socket" capture-pane -p; }

# until_shown TEXT: the screen has it, within a minute.
until_shown() {
	for _ in $(seq 600); do
		if screen | grep -qF -- "$1"; then return; fi
		read -rt 0.1 <> <(:) || true
	done
	printf 'pictures: the screen never showed %s\n' "$1" >&2
	screen >&2
	exit 1
}

picture() {
	# freeze doesn't know the default background, so it is named.
	tmux -S "$socket" capture-pane -e -p -N | sed $'s/\x1b\\[49m/\x1b[48;2;22;22;30m/g' >"$dir/screen.ansi"
	(cd "$root" && go run github.com/charmbracelet/freeze@v0.2.2 --language ansi --background '#16161e' --padding 14 --line-height 1.2 \
		--font.size 13 --output "$out/$1.svg" "$dir/screen.ansi") >/dev/null
	printf "%s\n" "$out/$1.svg"
}

press() { tmux -S "$socket" send-keys "$@"; }

id=$("$patio" new --name "fix the shop" -q)
"$patio" new --name "write the docs" -q >/dev/null
"$patio" send "$id" --wait "Show me around." >/dev/null

tmux -S "$socket" -f /dev/null new-session -d -x 140 -y 42 "$patio"
tmux -S "$socket" set-option -g default-terminal tmux-256color \; set-option -ga terminal-overrides ',*:RGB'
until_shown "fix the shop"
until_shown "idle"
picture sessions
press -l j
press Enter
until_shown "Traffic"
until_shown "The file is"
picture chat
press Escape
until_shown "i write"
press -l 2
until_shown "message_"
picture traffic
press -l 3
until_shown "inside"
picture timeline
press -l 4
until_shown "Egress"
picture egress
