package installer_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// configOf is the config of one of testdata/clusters.
func configOf(t *testing.T, name string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("..", "testdata", "clusters", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return string(a.Files[0].Data)
}

// with is a config with texts replaced: old, new, old, new.
func with(t *testing.T, config string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(config, pairs[i]) {
			t.Fatalf("the config has no %q", pairs[i])
		}
		config = strings.ReplaceAll(config, pairs[i], pairs[i+1])
	}
	return config
}

// refused runs a creation that has to be refused before anything changes, and gives
// what it says.
func (s *site) refused(when string) string {
	s.t.Helper()
	before, applied := s.State(true), s.applied()
	err := s.Run(pipeline.Create, nil)
	var found steps.Findings
	if !errors.As(err, &found) || len(s.ran()) > 0 {
		s.t.Errorf("%s: not refused: %v, ran %q", when, err, s.ran())
		return ""
	}
	s.Same(when+": refused, and nothing changed", before, s.State(true))
	if d := cmp.Diff(applied, s.applied()); d != "" {
		s.t.Errorf("%s: the record here changed:\n%s", when, d)
	}
	var out strings.Builder
	for _, f := range found {
		fmt.Fprintf(&out, "%s: %s\n    try %s\n", f.Host, f.What, f.Advice)
	}
	return strings.ReplaceAll(out.String(), s.Workdir, "WORKDIR")
}

// applied is the record on this machine.
func (s *site) applied() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"config.yaml", "applied.json"} {
		text, err := os.ReadFile(filepath.Join(s.Workdir, "applied", name))
		if err == nil {
			out[name] = string(text)
		}
	}
	return out
}

// golden compares with a file in testdata, part by part: each begins with a line "# name".
// A short run has some of them.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := partsOf(string(text))
	for part, says := range partsOf(got) {
		if d := cmp.Diff(want[part], says); d != "" {
			t.Errorf("%s, %s (-want +got):\n%s", file, part, d)
		}
	}
	if n := len(partsOf(got)); n != len(want) && !testing.Short() {
		t.Errorf("%s has %d parts, want %d", file, len(want), n)
	}
}

func partsOf(text string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq("\n"+text, "\n# ") {
		if name, says, ok := strings.Cut(part, "\n"); ok && name != "" {
			out[name] = strings.TrimSpace(says)
		}
	}
	return out
}

// edits are changes that nothing would act on in a cluster that exists, or that would
// harm it.
var edits = []struct {
	name, cluster string
	pairs         []string
	components    map[string]string
}{
	{"another Kubernetes", "site", []string{"v1.32.2", "v1.33.1"}, nil},
	{"another containerd", "site", nil, map[string]string{"containerd": "2.2.0"}},
	{"another flannel", "site", nil, map[string]string{"flannel": "v0.27.0"}},
	{"another etcd that is a service", "etcd-hosts", nil, map[string]string{"etcd": "v3.6.0"}},
	{"another etcd that kubeadm runs", "site", nil, map[string]string{"etcd-image": "v3.6.0"}},
	{"flags of the API server", "masters", []string{"kubeProxy:", "apiServer: {extraArgs: {audit-log-maxage: 31}}, kubeProxy:"}, nil},
	{"maxPods and the kubelet's flags", "site", []string{"kubeProxy:", "maxPods: 200, kubelet: {extraArgs: {v: 4}}, kubeProxy:"}, nil},
	{"the mode of kube-proxy", "site", []string{"mode: iptables", "mode: nftables"}, nil},
	{"the range of pods", "site", []string{"plugin: flannel", "plugin: flannel, kubePodsCIDR: 10.244.0.0/16"}, nil},
	{"the network plugin", "site", []string{"plugin: flannel", "plugin: none"}, nil},
	{"data folders", "etcd-hosts", []string{"/data/etcd", "/srv/etcd", "etcd: ['e", "etcd: ['e", "  network:", "  runtime: {containerd: {dataDir: /srv/containerd}}\n  registry: {registryDataDir: /srv/registry}\n  network:"}, nil},
	{"etcd's flags where kubeadm runs it", "masters-stacked", []string{"{type: kubeadm", "{logLevel: warn, type: kubeadm"}, nil},
	{"a worker is gone", "site", []string{"    - {name: w2, address: 192.0.2.22}\n", "", "[w1, w2]", "[w1]"}, nil},
	{"a member of etcd is gone", "etcd-hosts", []string{"    - {name: e3, address: 192.0.2.33}\n", "", "e[1:3]", "e[1:2]"}, nil},
	{"a worker is to be a master", "site", []string{"master: [m1]", "master: [m1, w1]"}, nil},
	{"an add-on is gone", "addons", nil, nil},
	{"another name", "site", []string{"name: demo", "name: other"}, nil},
}

// TestAnExistingClusterIsKept: what an installation would not act on, or would do harm
// with, is refused before anything changes, host by host, and not recorded. A short run
// takes every third.
func TestAnExistingClusterIsKept(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i, e := range edits {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configOf(t, e.cluster)
				s := siteOf(t, config, e.cluster)
				s.Components = map[string]string{"containerd": "2.1.0", "flannel": "v0.26.4", "etcd": "v3.5.16", "etcd-image": "v3.5.16"}
				s.Must(pipeline.Create, "create")
				for name, version := range e.components {
					s.Components[name] = version
				}
				if e.name == "an add-on is gone" {
					i := strings.Index(config, "  addons:")
					config = config[:i] + "  addons: [metallb]\n"
				}
				s.Edit(with(t, config, e.pairs...))
				says := s.refused(e.name)
				fmt.Fprintf(&text, "# %s\n%s\n", e.name, says)
				s.elsewhere()
				if got := s.refused(e.name + ", from another machine"); got != says {
					t.Errorf("from another machine it says\n%s", got)
				}
			})
		})
	}
	golden(t, "existing-cluster.txt", text.String())
}

// TestTheRecordHereCountsWhereTheClusterIsSilent: an API server that does not answer
// does not open the way.
func TestTheRecordHereCountsWhereTheClusterIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		s.Must(pipeline.Create, "create")
		s.Sims["m1"].KillUnit("containerd.service")
		s.Edit(with(t, configOf(t, "site"), "v1.32.2", "v1.33.1"))
		if says := s.refused("a silent cluster"); !strings.Contains(says, "the cluster has v1.32.2, the config has v1.33.1") {
			t.Errorf("says %s", says)
		}
	})
}

// TestAnUnfinishedClusterTakesAMendedConfig: a first installation that broke off goes
// on with another config.
func TestAnUnfinishedClusterTakesAMendedConfig(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"kubeadm.init", "kubeadm.join-worker", "kubernetes.wait-ready", "kubernetes.record-applied"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "site")
				if err := s.Run(pipeline.Create, func(n *plan.Node) {
					if n.Step.Meta().Name == at {
						n.Step = failing{n.Step, false}
					}
				}); !errors.Is(err, errInjected) {
					t.Fatalf("%v", err)
				}
				s.Edit(with(t, configOf(t, "site"), "kubeProxy:", "maxPods: 200, kubeProxy:", "    - {name: w2, address: 192.0.2.22}\n", "", "[w1, w2]", "[w1]"))
				s.Must(pipeline.Create, "create with a mended config")
			})
		})
	}
}

// TestHostsAreAdded: a worker, a master, and what install acts on.
func TestHostsAreAdded(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]struct {
		cluster string
		pairs   []string
		nodes   []string
	}{
		"a worker": {"site", []string{"  ssh:", "    - {name: w3, address: 192.0.2.23}\n  ssh:", "[w1, w2]", "[w1, w2, w3]"}, []string{"w3"}},
		"a master": {"masters-stacked", []string{"  ssh:", "    - {name: m4, address: 192.0.2.14}\n  ssh:", "m[1:3]", "m[1:4]"}, []string{"m4"}},
		"labels and names": {"site", []string{"name: w1, address: 192.0.2.21", "name: w1, address: 192.0.2.21, labels: {disk: ssd}", "  network:", "  extra: {hosts: [{domain: wiki.site.local, address: 192.0.2.60}]}\n  network:"},
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := configOf(t, e.cluster)
				s := siteOf(t, config, e.cluster)
				first := s.State(true)
				s.Must(pipeline.Create, "create")
				s.Edit(with(t, config, e.pairs...))
				for _, n := range e.nodes {
					for _, l := range s.Sims[n].Snapshot() {
						first = append(first, n+": "+l)
					}
				}
				s.Must(pipeline.Create, "create with more")
				if len(s.ran()) == 0 {
					t.Error("nothing ran")
				}
				for _, n := range e.nodes {
					if s.Kube.Object("v1", "Node", "", n) == nil {
						t.Errorf("%s is no node", n)
					}
				}
				s.Must(pipeline.Create, "create again")
				if ran := s.ran(); len(ran) > 0 {
					t.Errorf("a further creation ran %q", ran)
				}
				s.Must(pipeline.Delete, "delete")
				got := s.State(true)
				slices.Sort(first)
				slices.Sort(got)
				s.Same("a deletion gives back what was there", first, got)
			})
		})
	}
}

// TestWhatIsPreservedElsewhereIsTakenUp: a machine that made a cluster makes it again
// after another one has deleted it and kept its data; without the data, only after a
// deletion here, which finds nothing.
func TestWhatIsPreservedElsewhereIsTakenUp(t *testing.T) {
	t.Parallel()
	for _, name := range thirdInShort([]string{"site", "masters"}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, name)
				s.Must(pipeline.Create, "create")
				here := s.Workdir
				s.elsewhere()
				s.preserving(func() { s.Must(pipeline.Delete, "delete elsewhere") })
				s.Workdir = here
				s.Must(pipeline.Create, "create on what was kept")
				s.elsewhere()
				s.Must(pipeline.Delete, "delete all of it elsewhere")
				s.Workdir = here
				if said := s.refused("deleted elsewhere"); !strings.Contains(said, "if the cluster was deleted from another machine") {
					t.Error(said)
				}
				s.Must(pipeline.Delete, "delete here too")
				s.Must(pipeline.Create, "create anew")
			})
		})
	}
}

// TestAReplacedFirstMasterIsRefused: a blank machine in the place of the first master
// is no reason for a second cluster.
func TestAReplacedFirstMasterIsRefused(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, name := range thirdInShort([]string{"masters-stacked", "site"}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, name)
				s.Must(pipeline.Create, "create")
				s.Replace("m1")
				fmt.Fprintf(&text, "# %s\n%s\n", name, s.refused("replaced"))
				s.elsewhere()
				fmt.Fprintf(&text, "# %s, from another machine\n%s\n", name, s.refused("replaced, from another machine"))
			})
		})
	}
	t.Run("all machines", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // nobody but this machine knows of the cluster
			s := newSite(t, "site")
			s.Must(pipeline.Create, "create")
			for _, h := range []string{"m1", "w1", "w2"} {
				s.Replace(h)
			}
			fmt.Fprintf(&text, "# all machines\n%s\n", s.refused("replaced"))
			s.Must(pipeline.Delete, "delete what is gone")
			s.Must(pipeline.Create, "create anew")
		})
	})
	t.Run("a new host stands first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, "masters-stacked")
			s.Must(pipeline.Create, "create")
			s.Edit(with(t, configOf(t, "masters-stacked"), "  ssh:", "    - {name: m4, address: 192.0.2.14}\n  ssh:", "['m[1:3]']", "[m4, 'm[1:3]']"))
			fmt.Fprintf(&text, "# a new host stands first\n%s\n", s.refused("a new host stands first"))
		})
	})
	golden(t, "replaced-master.txt", text.String())
}
