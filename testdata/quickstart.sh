#!/usr/bin/env bash
# Builds kubexm, and with it a bundle from an upstream on the loopback address:
# built, verified, listed. It needs Go, and no internet beyond Go's modules.
# Everything it writes is under build/. `make quickstart` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

config=testdata/configs/quickstart.yaml
bundle=build/quickstart.tar.zst
lock=build/quickstart.lock

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

# The second half runs under the upstream, which ends with it.
if [ "${1:-}" = inside ]; then
    say "build the bundle"
    run build/kubexm bundle build -f "$config" --sources build/sources.yaml --versions build/versions.yaml \
        --lock "$lock" --cache-dir build/cache --force "$bundle"
    say "verify it: every byte, against its digest"
    run build/kubexm bundle verify --allow-unsigned "$bundle"
    say "list it"
    run build/kubexm bundle ls "$bundle"
    exit
fi

say "build kubexm, and the upstream that stands in for the internet"
run make build
run go build -o build/upstream ./testdata/upstream/cmd
build/upstream with -f "$config" --out build -- bash "$0" inside

cat <<END

Done. $bundle ($(du -h "$bundle" | cut -f1)) was built from $config, every byte of it
checked. What it holds are stand-ins: they came from an upstream on 127.0.0.1 that is gone
again, and their digests from build/versions.yaml. What they are pinned to stands in $lock.

  build/kubexm bundle show $bundle                # its summary
  build/kubexm bundle extract --allow-unsigned $bundle --oci build/images
  make upstream                                   # that upstream again, in the foreground

From the real upstream, with internet and a config of your own:

  build/kubexm config init > config.yaml
  build/kubexm bundle build -f config.yaml
END
