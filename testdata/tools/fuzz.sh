#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time, one after the other:
#
#     testdata/tools/fuzz.sh 20s
#
# Stops at the first finding. The input that broke a target is written below the
# package's testdata/fuzz; commit it with the fix. What was found on the way is kept
# where `go test -fuzz` keeps it, and taken up again the next time.
set -euo pipefail
time=$1
module=$(go list -m)
cache=$(go env GOCACHE)/fuzz
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
log=$tmp/log

targets=$(grep -rEo --include='*_test.go' --exclude-dir=imports-bad '^func Fuzz[A-Za-z0-9_]+' -- */ | sed 's/func //' | sort)
count=0
built=
while IFS=: read -r file name; do
    folder=$(dirname "$file")
    echo "== $name in ./$folder, $time"
    # Built once for all targets of a package; -fuzz has the build count what is reached.
    if [ "$folder" != "$built" ]; then
        go test -c -fuzz=. -o "$tmp/targets" "./$folder"
        built=$folder
    fi
    # What reaches something new is made smaller for a second, by default for a minute: in
    # a short run that would be all.
    if ! (cd "$folder" && "$tmp/targets" -test.paniconexit0 -test.run='^$' -test.fuzz="^$name\$" -test.fuzztime="$time" -test.fuzzminimizetime=1s \
        -test.fuzzcachedir="$cache/$module/$folder") </dev/null >"$log" 2>&1; then
        # Up to Go 1.26 a target that found nothing may still fail at its deadline,
        # when a worker ends a moment too late: https://go.dev/issue/75804. Then this
        # line is all that it says, and no input was written.
        if ! grep -qx '    context deadline exceeded' "$log" || grep -qE 'Failing input written|^panic:' "$log"; then
            cat "$log"
            exit 1
        fi
        echo "found nothing; the target ended late (go.dev/issue/75804)"
    fi
    grep -E '^fuzz: elapsed' "$log" | tail -n 1
    count=$((count + 1))
done <<<"$targets"
echo "$count fuzz targets, $time each: no findings"
