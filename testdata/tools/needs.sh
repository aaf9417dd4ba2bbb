#!/usr/bin/env bash
# Sees to the programs that the build and the tests call, beside Go itself:
# installs what is missing where it may (root, apt-get), else says what to install.
set -eu

# program:Debian package
needs="git:git gcc:gcc zstd:zstd tar:tar jq:jq curl:curl skopeo:skopeo"

if ! command -v go >/dev/null; then
    echo "go is missing; install the release that go.mod names, or newer: https://go.dev/dl" >&2
    exit 1
fi

packages=""
for need in $needs; do
    command -v "${need%%:*}" >/dev/null || packages="$packages ${need##*:}"
done
# The race detector links against the C library's headers.
if command -v dpkg-query >/dev/null && [ ! -e /usr/include/stdlib.h ]; then
    packages="$packages libc6-dev"
fi
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    thrice="$(dirname "$0")/thrice.sh"
    bash "$thrice" apt-get update -q
    # shellcheck disable=SC2086 # one word per package
    bash "$thrice" apt-get install -q -y --no-install-recommends $packages
else
    echo "missing programs; install these packages and run again:$packages" >&2
    exit 1
fi
