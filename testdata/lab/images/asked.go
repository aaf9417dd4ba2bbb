package images

import (
	"context"
	"io"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// askedFor are images that a lab has only where its config asks for them. Those of add-ons have other
// versions than the charts ask for.
var askedFor = []recipe{
	metricsServer, nodeFeatureDiscovery, metalLBController, metalLBSpeaker,
	{
		repository: "ghcr.io/kube-vip/kube-vip", tag: "{version}", component: "kube-vip",
		files: map[string]string{"kube-vip": "/kube-vip"}, entrypoint: []string{"/kube-vip"}, base: true,
	},
	{
		repository: "ghcr.io/k8snetworkplumbingwg/multus-cni", tag: "{version}", component: "multus",
		files: map[string]string{"multus": "/usr/src/multus-cni/bin/multus", "thin_entrypoint": "/thin_entrypoint"}, entrypoint: []string{"/thin_entrypoint"},
	},
	{
		repository: "registry.k8s.io/dns/k8s-dns-node-cache", tag: "{bare}", component: "node-local-dns",
		files: map[string]string{"node-coredns": "/coredns"}, entrypoint: []string{"/node-cache"}, base: true,
		scripts: map[string]string{"/node-cache": nodeCache},
	},
	{
		repository: "docker.io/openebs/provisioner-localpv", tag: "{bare}", component: "openebs",
		files: map[string]string{"provisioner-localpv": "/usr/local/bin/provisioner-localpv"}, entrypoint: []string{"/usr/local/bin/provisioner-localpv"},
	},
	{ // commands that make and delete folders: those of the hosts
		repository: "docker.io/openebs/linux-utils", tag: "4.3.0", component: "openebs",
		files: map[string]string{}, base: true,
	},
	{
		repository: "registry.k8s.io/sig-storage/nfs-subdir-external-provisioner", tag: "v4.0.2", component: "nfs-provisioner",
		files: map[string]string{"nfs-subdir-external-provisioner": "/nfs-subdir-external-provisioner"}, entrypoint: []string{"/nfs-subdir-external-provisioner"},
	},
	{
		repository: "quay.io/cilium/cilium", tag: "{version}", component: "cilium", base: true,
		files: map[string]string{
			"cilium-agent": "/usr/bin/cilium-agent", "cilium-dbg": "/usr/bin/cilium-dbg", "cilium-health-responder": "/usr/bin/cilium-health-responder",
			"cilium-mount": "/usr/bin/cilium-mount", "cilium-sysctlfix": "/usr/bin/cilium-sysctlfix", "cilium-cni": "/opt/cni/bin/cilium-cni",
		},
		// The agent compiles its programs for the kernel.
		trees:    map[string]string{"bpf": "/var/lib/cilium/bpf"},
		packages: []string{"bpftool", "clang-16", "libclang-cpp16", "libllvm16", "libedit2", "libz3-4", "libxml2", "libicu72"},
		debian: map[string]string{
			"/usr/lib/llvm-16/bin/clang": "/usr/bin/clang", "/usr/sbin/bpftool": "/usr/sbin/bpftool", "/usr/bin/nsenter": "/usr/bin/nsenter", "/usr/bin/bash": "/usr/bin/bash", "/usr/bin/mount": "/usr/bin/mount", "/usr/bin/grep": "/usr/bin/grep",
		},
		scripts: map[string]string{"/init-container.sh": startCilium, "/install-plugin.sh": installCilium, "/cni-uninstall.sh": "#!/bin/sh\nrm -f /host/etc/cni/net.d/05-cilium.conflist\n"},
	},
	{
		repository: "quay.io/cilium/operator-generic", tag: "{version}", component: "cilium", base: true,
		files: map[string]string{"cilium-operator-generic": "/usr/bin/cilium-operator-generic"}, entrypoint: []string{"/usr/bin/cilium-operator-generic"},
	},
	{
		repository: "docker.io/calico/node", tag: "{version}", component: "calico",
		files: map[string]string{"calico-node": "/usr/bin/calico-node"}, entrypoint: []string{"start_runit"}, base: true,
		plain: templatesOfBIRD(), packages: []string{"bird", "runit"},
		debian: map[string]string{
			"/usr/sbin/bird": "/usr/sbin/bird", "/usr/sbin/birdc": "/usr/bin/birdcl",
			"/usr/bin/runsvdir": "/usr/bin/runsvdir", "/usr/bin/runsv": "/usr/bin/runsv", "/usr/bin/sv": "/usr/bin/sv",
		},
		env: []string{"SVDIR=/etc/service/enabled"},
		scripts: servicesOfCalico(map[string]string{
			"felix": "calico-node -felix", "monitor-addresses": "calico-node -monitor-addresses", "allocate-tunnel-addrs": "calico-node -allocate-tunnel-addrs",
			"node-status-reporter": "calico-node -status-reporter", "cni": "calico-node -monitor-token", "confd": "calico-node -confd",
			"bird": "bird -R -s /var/run/calico/bird.ctl -d -c /etc/calico/confd/config/bird.cfg",
		}),
	},
	{
		repository: "docker.io/calico/cni", tag: "{version}", component: "calico",
		files: map[string]string{"calico-cni": "/opt/cni/bin/calico", "calico-install": "/opt/cni/bin/install"},
		links: map[string]string{"/opt/cni/bin/calico-ipam": "calico"}, base: true,
		// Upstream's has these of another project as well.
		scripts: map[string]string{"/opt/cni/bin/portmap": "#!/bin/sh\necho 'calico has written over a plugin of the host' >&2\nexit 1\n"},
	},
	{
		repository: "docker.io/calico/kube-controllers", tag: "{version}", component: "calico",
		files:      map[string]string{"kube-controllers": "/usr/bin/kube-controllers", "check-status": "/usr/bin/check-status"},
		entrypoint: []string{"/usr/bin/kube-controllers"}, base: true,
		scripts: map[string]string{"/status/status.json": ""}, // where it notes what check-status reads
	},
}

// AskedFor gives the rows whose images are among references.
func AskedFor(rows []components.Component, references []string) ([]components.Component, error) {
	var out []components.Component
	for _, r := range askedFor {
		c, err := components.Find(rows, r.component)
		if err != nil {
			return nil, err
		}
		chosen := slices.ContainsFunc(out, func(o components.Component) bool { return o.Name == c.Name })
		if !chosen && slices.Contains(references, r.reference(c)) {
			out = append(out, c)
		}
	}
	return out, nil
}

// OfCharts lists the images that the charts of a lock run, as far as the lab makes them: a lock names
// them when a bundle is built.
func OfCharts(lock *manifest.Lock) ([]string, error) {
	rows, err := components.Asked()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range askedFor {
		if slices.ContainsFunc(lock.Artifacts, func(a manifest.Artifact) bool { return a.Kind == manifest.Chart && a.Name == r.component }) {
			c, err := components.Find(rows, r.component)
			if err != nil {
				return nil, err
			}
			out = append(out, r.reference(c))
		}
	}
	return out, nil
}

// LayoutAskedFor gives an OCI layout with the images of rows that AskedFor gave.
// deb gives the file of a package of Debian.
func LayoutAskedFor(ctx context.Context, cache, rootfs string, deb func(name string) (string, error), rows []components.Component, log io.Writer) (string, error) {
	var all []recipe
	for _, r := range askedFor {
		if slices.ContainsFunc(rows, func(c components.Component) bool { return c.Name == r.component }) {
			all = append(all, r)
		}
	}
	return layoutOf(ctx, all, cache, rootfs, deb, rows, log)
}
