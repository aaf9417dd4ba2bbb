package bundle

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/chart"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// ciliumOf decodes a config with cilium and a line of further network settings, and pins cilium's
// own chart, which `make modules` brings.
func ciliumOf(t *testing.T, settings string) (*manifest.Cluster, manifest.Artifact) {
	t.Helper()
	dir := moduleDir(t, published{Module: "github.com/cilium/cilium@v1.17.2", Sum: "h1:hMahLKho06pzcAk8X+Co7jXhhwrj79rkTsy5FFehr8Q="})
	if dir == "" {
		t.Skip("cilium's module is not here: make modules brings it")
	}
	c, problems := manifest.Decode(strings.NewReader(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts: [{name: node1, address: 192.0.2.11, internalAddress: '192.0.2.11,fd00::11'}, {name: node2, address: 192.0.2.12, internalAddress: '192.0.2.12,fd00::12'}]
  roleGroups: {etcd: [node1], master: [node1], worker: [node2]}
  kubernetes: {version: v1.32.2}
  network: {plugin: cilium` + settings + `}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := fetch.Local("", manifest.Artifact{
		ID: "chart/cilium/1.17.2", Kind: manifest.Chart, Name: "cilium", Version: "1.17.2", Sets: []string{"v1.32.2"},
		Address: filepath.Join(dir, "install", "kubernetes", "cilium"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, a
}

// TestImagesOfANetworkFromAChart: a bundle has the images that the chart references with the values
// of the config, and no other.
func TestImagesOfANetworkFromAChart(t *testing.T) {
	cache, err := fetch.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	client, err := fetch.New(fetch.Options{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	three := []string{
		"quay.io/cilium/cilium-envoy:v1.31.5-1741765102-efed3defcc70ab5b263a0fc44c93d316b846a211@sha256:377c78c13d2731f3720f931721ee309159e782d882251709cb0fac3b42c03f4b",
		"quay.io/cilium/cilium:v1.17.2", "quay.io/cilium/operator-generic:v1.17.2",
	}
	for settings, want := range map[string][]string{
		"": three,
		", values: {hubble: {enabled: true, relay: {enabled: true}}}":                                 {three[0], three[1], "quay.io/cilium/hubble-relay:v1.17.2", three[2]},
		", kubePodsCIDR: '10.9.0.0/16,fd00:9::/48', kubeServiceCIDR: '10.8.0.0/16,fd00:8::/112'":      three,
		", values: {envoy: {enabled: false}, image: {repository: registry.site.local/cilium/cilium}}": {three[2], "registry.site.local/cilium/cilium:v1.17.2"},
	} {
		c, a := ciliumOf(t, settings)
		found, err := Discover(t.Context(), client, c, &manifest.Lock{Artifacts: []manifest.Artifact{a}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Reference)
			if len(f.Owners) != 1 || f.Owners[0] != "cilium" {
				t.Errorf("%s belongs to %v", f.Reference, f.Owners)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", settings, d)
		}
	}
	c, a := ciliumOf(t, ", values: {operator: {replicas: two}}")
	if _, err := Discover(t.Context(), client, c, &manifest.Lock{Artifacts: []manifest.Artifact{a}}); err == nil || !strings.Contains(err.Error(), "8:49: error: spec.network.values.operator.replicas:") {
		t.Errorf("a value that the schema rejects: %v", err)
	}
}

// TestCiliumTakesTheConfig: what its agents read after the chart was rendered with the config's values.
func TestCiliumTakesTheConfig(t *testing.T) {
	for settings, want := range map[string][]string{
		"": {
			`ipam: "kubernetes"`, `enable-ipv4: "true"`, `enable-ipv6: "false"`, `cni-exclusive: "false"`, `kube-proxy-replacement: "false"`, `tunnel-protocol: "vxlan"`,
			`enable-hubble: "false"`, "replicas: 2\n", "cilium.io/cilium-configmap-checksum:",
		},
		", kubePodsCIDR: '10.9.0.0/16,fd00:9::/48', kubeServiceCIDR: '10.8.0.0/16,fd00:8::/112'": {`enable-ipv4: "true"`, `enable-ipv6: "true"`},
		", values: {cni: {exclusive: true}, debug: {enabled: true}}":                             {`cni-exclusive: "true"`, `debug: "true"`, `ipam: "kubernetes"`},
	} {
		c, a := ciliumOf(t, settings)
		read, err := fetch.LocalChart("", a.Address)
		if err != nil {
			t.Fatal(err)
		}
		addon, _ := part.NetworkChart(c)
		values, err := addon.ValuesText()
		if err != nil {
			t.Fatal(err)
		}
		files, err := read.Render(chart.Options{Release: addon.Name, Namespace: addon.In(), Kubernetes: "v1.32.2", Values: values})
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range files {
			all.Write(f.Data)
		}
		for _, w := range want {
			if !strings.Contains(all.String(), w) {
				t.Errorf("%q: the chart's objects lack %s", settings, w)
			}
		}
	}
}
