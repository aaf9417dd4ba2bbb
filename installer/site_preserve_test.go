package installer_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// preserving is a deletion that leaves etcd's data, volumes and the images.
func (s *site) preserving(do func()) {
	s.Cluster.Spec.Etcd.PreserveData = true
	do()
	s.Cluster.Spec.Etcd.PreserveData = false
}

// mine is an object that somebody made in the cluster.
const mine = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine","namespace":"default"},"data":{"a":"b"}}`

func (s *site) writeMine() {
	s.t.Helper()
	host := s.Cluster.HostsWith(manifest.RoleMaster)[0].Name
	if s.Cluster.Spec.Etcd.Type == "kubexm" {
		host = s.Cluster.HostsWith(manifest.RoleEtcd)[0].Name
	}
	s.Sims[host].AddFile(s.Cluster.Spec.Etcd.DataDir+"/member/ConfigMap.core/default/mine", mine, 0o600)
}

// stays are the folders that a deletion may leave, and what says whose they are.
func (s *site) stays() []string {
	c := s.Cluster.Spec
	out := []string{c.Etcd.DataDir, "/var/lib/containerd", "/var/lib/kubexm"}
	if c.Registry.Type == "registry" {
		out = append(out, c.Registry.RegistryDataDir)
	}
	if part.HasOpenEBS(s.Cluster) {
		out = append(out, c.Storage.OpenEBS.BasePath)
	}
	return out
}

// TestDataIsPreserved: etcd's data and the images outlive a deletion, and nothing
// else does. The next creation takes them up, with the keys of the cluster before
// and with nothing pulled or sent again; or a deletion takes the rest.
func TestDataIsPreserved(t *testing.T) {
	t.Parallel()
	each(t, []string{"single", "site", "addons", "masters", "masters-stacked", "etcd-hosts", "no-registry"}, func(s *site) {
		first := s.State(true)
		master := s.Sims[s.Cluster.HostsWith(manifest.RoleMaster)[0].Name]
		s.Must(pipeline.Create, "create")
		s.writeMine()
		key, sealed := master.Read("/etc/kubernetes/pki/sa.key"), master.Read(manifest.EncryptionConfig)
		made := s.State(false)
		s.Kube.Salt = " of another cluster"

		s.elsewhere()
		s.preserving(func() { s.Must(pipeline.Delete, "delete") })
		s.onlyStays(first)
		kept := s.State(true)
		s.preserving(func() { s.Must(pipeline.Delete, "delete again") })
		s.Same("deleting again changes nothing", kept, s.State(true))
		for _, h := range s.Cluster.Spec.Hosts {
			s.Sims[h.Name].ForgetCalls()
		}

		s.Must(pipeline.Create, "create on what was kept")
		for _, ran := range s.ran() {
			if strings.HasPrefix(ran, "containerd.preload-images") || strings.HasPrefix(ran, "containerd.import-images") || strings.HasPrefix(ran, "registryd.seed-images") {
				s.t.Errorf("%s ran, and the images were there", ran)
			}
		}
		if o := s.Kube.Object("v1", "ConfigMap", "default", "mine"); o == nil {
			s.t.Error("what somebody made in the cluster is gone")
		}
		if got := master.Read("/etc/kubernetes/pki/sa.key"); got != key {
			s.t.Errorf("the cluster's keys are others: %q", got)
		}
		for _, h := range s.Cluster.HostsWith(manifest.RoleMaster) {
			if got := s.Sims[h.Name].Read(manifest.EncryptionConfig); got != sealed || sealed == "" {
				s.t.Errorf("%s does not know what Secrets of the store are encrypted with", h.Name)
			}
		}
		if here, err := os.ReadFile(filepath.Join(s.Workdir, "certs", "kubernetes", manifest.EncryptionName)); err != nil || string(here) != sealed {
			s.t.Errorf("this machine does not, either (%v)", err)
		}
		s.Same("what was taken up is what was there", withoutKeys(made), withoutKeys(s.State(false)))
		s.Must(pipeline.Create, "create again")
		if ran := s.ran(); len(ran) > 0 {
			s.t.Errorf("a second creation ran %q", ran)
		}

		s.preserving(func() { s.Must(pipeline.Delete, "delete once more") })
		s.Must(pipeline.Delete, "delete all of it")
		s.Same("a deletion after one that preserved gives back what was there", first, s.State(true))
		s.Must(pipeline.Create, "create anew")
		if s.Kube.Object("v1", "ConfigMap", "default", "mine") != nil {
			s.t.Error("what was deleted is there again")
		}
		s.Must(pipeline.Delete, "delete in the end")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}

// withoutKeys leaves out what another machine makes anew: the keys of a registry
// and of a store whose hosts have given theirs away, and what they are in.
func withoutKeys(s conntest.Snapshot) conntest.Snapshot {
	return slices.DeleteFunc(slices.Clone(s), func(l string) bool {
		for _, part := range []string{"/etc/kubexm/registry/", "/etc/etcd/pki/", "/etc/kubernetes/etcd/", "/certs.d/", "EtcdMember", "unit etcd", "unit kubexm-registry"} {
			if strings.Contains(l, part) {
				return true
			}
		}
		return false
	})
}

// onlyStays: what is on the hosts beside what was there is data that stays.
func (s *site) onlyStays(first conntest.Snapshot) {
	s.t.Helper()
	found := map[string]bool{}
	parents := []string{path.Dir(s.Cluster.Spec.Etcd.DataDir), path.Dir(s.Cluster.Spec.Storage.OpenEBS.BasePath)}
	for line := range strings.Lines(conntest.Diff(first, s.State(true))) {
		if slices.ContainsFunc(parents, func(dir string) bool { return strings.Contains(line, ": file "+dir+" d") }) { // made for what is in it
			continue
		}
		at := slices.IndexFunc(s.stays(), func(dir string) bool { return strings.Contains(line, dir) })
		if at < 0 || !strings.HasPrefix(strings.TrimSpace(line), "+") {
			s.t.Errorf("a deletion that preserves data: %s", line)
			continue
		}
		found[s.stays()[at]] = true
	}
	for _, dir := range s.stays() {
		if !found[dir] {
			s.t.Errorf("nothing is left in %s", dir)
		}
	}
}

// TestAFailureWhilePreserving: whatever fails on the way, no data is lost.
func TestAFailureWhilePreserving(t *testing.T) {
	t.Parallel()
	each(t, []string{"masters-stacked", "etcd-hosts"}, func(s *site) {
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		s.writeMine()
		s.preserving(func() {
			s.steadily(pipeline.Delete, true)
			s.Must(pipeline.Delete, "delete after all failures")
		})
		s.onlyStays(first)
		s.steadily(pipeline.Create, true)
		s.Must(pipeline.Create, "create after all failures")
		if s.Kube.Object("v1", "ConfigMap", "default", "mine") == nil {
			s.t.Error("what somebody made in the cluster is gone")
		}
		s.preserving(func() { s.Must(pipeline.Delete, "delete") })
		s.steadily(pipeline.Delete, false)
		s.Must(pipeline.Delete, "delete all of it")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}

// TestWhatWasNeverWholeIsNotPreserved: a control plane that was cut off half way has
// nothing that another could take up.
func TestWhatWasNeverWholeIsNotPreserved(t *testing.T) {
	t.Parallel()
	each(t, []string{"site", "masters-stacked"}, func(s *site) {
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		master := s.Sims[s.Cluster.HostsWith(manifest.RoleMaster)[0].Name]
		master.RemoveAll("/etc/kubernetes/kubexm-complete")
		s.preserving(func() { s.Must(pipeline.Delete, "delete") })
		s.Must(pipeline.Create, "create")
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion gives back what was there", first, s.State(true))
	})
}

// TestKeptDataOfAnotherCluster is not taken up: it is said what would have to be,
// and nothing changes.
func TestKeptDataOfAnotherCluster(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		to   func(*manifest.Cluster)
		says string
	}{
		"release":  {func(c *manifest.Cluster) { c.Spec.Kubernetes.Version = "v1.33.4" }, "install Kubernetes v1.32"},
		"folder":   {func(c *manifest.Cluster) { c.Spec.Etcd.DataDir = "/data/store" }, "set spec.etcd.dataDir: /data/etcd"},
		"master":   {func(c *manifest.Cluster) { c.Spec.RoleGroups.Master = []string{"m2", "m1", "m3"} }, "list m1 first in spec.roleGroups.master"},
		"members":  {func(c *manifest.Cluster) { c.Spec.RoleGroups.Etcd = []string{"e1"} }, "run etcd on the same hosts"},
		"type":     {func(c *manifest.Cluster) { c.Spec.Etcd.Type = "kubeadm" }, "set spec.etcd.type: kubexm"},
		"no keys":  {nil, "restore the keys"},
		"secrets":  {func(c *manifest.Cluster) { c.Spec.Kubernetes.Hardening.Relax = []string{"encryption"} }, "remove encryption from spec.kubernetes.hardening.relax"},
		"the same": {func(*manifest.Cluster) {}, ""},
	}
	for _, name := range rows(changes) {
		change := changes[name]
		t.Run(name, func(t *testing.T) {
			each(t, []string{"etcd-hosts"}, func(s *site) {
				s.Must(pipeline.Create, "create")
				s.preserving(func() { s.Must(pipeline.Delete, "delete") })
				before := s.State(true)
				c := *s.Cluster
				s.Cluster = &c
				if change.to == nil {
					s.Sims["m1"].RemoveAll("/var/lib/kubexm/demo/kept/pki/sa.key")
					before = s.State(true)
				} else {
					change.to(s.Cluster)
				}
				err := s.Run(pipeline.Create, nil)
				if change.says == "" {
					if err != nil {
						s.t.Errorf("refused: %v", err)
					}
					return
				}
				if err == nil || !strings.Contains(advised(err), change.says) || !strings.Contains(advised(err), "--preserve-data=false") {
					s.t.Errorf("%v: %s", err, advised(err))
				}
				s.Same("refused, and nothing changed", before, s.State(true))
			})
		})
	}
}
