#!/bin/sh
# Makes a key and a signature over Release that uses SHA-1, which no library
# signs with any more.
set -eu
cd "$(dirname "$0")"
home=$(mktemp -d)
trap 'gpgconf --homedir "$home" --kill all; rm -rf "$home"' EXIT
gpg="gpg --homedir $home --batch --yes --faked-system-time 20260520T100000 --pinentry-mode loopback --passphrase ''"
$gpg --quick-generate-key "archive <archive@example.com>" rsa2048 sign never
$gpg --armor --export > key.asc
$gpg --digest-algo SHA1 --weak-digest MD5 --armor --detach-sign --output Release.gpg Release
