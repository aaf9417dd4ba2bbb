#!/usr/bin/env bash
# Runs the fuzz targets of the module, one after the other:
#
#     testdata/tools/fuzz.sh 20s              # each for the given time
#     testdata/tools/fuzz.sh changed [BASE]   # a minute in all, those of changed packages
#
# Stops at the first finding. The input that broke a target is written below the
# package's testdata/fuzz; commit it with the fix. What was found on the way is kept
# where `go test -fuzz` keeps it, and taken up again the next time.
#
# "changed" is for CI, where no change may be red for what another one left behind:
# - No target begins after two minutes: on a machine that has never built targets, each
#   package takes about one of them. Those left out are named.
# - Targets are those of packages with Go files that differ from BASE: the commit
#   that main of origin and HEAD have in common, and where that is HEAD itself, as
#   in a fresh clone, the 20th before HEAD. At most six, one of each package first;
#   which ones is settled by the commit, so that over time all have their turn.
# - The generator of inputs has a fixed seed and starts from the committed seeds
#   alone. How far it gets in 10 s is still a matter of the machine's speed.
# - A finding is therefore tried on BASE too. Where BASE fails as well it is named
#   among the flakes and kept in build/fuzz, and the run is green.
set -euo pipefail
time=$1
module=$(go list -m)
cache=$(go env GOCACHE)/fuzz
tmp=$(mktemp -d)
trap '[ -z "${builder:-}" ] || kill "$builder" 2>/dev/null || true; rm -rf "$tmp"' EXIT
log=$tmp/log

targets=$(grep -rEo --include='*_test.go' --exclude-dir=imports-bad --exclude-dir=concurrent '^func Fuzz[A-Za-z0-9_]+' -- */ | sed 's/func //' | sort)

base=
flags=()
if [ "$time" = changed ]; then
    time=10s
    base=${2:-$(git merge-base HEAD origin/main 2>/dev/null || true)}
    if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
        base=$(git rev-parse -q --verify HEAD~20 || git rev-list --max-parents=0 HEAD | tail -n 1)
    fi
    # A line of targets has the form FOLDER/FILE:NAME. The digest of commit and name is their lot.
    head=$(git rev-parse HEAD)
    git diff --name-only "$base" -- '*.go' | sed 's,/[^/]*$,,' | sort -u >"$tmp/changed"
    targets=$(while IFS=: read -r file name; do
        grep -qxF -- "${file%/*}" "$tmp/changed" || continue
        echo "$(printf '%s' "$head$name" | sha256sum | cut -c1-16) $file:$name"
    done <<<"$targets" | sort | awk '{ folder = $2; sub(/\/[^\/]*$/, "", folder); print n[folder]++, $0 }' | sort -s -n -k1,1 | head -n 6 | cut -d' ' -f3 | sort)
    if [ -z "$targets" ]; then
        echo "no package with fuzz targets differs from ${base:0:12}"
        exit 0
    fi
    cache=$tmp/cache
    flags=(-test.parallel=1)
    export GODEBUG=fuzzseed=1
fi

# on_base tells whether an input breaks a target of the base as well.
on_base() {
    local folder=$1 name=$2 input=$3
    [ -n "$base" ] && mkdir -p "$tmp/base" && git archive "$base" | tar -x -C "$tmp/base" || return 1
    grep -rqE --include='*_test.go' "^func $name\(" "$tmp/base/$folder" || return 1
    (cd "$tmp/base" && go test -c -o "$tmp/base.test" "./$folder") || return 1
    mkdir -p "$tmp/base/$folder/testdata/fuzz/$name"
    cp "$folder/testdata/fuzz/$name/$input" "$tmp/base/$folder/testdata/fuzz/$name/"
    ! (cd "$tmp/base/$folder" && timeout 60 "$tmp/base.test" -test.run="^$name\$/^$input\$") >/dev/null 2>&1
}

# Each package is built once for all its targets, while those of the one before it run.
# -fuzz has the build count what is reached.
mapfile -t folders < <(sed 's,/[^/:]*:.*,,' <<<"$targets" | uniq)
builder=
build() {
    builder=
    [ "$1" -lt "${#folders[@]}" ] || return 0
    nice -n 10 go test -c -fuzz=. -o "$tmp/targets-$1" "./${folders[$1]}" </dev/null &
    builder=$!
}
build 0

count=0
at=-1 # of the folder whose targets run
folder=
while IFS=: read -r file name; do
    if [ "$1" = changed ] && [ "$SECONDS" -gt 120 ]; then
        echo "no time left for $name in ./${file%/*}: testdata/tools/fuzz.sh 10s runs all"
        continue
    fi
    if [ "${file%/*}" != "$folder" ]; then
        folder=${file%/*}
        at=$((at + 1))
        wait "$builder"
        rm -f "$tmp/targets-$((at - 1))"
        build $((at + 1))
    fi
    echo "== $name in ./$folder, $time"
    # What reaches something new is made smaller for a second, by default for a minute: in
    # a short run that would be all.
    if ! (cd "$folder" && "$tmp/targets-$at" -test.paniconexit0 -test.run='^$' -test.fuzz="^$name\$" -test.fuzztime="$time" -test.fuzzminimizetime=1s \
        "${flags[@]}" -test.fuzzcachedir="$cache/$module/$folder") </dev/null >"$log" 2>&1; then
        # Up to Go 1.26 a target that found nothing may still fail at its deadline,
        # when a worker ends a moment too late: https://go.dev/issue/75804. Then this
        # line is all that it says, and no input was written.
        if ! grep -qx '    context deadline exceeded' "$log" || grep -qE 'Failing input written|^panic:' "$log"; then
            cat "$log"
            input=$(sed -nE "s,^ *Failing input written to testdata/fuzz/$name/([0-9a-f]+)\$,\1,p" "$log")
            if [ -n "$input" ] && on_base "$folder" "$name" "$input"; then
                mkdir -p build/fuzz
                mv "$folder/testdata/fuzz/$name/$input" "build/fuzz/$name-$input"
                echo "${base:0:12} fails with this input too: it is kept as build/fuzz/$name-$input, and red for nobody"
                [ -z "${STAGE_FLAKES:-}" ] || echo "$name (./$folder) finds what was there before, build/fuzz/$name-$input" >>"$STAGE_FLAKES"
                continue
            fi
            exit 1
        fi
        echo "found nothing; the target ended late (go.dev/issue/75804)"
    fi
    grep -E '^fuzz: elapsed' "$log" | tail -n 1
    count=$((count + 1))
done <<<"$targets"
echo "$count fuzz targets, $time each: no findings"
