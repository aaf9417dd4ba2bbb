#!/usr/bin/env bash
# Builds kubexm, and with it a bundle; as root on Linux, a cluster from that
# bundle too, on hosts that nothing leads out of. It needs Go, and no internet
# beyond Go's modules and Debian's packages. Everything it writes is under
# build/ and, as root, the lab's cache. `make quickstart` runs it; KEEP=1 leaves
# the cluster up.
#
# With an argument it does one part alone: build, up, bundle, install, egress.
# The test that walks a cluster through its life begins with these parts, for a
# config and a site of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

export LAB=${LAB:-quickstart}
config=${CONFIG:-testdata/configs/lab.yaml} # of the cluster
site=${SITE:-build/quickstart}              # the folder that kubexm works in
hosts=${N:-4}
name=${NAME:-lab}                           # of the cluster, as the config has it
services=${SERVICES:-10.233.0.0/18}         # the cluster's range of Services

say() { printf '\n== %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

build() {
    say "build kubexm, and what stands in for the internet"
    run make build
    run go build -o build/upstream ./testdata/upstream/cmd
    run go build -o build/lab ./testdata/lab/cmd
}

# bundle CONFIG SOURCES OUT builds, verifies and lists one.
bundle() {
    say "build the bundle"
    run build/kubexm bundle build -f "$1" --sources "$2/sources.yaml" --versions "$2/versions.yaml" \
        --lock "${3%.tar.zst}.lock" --cache-dir build/cache --force "$3"
    say "verify it: every byte, against its digest"
    run build/kubexm bundle verify --allow-unsigned "$3"
    say "list it"
    run build/kubexm bundle ls "$3"
}

up() {
    rm -rf "$site"
    mkdir -p "$site"
    say "build what the cluster is made of, from Go modules (the first time this takes half an hour)"
    run build/lab components
    say "bring up $hosts hosts that nothing leads out of"
    build/lab down >/dev/null
    run build/lab up -n "$hosts"
    build/lab config -f "$config" > "$site/config.yaml"
}

install() {
    say "carry it to the machine that kubexm runs from there, and install"
    run build/lab on workdir build/kubexm install --bundle "$site/lab.tar.zst" --allow-unsigned -f "$site/config.yaml" --workdir "$site"
    say "the cluster, from there"
    run build/lab on workdir build/kubexm get nodes -f "$site/config.yaml" --workdir "$site"
    run build/lab smoke --kubeconfig "$site/.kubexm/$name/kubeconfig"
}

egress() {
    say "what tried to leave (housekeeping has its reason behind it)"
    run build/lab egress --inside "$services"
}

case "${1:-}" in
build | up | bundle | install | egress)
    "$@"
    exit
    ;;
esac

build

# Without a lab: a bundle of stand-ins.
if ! why=$(build/lab possible 2>&1); then
    config=testdata/configs/quickstart.yaml out=build/quickstart.tar.zst
    build/upstream with -f $config --out build -- bash "$0" bundle $config build $out
    cat <<END

Done. $out ($(du -h $out | cut -f1)) was built from $config, every byte of it
checked. What it holds are stand-ins: they came from an upstream on 127.0.0.1 that is gone
again, and their digests from build/versions.yaml. What they are pinned to stands in build/quickstart.lock.

  build/kubexm bundle show $out                # its summary
  build/kubexm bundle extract --allow-unsigned $out --oci build/images
  make upstream                                   # that upstream again, in the foreground

No cluster was made of it: ${why#error: }

From the real upstream, with internet and a config of your own:

  build/kubexm config init > config.yaml
  build/kubexm bundle build -f config.yaml
END
    exit
fi

cleanup() { [ -n "${KEEP:-}" ] || build/lab down; }
trap cleanup EXIT
up
run build/lab upstream -f "$site/config.yaml" --out "$site" -- bash "$0" bundle "$site/config.yaml" "$site" "$site/lab.tar.zst"
install
egress

cat <<END

Done. A bundle of $(du -h "$site/lab.tar.zst" | cut -f1) became a cluster of three nodes and a registry, and no packet
tried to leave. The hosts are namespaces of this machine; what runs on them is real.

  make quickstart KEEP=1          # leaves it up: testdata/lab/README.md tells how to get in
END
