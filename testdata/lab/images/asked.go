package images

import (
	"io"
	"slices"

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

// LayoutAskedFor gives an OCI layout with the images of rows that AskedFor gave.
// deb gives the file of a package of Debian.
func LayoutAskedFor(cache, rootfs string, deb func(name string) (string, error), rows []components.Component, log io.Writer) (string, error) {
	var all []recipe
	for _, r := range askedFor {
		if slices.ContainsFunc(rows, func(c components.Component) bool { return c.Name == r.component }) {
			all = append(all, r)
		}
	}
	return layoutOf(all, cache, rootfs, deb, rows, log)
}
