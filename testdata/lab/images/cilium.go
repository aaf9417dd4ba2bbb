package images

// Scripts of the image of cilium, which do what upstream's do: one removes the state of an earlier
// agent if the chart asks for that, the other brings the CNI plugin to the host.
const (
	startCilium = `#!/bin/sh
if [ "$CILIUM_BPF_STATE" = true ]; then cilium-dbg post-uninstall-cleanup -f --bpf-state; fi
if [ "$CILIUM_ALL_STATE" = true ]; then cilium-dbg post-uninstall-cleanup -f --all-state; fi
`
	installCilium = `#!/bin/sh
set -e
dir=/host/opt/cni/bin
mkdir -p "$dir"
cp /opt/cni/bin/cilium-cni "$dir/.cilium-cni.new"
mv "$dir/.cilium-cni.new" "$dir/cilium-cni"
`
)
