package versions

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func platforms(archs ...string) []manifest.Platform {
	var ps []manifest.Platform
	for _, a := range archs {
		ps = append(ps, manifest.Platform{OS: "linux", Arch: a})
	}
	return ps
}

// cluster gives a config with the defaults that decoding would fill in.
func cluster(edit func(s *manifest.Spec)) *manifest.Cluster {
	c := &manifest.Cluster{APIVersion: manifest.APIVersion, Kind: manifest.ClusterKind, Metadata: manifest.Metadata{Name: "demo"}}
	c.Spec.Kubernetes = manifest.Kubernetes{Type: "kubeadm", Version: "v1.32.4"}
	c.Spec.Etcd.Type = "kubexm"
	c.Spec.Runtime.Type = "containerd"
	c.Spec.Network.Plugin = "flannel"
	c.Spec.Registry.Type = "none"
	c.Spec.LoadBalancer.Mode = "none"
	edit(&c.Spec)
	return c
}

func hosts(s *manifest.Spec, role *[]string, arch string, names ...string) {
	for _, n := range names {
		s.Hosts = append(s.Hosts, manifest.Host{Name: n, Arch: arch})
	}
	*role = names
}

// configs are the clusters whose locks are golden.
var configs = map[string]func(s *manifest.Spec){
	"single-node": func(s *manifest.Spec) {
		hosts(s, &s.RoleGroups.Master, "amd64", "node1")
		s.Etcd.Type = "kubeadm"
	},
	"high-availability": func(s *manifest.Spec) {
		hosts(s, &s.RoleGroups.Master, "amd64", "m1", "m2", "m3")
		s.LoadBalancer.Mode, s.LoadBalancer.Internal.Type = "internal", "kube-vip"
		on := true
		s.DNS.NodeLocalDNS.Enabled = &on
		s.Registry.Type = "registry"
		s.Addons = []manifest.Addon{{Name: "metallb"}, {Name: "longhorn"}, {Name: "metrics-server"}}
	},
	"two-platforms": func(s *manifest.Spec) {
		s.Bundle.Platforms = platforms("arm64", "amd64")
		s.Registry.Type = "registry"
	},
	"docker": func(s *manifest.Spec) {
		s.Runtime.Type, s.Runtime.Version = "docker", "27.3.1"
		s.LoadBalancer.Mode, s.LoadBalancer.Internal.Type = "internal", "haproxy"
	},
	"cri-o": func(s *manifest.Spec) {
		s.Runtime.Type = "cri-o"
		s.Network.Plugin = "cilium"
		s.LoadBalancer.Mode, s.LoadBalancer.Internal.Type = "internal", "nginx"
	},
	"harbor": func(s *manifest.Spec) {
		hosts(s, &s.RoleGroups.Worker, "arm64", "w1")
		hosts(s, &s.RoleGroups.Registry, "amd64", "r1")
		s.Registry.Type = "harbor"
	},
	"calico-binaries": func(s *manifest.Spec) {
		s.Kubernetes.Type = "kubexm"
		s.Network.Plugin = "calico"
		s.Network.Multus.Enabled = true
		s.Storage.OpenEBS.BasePath = "/var/openebs/local"
	},
	"two-kubernetes-versions": func(s *manifest.Spec) {
		s.Bundle.KubernetesVersions = []string{"v1.33.1"}
		s.Bundle.Images = []manifest.BundleImage{
			{Reference: "docker.io/library/redis:8.0"},
			{Reference: "registry.k8s.io/pause:3.10", Digest: "sha256:" + strings.Repeat("ab", 32)},
		}
		s.Bundle.Files = []manifest.BundleFile{
			{Name: "tool", Address: "https://example.org/tool-amd64", SHA256: strings.Repeat("cd", 32), Platform: platforms("amd64")[0]},
			{Name: "notes.txt", Address: "https://example.org/notes.txt"},
		}
		s.Addons = []manifest.Addon{{Name: "mine", Source: "https://example.org/mine.yaml"}}
	},
}

func TestLocks(t *testing.T) {
	c := load(t)
	for name, edit := range configs {
		t.Run(name, func(t *testing.T) {
			lock, problems := c.Resolve(cluster(edit))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got, err := manifest.EncodeLock(lock)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "locks", name+".golden")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("(-golden +got)\n%s", d)
			}
		})
	}
}

func TestResolveIsPure(t *testing.T) {
	c, config := load(t), cluster(configs["two-kubernetes-versions"])
	first, _ := c.Resolve(config)
	second, _ := c.Resolve(config)
	if d := cmp.Diff(first, second); d != "" {
		t.Error(d)
	}
}

func names(lock *manifest.Lock) []string {
	var out []string
	for _, a := range lock.Artifacts {
		out = append(out, a.Name+"="+a.Version)
	}
	for _, i := range lock.Images {
		out = append(out, i.Names...)
	}
	return out
}

func TestWhatAConfigAsksFor(t *testing.T) {
	tests := []struct {
		name     string
		edit     func(s *manifest.Spec)
		has, not []string
	}{
		{"kubeadm", func(*manifest.Spec) {}, []string{"kubeadm=v1.32.4", "kube-apiserver", "etcd=v3.5.16", "coredns", "pause"},
			[]string{"kube-apiserver=v1.32.4", "etcd"}},
		{"binaries", func(s *manifest.Spec) { s.Kubernetes.Type = "kubexm" },
			[]string{"kube-apiserver=v1.32.4", "kube-proxy=v1.32.4", "coredns", "pause"}, []string{"kubeadm=v1.32.4", "kube-apiserver"}},
		{"etcd of kubeadm", func(s *manifest.Spec) { s.Etcd.Type = "kubeadm" }, []string{"etcd"}, []string{"etcd=v3.5.16"}},
		{"external etcd", func(s *manifest.Spec) { s.Etcd.Type = "external" }, nil, []string{"etcd", "etcd=v3.5.16"}},
		{"etcd's version", func(s *manifest.Spec) { s.Etcd.Version = "3.5.21" }, []string{"etcd=v3.5.21"}, []string{"etcd=v3.5.16"}},
		{"etcd image's version", func(s *manifest.Spec) { s.Etcd = manifest.Etcd{Type: "kubeadm", Version: "v3.5.21"} }, []string{"etcd"}, nil},
		{"no network plugin", func(s *manifest.Spec) { s.Network.Plugin = "none" }, nil, []string{"flannel/flannel", "helm=v3.18.4"}},
		{"calicoctl follows calico", func(s *manifest.Spec) { s.Network = manifest.Network{Plugin: "calico", Version: "v3.29.7"} },
			[]string{"calico=v3.29.7", "calicoctl=v3.29.7", "calico/node"}, nil},
		{"helm for charts", func(s *manifest.Spec) { s.Network.Plugin = "kube-ovn" }, []string{"helm=v3.18.4", "kube-ovn=v1.15.24"}, []string{"kube-ovn/kube-ovn"}},
		{"local cache for zones", func(s *manifest.Spec) { s.DNS.NodeLocalDNS.ExternalZones = make([]manifest.ExternalZone, 1) }, []string{"node-local-dns"}, nil},
	}
	c := load(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lock, problems := c.Resolve(cluster(tt.edit))
			if problems.Err() != nil {
				t.Fatal(problems)
			}
			got := names(lock)
			for _, n := range tt.has {
				if !slices.Contains(got, n) {
					t.Errorf("lacks %s: %v", n, got)
				}
			}
			for _, n := range tt.not {
				if slices.Contains(got, n) {
					t.Errorf("holds %s: %v", n, got)
				}
			}
		})
	}
}

func TestResolveProblems(t *testing.T) {
	tests := []struct {
		name string
		edit func(s *manifest.Spec)
		want []string // each a part of one problem, in order
	}{
		{"unknown Kubernetes", func(s *manifest.Spec) { s.Kubernetes.Version = "v1.32.99" },
			[]string{"error: spec.kubernetes.version: kubernetes v1.32.99 is not in the version matrix; use one of v1.32.13, v1.32.12, v1.32.11, v1.32.10, v1.32.9 "}},
		{"unknown further Kubernetes", func(s *manifest.Spec) { s.Bundle.KubernetesVersions = []string{"v1.99.0"} },
			[]string{"spec.bundle.kubernetesVersions[0]: kubernetes v1.99.0 is not in the version matrix; use one of v1.36.3"}},
		{"no build", func(s *manifest.Spec) {
			s.Runtime.Type, s.Runtime.Version = "docker", "20.10.0"
			s.Bundle.Platforms = platforms("amd64", "arm64")
		}, []string{"spec.runtime.version: docker 20.10.0 has no build for linux/arm64; there are builds for amd64"}},
		{"no build of Harbor", func(s *manifest.Spec) {
			s.Registry.Type = "harbor"
			s.Bundle.Platforms = platforms("arm64")
		}, []string{"spec.registry.version: harbor v2.10.2 has no build for linux/arm64"}},
		{"another operating system", func(s *manifest.Spec) { s.Bundle.Platforms = []manifest.Platform{{OS: "windows", Arch: "amd64"}} },
			[]string{"kubelet v1.32.4 has no build for windows/amd64"}},
		{"all at once", func(s *manifest.Spec) {
			s.Runtime.Version, s.Etcd.Version, s.Network.Version = "9.9.9", "3.0.0", "v0.1.0"
		}, []string{"spec.etcd.version: etcd 3.0.0", "spec.runtime.version: containerd 9.9.9", "spec.network.version: flannel v0.1.0"}},
		{"does not go together", func(s *manifest.Spec) { s.Runtime.Version = "1.7.6" },
			[]string{"warning: spec.runtime.version: containerd v1.7.6 is compatible with Kubernetes >=1.24, <1.30, not with v1.32.4; use v2.1.9"}},
		{"misspelt add-on", func(s *manifest.Spec) { s.Addons = []manifest.Addon{{Name: "metalb"}} },
			[]string{"error: spec.addons[0]: metalb is not in the version matrix; did you mean metallb"}},
		{"no add-on", func(s *manifest.Spec) { s.Addons = []manifest.Addon{{Name: "kubelet"}} },
			[]string{"spec.addons[0]: kubelet is not in the version matrix; use one of: cert-manager, ingress-nginx, longhorn"}},
		{"nothing goes with it", func(s *manifest.Spec) {
			s.Kubernetes.Version = "v1.36.3"
			s.Addons = []manifest.Addon{{Name: "ingress-nginx"}}
		}, []string{"error: spec.addons[0]: no version of ingress-nginx is compatible with Kubernetes v1.36.3; specify a version"}},
		{"calico without nftables", func(s *manifest.Spec) {
			s.Kubernetes.Version, s.Network, s.Kubernetes.KubeProxy.Mode = "v1.30.14", manifest.Network{Plugin: "calico", Version: "v3.28.5"}, "nftables"
		}, []string{"error: spec.kubernetes.kubeProxy.mode: calico v3.28.5 does not support nftables; use iptables or ipvs, or calico v3.29.0 or newer in spec.network.version"}},
		{"packages", func(s *manifest.Spec) {
			s.Runtime.Type = "isulad"
			s.LoadBalancer.Mode, s.LoadBalancer.External.Type = "external", "kubexm-kn"
		}, []string{"warning: spec.runtime.version: isulad is an operating system package", "keepalived is an operating system package", "nginx-package is an operating system package"}},
		{"charts without a version", func(s *manifest.Spec) {
			s.Addons = []manifest.Addon{{Name: "mine", Source: "https://example.org/charts"}, {Name: "yours", Source: "oci://example.org:5000/charts/yours"}}
		}, []string{"spec.addons[0].version: is missing, but https://example.org/charts may contain several versions", "spec.addons[1].version: is missing"}},
		{"two charts of one name", func(s *manifest.Spec) {
			s.Addons = []manifest.Addon{{Name: "mine", Source: "https://example.org/a.tgz"}, {Name: "mine", Namespace: "b", Source: "https://example.org/b.tgz"}}
		}, []string{"spec.addons[1].source: another chart has the same name: mine"}},
		{"two files of one name", func(s *manifest.Spec) {
			s.Bundle.Files = []manifest.BundleFile{{Name: "a", Address: "https://example.org/1"}, {Name: "a", Address: "https://example.org/2"}}
		}, []string{"spec.bundle.files[1]: another file has the same name: a"}},
	}
	c := load(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lock, problems := c.Resolve(cluster(tt.edit))
			if (lock == nil) != (problems.Err() != nil) {
				t.Errorf("lock %v with %v", lock, problems)
			}
			rest := problems
			for _, want := range tt.want {
				i := slices.IndexFunc(rest, func(p manifest.Problem) bool { return strings.Contains(p.String(), want) })
				if i < 0 {
					t.Fatalf("no problem says %q:\n%v", want, problems)
				}
				rest = rest[i+1:]
			}
		})
	}
}

func TestTwoVersionsShareWhatIsTheSame(t *testing.T) {
	c := load(t)
	lock, problems := c.Resolve(cluster(configs["two-kubernetes-versions"]))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	if lock.Sets[0].Name != "v1.32.4" || lock.Sets[1].Name != "v1.33.1" {
		t.Fatalf("sets %v", lock.Sets)
	}
	for _, a := range lock.Artifacts {
		want := lock.Sets[0].Components[a.Name] == lock.Sets[1].Components[a.Name]
		if got := len(a.Sets) == 2; got != want {
			t.Errorf("%s is in %v", a.ID, a.Sets)
		}
	}
}

// TestChartsOfAConfig: where each form of a source leads.
func TestChartsOfAConfig(t *testing.T) {
	for _, c := range []struct {
		addon manifest.Addon
		want  manifest.Artifact
	}{
		{manifest.Addon{Source: "https://example.org/charts/", Version: "1.2.3"}, manifest.Artifact{Repository: "https://example.org/charts", Version: "1.2.3"}},
		{manifest.Addon{Source: "https://example.org/mine-1.0.0.tgz"}, manifest.Artifact{Address: "https://example.org/mine-1.0.0.tgz", Version: "config"}},
		{manifest.Addon{Source: "oci://example.org:5000/mine", Version: "1.2.3+a"}, manifest.Artifact{Address: "oci://example.org:5000/mine:1.2.3_a", Version: "1.2.3+a"}},
		{manifest.Addon{Source: "oci://example.org/mine:1.0.0"}, manifest.Artifact{Address: "oci://example.org/mine:1.0.0", Version: "config"}},
		{manifest.Addon{Source: "./charts/mine"}, manifest.Artifact{Address: "./charts/mine", Version: "config"}},
		{manifest.Addon{Source: "mine.tgz", Version: "2.0.0"}, manifest.Artifact{Address: "mine.tgz", Version: "2.0.0"}},
	} {
		config := cluster(func(*manifest.Spec) {})
		c.addon.Name, c.want.Name, c.want.Kind = "mine", "mine", manifest.Chart
		c.want.ID = "chart/mine/" + c.want.Version
		config.Spec.Addons = []manifest.Addon{c.addon}
		lock, problems := load(t).Resolve(config)
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		for _, a := range lock.Artifacts {
			if a.Kind == manifest.Chart {
				a.Sets = nil
				if d := cmp.Diff(c.want, a); d != "" {
					t.Errorf("%s: %s", c.addon.Source, d)
				}
				c.want.ID = ""
			}
		}
		if c.want.ID != "" {
			t.Errorf("%s: no chart", c.addon.Source)
		}
	}
}
