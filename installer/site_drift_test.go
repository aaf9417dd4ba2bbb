package installer_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// drift gives what differs, a line each, and what could not be looked at.
func (s *site) drift(has steps.Artifacts, lost ...string) []string {
	s.t.Helper()
	found, err := s.Drift(has, lost...)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, d := range found {
		says := d.What
		if d.NotChecked != "" {
			says = "unseen: " + d.NotChecked
		}
		out = append(out, fmt.Sprintf("%s %s, %s: %s", d.Host, d.Kind, d.Name, says))
	}
	return out
}

// listen collects the commands that are no looks of the runner's.
func (s *site) listen() (commands func() [][]string) {
	var mu sync.Mutex
	var all [][]string
	s.OnCommand = func(_, _ string, c connector.Cmd, _ []byte) {
		if !audit.ReadOnlyVerb(c.Verb) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, append([]string{c.Verb}, c.Argv...))
		}
	}
	return func() [][]string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// looks reports whether a command is a program that is asked something: by its words that
// are no flags and no values of flags.
func looks(argv []string) bool {
	line := strings.Join(argv, " ") + " "
	for _, says := range []string{
		" get ", " diff --server-side ", "exec ctr --namespace k8s.io images list ", " endpoint health ", " status ", "exec crictl pods ", "exec crictl ps ",
	} {
		if strings.HasPrefix(line, "exec ") && strings.Contains(line, says) {
			return true
		}
	}
	return false
}

// TestNoDriftAfterCreate: what was just made is as its record says, whatever the config;
// and no command of the look changes anything.
func TestNoDriftAfterCreate(t *testing.T) {
	t.Parallel()
	for _, name := range thirdInShort([]string{"site", "masters", "etcd-hosts", "addons", "no-registry", "packages", "masters-stacked", "load-balancers", "load-balancers-nginx", "load-balancers-workers", "kube-vip", "calico", "cilium"}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, name)
				s.Must(pipeline.Create, "create")
				before, commands := s.State(true), s.listen()
				if found := s.drift(nil); len(found) > 0 {
					t.Errorf("found\n%s", strings.Join(found, "\n"))
				}
				s.Same("a look changes nothing", before, s.State(true))
				for _, c := range commands() {
					if !looks(c) {
						t.Errorf("a look ran %q", c)
					}
				}
			})
		})
	}
}

// TestTheRecordIsNoDrift: neither another way in than the one on record, nor that a host
// was away, is a difference.
func TestTheRecordIsNoDrift(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "masters-stacked")
		s.Must(pipeline.Create, "create")
		s.PowerOff("w1")
		s.Skip = []string{"w1"}
		s.Must(pipeline.Create, "create without w1")
		if e, err := state.Here(s.Workdir); err != nil || e.Lead != "m1" || !slices.Equal(e.Away, []string{"w1"}) || e.Revision != 2 {
			t.Errorf("%+v, %v", e, err)
		}
		s.Kube.Silence("m1", true)
		s.Skip = nil
		s.PowerOn("w1")
		s.Sims["w1"].RemoveAll("/var/lib/kubexm/demo/release.json")
		found := slices.DeleteFunc(s.drift(nil), func(l string) bool { return !strings.Contains(l, "record") })
		if want := []string{"w1 file, record of the host's release: write /var/lib/kubexm/demo/release.json"}; !slices.Equal(found, want) {
			t.Errorf("found %q, want %q", found, want)
		}
	})
}

// TestDrift: each thing that another hand changes is one row, on its host, from another
// machine and with another config in hand too.
func TestDrift(t *testing.T) {
	t.Parallel()
	const flannel = "/var/lib/etcd/member/DaemonSet.apps/kube-flannel/kube-flannel-ds"
	for _, x := range []struct {
		name   string
		change func(s *site)
		want   string
	}{
		{"a file of the bundle", func(s *site) { s.Sims["w1"].AddFile("/usr/local/sbin/runc", "another\n", 0o755) }, "w1 file, file /usr/local/sbin/runc: write /usr/local/sbin/runc"},
		{"a file that is written", func(s *site) {
			f, _ := s.Sims["w2"].File("/etc/crictl.yaml")
			s.Sims["w2"].AddFile("/etc/crictl.yaml", "another\n", f.Mode)
		}, "w2 file, file /etc/crictl.yaml: write /etc/crictl.yaml"},
		{"a unit", func(s *site) { s.Sims["w1"].StopUnit("containerd.service") }, "w1 unit, unit containerd.service: start containerd.service"},
		{"a unit that others started", func(s *site) { s.Sims["w1"].StopUnit("kubelet.service") }, "w1 unit, unit kubelet.service: start kubelet.service"},
		{"a kernel setting", func(s *site) { s.Sims["m1"].SetSysctl("net.ipv4.ip_forward", "0") }, "m1 kernel, sysctl net.ipv4.ip_forward: set net.ipv4.ip_forward from 0 to 1"},
		{"an object", func(s *site) {
			if s.Kube.Object("apps/v1", "DaemonSet", "kube-flannel", "kube-flannel-ds") == nil {
				s.t.Fatal("there is none")
			}
			s.Sims["m1"].RemoveAll(flannel)
		}, "m1 object, manifest network.install-flannel: apply manifest network.install-flannel (4 objects)"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "site")
				s.Must(pipeline.Create, "create")
				x.change(s)
				s.elsewhere()
				s.Edit(with(t, configOf(t, "site"), "kubeProxy:", "maxPods: 200, kubeProxy:"))
				before := s.State(true)
				if got := s.drift(nil); len(got) != 1 || !strings.HasPrefix(got[0], x.want) {
					t.Errorf("found\n%s\nwant %s", strings.Join(got, "\n"), x.want)
				}
				s.Same("a look changes nothing", before, s.State(true))
			})
		})
	}
}

// TestDriftOfWhatDependsOnAUnit: what cannot be asked while the runtime is stopped is
// named with it, and is no difference of its own.
func TestDriftOfWhatDependsOnAUnit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		s.Must(pipeline.Create, "create")
		s.Sims["w1"].StopUnit("containerd.service")
		found, err := s.Drift(nil)
		if err != nil || len(found) != 1 || found[0].Name != "unit containerd.service" || !slices.Contains(found[0].Blocks, "containerd.preload-images on w1") {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

// TestDriftWithoutABundle: what nobody can know without it is named, and does not count;
// the rest is looked at. A host that does not answer keeps nobody from looking at others.
func TestDriftWithoutABundle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		s.Must(pipeline.Create, "create")
		without := installer.WithoutBundle(nil, s.Cluster.Spec.Kubernetes.Version)
		found, err := s.Drift(without)
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		for _, d := range found {
			if d.Counts() {
				t.Errorf("counts: %+v", d)
			}
			named[d.Host+" "+d.Name] = true
		}
		for _, want := range []string{"w1 file /usr/local/sbin/runc", "m1 manifest network.install-flannel", "w2 containerd.preload-images"} {
			if !named[want] {
				t.Errorf("%s is not named", want)
			}
		}
		s.Sims["w1"].SetSysctl("net.ipv4.ip_forward", "0")
		s.Sims["w2"].SetSysctl("net.ipv4.ip_forward", "0")
		got := slices.DeleteFunc(s.drift(without, "m1", "w2"), func(l string) bool { return strings.HasSuffix(l, installer.ErrNoBundle.Error()) })
		if want := []string{"w1 kernel, sysctl net.ipv4.ip_forward: set net.ipv4.ip_forward from 0 to 1"}; !slices.Equal(got, want) {
			t.Errorf("found\n%s", strings.Join(got, "\n"))
		}
	})
}

// TestDriftOfAHostThatGoesAway: a host that answers no more half way is one row, and the
// others are looked at to the end.
func TestDriftOfAHostThatGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		s.Must(pipeline.Create, "create")
		s.Sims["w2"].SetSysctl("net.ipv4.ip_forward", "0")
		s.Sims["w1"].Break(conntest.Fault{At: 12, Stay: true})
		got := s.drift(nil)
		if len(got) != 2 || !strings.HasPrefix(got[0], "w1 host, host w1: unseen: ") || !strings.HasPrefix(got[1], "w2 kernel, sysctl net.ipv4.ip_forward") {
			t.Errorf("found\n%s", strings.Join(got, "\n"))
		}
	})
}
