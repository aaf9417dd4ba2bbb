#!/usr/bin/env bash
# Runs a command that asks the network, up to three times:
#
#     testdata/tools/thrice.sh apt-get update
set -u
for wait in 5 20 ''; do
    "$@" && exit 0
    code=$?
    [ -n "$wait" ] || exit "$code"
    echo "$1 ended with $code; once more in $wait s" >&2
    sleep "$wait"
done
