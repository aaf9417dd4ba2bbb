#!/bin/bash
# tools.sh DIR: a small Debian with rpm, rpmbuild, createrepo_c and dnf in it, which
# the tests of this folder hold their answers against. It is made from the
# machine's own package sources, and nothing is installed on the machine.
set -euo pipefail
out=$1
[ ! -e "$out/.ready" ] || exit 0

sources=(/etc/apt/sources.list.d/debian.sources)
[ -e "${sources[0]}" ] || sources=(/etc/apt/sources.list)
rm -rf "$out"
mkdir -p "$(dirname "$out")"
mmdebstrap --quiet --variant=minbase --mode=root --include=rpm,createrepo-c,dnf,gpg,gpg-agent,gpgconf,zstd,xz-utils \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm "$out" "${sources[@]}"
rm -rf "$out"/etc/apt/sources.list "$out"/etc/apt/sources.list.d/* "$out"/var/lib/apt/lists/*
touch "$out/.ready"
