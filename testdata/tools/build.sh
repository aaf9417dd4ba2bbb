#!/usr/bin/env bash
# Builds kubexm with the given flags of `go build`:
#
#     testdata/tools/build.sh build/kubexm -trimpath …
#
# Linking takes seconds, and Go repeats it for a program without a build id. So a
# program is linked only when it would be another one: what it was linked from is
# recorded beside it. A changed program replaces the old one at once, so that two
# builds side by side disturb neither each other nor who runs the program. Its time
# follows from its bytes: to Go's test cache the same bytes are the same file.
set -euo pipefail
to=$1
shift
export CGO_ENABLED=${CGO:-0} # 1: the race detector needs it
mkdir -p "$(dirname "$to")"

inputs=$({
    go version
    printf '%s\n' "$@"
    go list "$@" -deps -export -f '{{.ImportPath}} {{.BuildID}}' ./cmd/kubexm
} | sha256sum)
record() { printf '%s\n%s\n' "$inputs" "$(sha256sum <"$to")"; }
if [ -x "$to" ] && [ "$(cat "$to.inputs" 2>/dev/null)" = "$(record)" ]; then
    echo "$to is up to date"
    exit 0
fi

new=$(mktemp "$to.XXXXXX")
trap 'rm -f "$new" "$new.inputs"' EXIT
echo "go build $* -o $to ./cmd/kubexm"
go build "$@" -o "$new" ./cmd/kubexm
chmod 755 "$new"
sum=$(sha256sum <"$new")
touch -d "@$((1000000000 + 0x${sum:0:7}))" "$new" # of the years 2001 to 2010
cmp -s "$new" "$to" || mv "$new" "$to"
record >"$new.inputs"
mv "$new.inputs" "$to.inputs"
