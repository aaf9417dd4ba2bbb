#!/usr/bin/env bash
# Builds the peers that `make bench` compares kubexm with into the folder given,
# one compiler at a time and behind everything else that this machine does. Their
# modules are checked against Go's checksum database and their own go.sum.
set -euo pipefail

zarf=v0.60.0 # oras is pinned where other tests find it: testdata/tools/oras

into=${1:?usage: peers.sh FOLDER [oras|zarf]...}
shift
mkdir -p "$into"
export CGO_ENABLED=0 GOWORK=off

build() { nice -n 19 go build -p 1 -trimpath -buildvcs=false "$@"; }

build_oras() { build -modfile=testdata/tools/oras/go.mod -o "$into/oras" oras.land/oras/cmd/oras; }

# From its module's own folder: only there its replacements count.
build_zarf() {
    [ "$(cat "$into/zarf.version" 2>/dev/null)" != "$zarf" ] || return 0
    folder=$(cd / && go mod download -json "github.com/zarf-dev/zarf@$zarf" | jq -er .Dir)
    (cd "$folder" && build -ldflags "-s -w -X github.com/zarf-dev/zarf/src/config.CLIVersion=$zarf" -o "$into/zarf" .)
    echo "$zarf" > "$into/zarf.version"
}

for peer in "${@:-oras}"; do
    "build_$peer"
    ls -l "$into/$peer"
done
