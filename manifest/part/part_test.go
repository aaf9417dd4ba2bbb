package part_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

const config = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11, internalAddress: 10.0.0.11}
    - {name: m2, address: 192.0.2.12, internalAddress: 10.0.0.12}
    - {name: w1, address: 192.0.2.21, internalAddress: 10.0.0.21}
    - {name: e1, address: 192.0.2.31, internalAddress: 10.0.0.31}
    - {name: r1, address: 192.0.2.41, internalAddress: 10.0.0.41}
  ssh: {user: root, password: secret}
  roleGroups: {master: [m1, m2], worker: [w1, m2], etcd: [e1], registry: [r1]}
  controlPlaneEndpoint: {address: 192.0.2.11}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubexm, dataDir: /data/etcd}
  network: {plugin: flannel}
  registry: {type: registry, privateRegistry: 'images.site.local:5000', registryDataDir: /data/registry}
`

// with gives the config after replacements.
func with(t *testing.T, pairs ...string) *manifest.Cluster {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(config, pairs[i]) {
			t.Fatalf("there is no %q", pairs[i])
		}
	}
	c, problems := manifest.Decode(strings.NewReader(strings.NewReplacer(pairs...).Replace(config)))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	outside  = "type: external, external: {endpoints: ['https://192.0.2.71:2379'], caFile: ca.crt}"
	kubeadms = "type: kubeadm"
)

func names(hs []manifest.Host) string {
	var out []string
	for _, h := range hs {
		out = append(out, h.Name)
	}
	return strings.Join(out, " ")
}

func TestStoreOf(t *testing.T) {
	for name, x := range map[string]struct {
		pairs []string
		want  string
	}{
		"a service": {nil, fmt.Sprint(part.Service, " members e1 endpoints [https://10.0.0.31:2379] data /data/etcd images []")},
		"kubeadm's": {[]string{"type: kubexm", kubeadms, ", etcd: [e1]", ""}, fmt.Sprint(part.Stacked, " members m1 m2 endpoints [] data /data/etcd images [etcd]")},
		"outside":   {[]string{"type: kubexm, dataDir: /data/etcd", outside, ", etcd: [e1]", ""}, fmt.Sprint(part.External, " members  endpoints [https://192.0.2.71:2379] data  images []")},
	} {
		s := part.StoreOf(with(t, x.pairs...))
		if got := fmt.Sprint(s.Kind, " members ", names(s.Members), " endpoints ", s.Endpoints, " data ", s.DataDir, " images ", s.Images); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

func TestGroups(t *testing.T) {
	c := with(t)
	for g, want := range map[part.Group]string{part.Nodes: "m1 m2 w1", part.Masters: "m1 m2", part.Members: "e1", part.RegistryHosts: "r1"} {
		if got := names(g.Hosts(c)); got != want || strings.Join(g.Names(c), " ") != want {
			t.Errorf("group %d: %s and %v, want %s", g, got, g.Names(c), want)
		}
		for _, h := range c.Spec.Hosts {
			if in := slices.Contains(strings.Fields(want), h.Name); g.In(c, h.Name) != in {
				t.Errorf("group %d has %s: %t", g, h.Name, !in)
			}
		}
	}
}

func TestRegistryOf(t *testing.T) {
	hosts := ", registry: [r1]"
	line := "type: registry, privateRegistry: 'images.site.local:5000', registryDataDir: /data/registry"
	for name, x := range map[string]struct {
		pairs []string
		want  part.Registry
	}{
		"its own":  {nil, part.Registry{Kind: part.OwnRegistry, Hosts: part.RegistryHosts.Hosts(with(t)), Port: 5000, DataDir: "/data/registry", Components: []string{"registry"}}},
		"outside":  {[]string{line, "type: external, privateRegistry: images.site.local", hosts, ""}, part.Registry{Kind: part.ExternalRegistry, Port: 443}},
		"none":     {[]string{line, "type: none", hosts, ""}, part.Registry{}},
		"unspoken": {[]string{"  registry: {" + line + "}\n", "", hosts, ""}, part.Registry{}},
	} {
		if d := cmp.Diff(x.want, part.RegistryOf(with(t, x.pairs...)), cmp.AllowUnexported(manifest.Secret{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestRuntimeOf(t *testing.T) {
	if r := part.RuntimeOf(with(t)); r.Name != "containerd" || r.DataDir != "/var/lib/containerd" || !r.Supported {
		t.Errorf("%+v", r)
	}
	if r := part.RuntimeOf(with(t, "  network:", "  runtime: {containerd: {dataDir: /data/containerd}}\n  network:")); r.DataDir != "/data/containerd" {
		t.Errorf("%+v", r)
	}
}

// TestPlugins: each plugin that a config may name has a row, and what is supported is
// what can be installed.
func TestPlugins(t *testing.T) {
	built := map[string][]string{}
	for _, c := range manifest.Choices() {
		built[c.Path] = c.Supported
	}
	root := manifest.ConfigFields()
	for path, of := range map[string]func(string) (string, bool){
		"spec.network.plugin": func(v string) (string, bool) {
			c := &manifest.Cluster{}
			c.Spec.Network.Plugin = v
			n := part.NetworkOf(c)
			return n.Name, n.Supported
		},
		"spec.runtime.type": func(v string) (string, bool) {
			c := &manifest.Cluster{}
			c.Spec.Runtime.Type = v
			r := part.RuntimeOf(c)
			return r.Name, r.Supported
		},
	} {
		field, ok := root.Find(path)
		if !ok || len(field.Enum) < 2 {
			t.Fatalf("%s: %+v", path, field)
		}
		for _, v := range field.Enum {
			name, supported := of(v)
			if v == "none" {
				if name != "" || supported {
					t.Errorf("%s: none is %q", path, name)
				}
				continue
			}
			if name != v || supported != slices.Contains(built[path], v) {
				t.Errorf("%s: %s has the row %q, supported: %t", path, v, name, supported)
			}
		}
	}
}

func TestFlannel(t *testing.T) {
	for backend, want := range map[string]string{"vxlan": "[vxlan]", "wireguard": "[wireguard]", "host-gw": "[]"} {
		n := part.NetworkOf(with(t, "plugin: flannel", "plugin: flannel, flannel: {backend: "+backend+"}"))
		if got := fmt.Sprint(n.Modules); got != want {
			t.Errorf("%s needs the modules %s, want %s", backend, got, want)
		}
	}
	all := part.Networks()
	if i := slices.IndexFunc(all, func(n part.Network) bool { return n.Name == "flannel" }); i < 0 || len(all[i].Modules) > 0 || len(all[i].Links) != 4 {
		t.Errorf("%+v", all)
	}
}

func TestPorts(t *testing.T) {
	for name, x := range map[string]struct {
		pairs []string
		host  string
		want  string
	}{
		"a master":           {nil, "m1", "6443 10257 10259 10250 10248 10256"},
		"a worker":           {nil, "w1", "10250 10248 10256"},
		"a member":           {nil, "e1", "2379 2380 2381"},
		"the registry":       {nil, "r1", "5000 5001"},
		"a stacked member":   {[]string{"type: kubexm", kubeadms, ", etcd: [e1]", ""}, "m1", "6443 10257 10259 10250 10248 10256 2379 2380 2381"},
		"with etcd outside":  {[]string{"type: kubexm, dataDir: /data/etcd", outside, ", etcd: [e1]", ""}, "m1", "6443 10257 10259 10250 10248 10256"},
		"calico by IPIP":     {[]string{"plugin: flannel", "plugin: calico"}, "w1", "10250 10248 10256 9099 179"},
		"calico by VXLAN":    {[]string{"plugin: flannel", "plugin: calico, calico: {vxlanMode: Always}"}, "w1", "10250 10248 10256 9099"},
		"an endpoint's port": {[]string{"address: 192.0.2.11}\n  kubernetes", "address: 192.0.2.11, port: 7443}\n  kubernetes"}, "m2", "7443 10257 10259 10250 10248 10256"},
	} {
		c := with(t, x.pairs...)
		var got []string
		for _, p := range part.Ports(c) {
			if slices.ContainsFunc(p.On, func(g part.Group) bool { return g.In(c, x.host) }) {
				got = append(got, fmt.Sprint(p.Number))
			}
		}
		if s := strings.Join(got, " "); s != x.want {
			t.Errorf("%s: %s, want %s", name, s, x.want)
		}
	}
	for _, p := range part.Ports(with(t)) {
		if (len(p.From) > 0) != (p.Reached != "") || len(p.On) == 0 || p.Of == "" {
			t.Errorf("%+v", p)
		}
	}
}
