#!/usr/bin/env bash
# Sees to the programs that the lab calls and that its components are built with:
# installs what is missing where it may (root, apt-get), else says what to install.
# Further packages are its arguments.
set -eu

needs="iproute2 nftables tcpdump openssh-client mmdebstrap e2fsprogs xfsprogs util-linux procps kmod gcc libc6-dev pkg-config libseccomp-dev $*"

packages=""
for package in $needs; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || packages="$packages $package"
done
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    thrice="$(dirname "$0")/../tools/thrice.sh"
    bash "$thrice" apt-get update -q
    # shellcheck disable=SC2086 # one word per package
    bash "$thrice" apt-get install -q -y --no-install-recommends $packages
else
    echo "the lab needs packages that are missing; install them and run again:$packages" >&2
    exit 1
fi
