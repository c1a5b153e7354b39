# Runs Pi once with the MCP adapter, at the paths of the image, and keeps what jiti transpiled.
# Arguments: the adapter's folder, the folder to keep the cache in. RPC on stdin and stdout.
set -eu
printf '{"packages":["%s"]}' "$1" >"$PI_CODING_AGENT_DIR/settings.json"
pi --mode rpc --no-session
rm -rf "$2"
mkdir -p "${2%/*}"
cp -R "$TMPDIR/jiti" "$2"
