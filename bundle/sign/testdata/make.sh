#!/bin/sh
# Makes the fixtures in this folder with the real cosign, without network:
#   make.sh cosign2 COSIGN-BINARY     what cosign signs, and what it says of ours
# Run `go test ./bundle/sign -run TestCosign -update` first: it signs ours anew.
set -eu
cd "$(dirname "$0")"
name=$1 cosign=$2
export COSIGN_PASSWORD=fixture
alone() { unshare -n "$cosign" "$@"; }
rm -rf "$name" && mkdir "$name"
flags="--tlog-upload=false --yes"
case $name in
cosign2) flags="$flags --new-bundle-format" ;;
*) flags="$flags --use-signing-config=false" ;;
esac
(cd "$name" && alone generate-key-pair >/dev/null 2>&1)
# shellcheck disable=SC2086 # flags are several words
alone sign-blob --key "$name/cosign.key" $flags --bundle "$name/blob.sigstore.json" blob.txt >/dev/null 2>&1
# shellcheck disable=SC2086
alone attest-blob --key "$name/cosign.key" $flags --statement statement.json --bundle "$name/statement.sigstore.json" >/dev/null 2>&1
chmod 644 "$name"/*
{
	alone version 2>&1 | grep GitVersion
	sum=$(sha256sum blob.txt | cut -d' ' -f1)
	for key in kubexm/cosign.pub "$name/cosign.pub"; do
		set -- verify-blob --key "$key" --bundle kubexm/blob.sigstore.json --insecure-ignore-tlog
		[ "$name" != cosign2 ] || set -- "$@" --trusted-root trusted_root.json --new-bundle-format
		echo "\$ cosign $* sha256:$sum"
		alone "$@" "sha256:$sum" 2>&1 | grep -v WARNING | head -1 | cut -c1-100
	done
	set -- verify-blob-attestation --key kubexm/cosign.pub --bundle kubexm/statement.sigstore.json --insecure-ignore-tlog --type https://kubexm.mensylisir.io/bundle/v1 --digestAlg sha256
	[ "$name" != cosign2 ] || set -- "$@" --trusted-root trusted_root.json --new-bundle-format
	digest=$(sed -n 's/.*"sha256":"\([0-9a-f]*\)".*/\1/p' statement.json)
	echo "\$ cosign $* --digest $digest"
	alone "$@" --digest "$digest" 2>&1 | grep -v WARNING | head -1 | cut -c1-100
} >"$name/verified.txt"
cat "$name/verified.txt"
