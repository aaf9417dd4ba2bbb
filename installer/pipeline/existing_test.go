package pipeline_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/sitetest"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// siteOf gives the site of a config, whose hosts have what it asks of them.
func siteOf(t *testing.T, config string) *sitetest.Site {
	t.Helper()
	s := sitetest.Of(t, sitetest.Options{Config: config, Root: "../.."})
	s.Bundle.Text["tools"] = flannel
	for _, sim := range s.Sims {
		sim.AddFile("/usr/sbin/chronyd", "", 0o755)
		sim.AddDir("/etc/chrony", 0o755)
		sim.AddUnit("chrony.service", "[Install]\nWantedBy=multi-user.target\n", false, false)
		for _, zone := range []string{"Etc/UTC", "Asia/Shanghai"} {
			sim.AddFile("/usr/share/zoneinfo/"+zone, "TZif", 0o644)
		}
	}
	return s
}

// onlyMade are traces of a creation that say nothing of what a cluster is: what kubeadm
// was told, the hosts files of pods that run, the revision of a release.
var onlyMade = []string{"/etc/kubernetes/kubexm-kubeadm.yaml ", "/var/lib/kubelet/pods/", "/Release.helm.sh/", "/ConfigMap.core/kube-system/kubexm ", "/ConfigMap.core/kube-system/kubeadm-config "}

func lasting(s *sitetest.Site) conntest.Snapshot {
	lines := slices.DeleteFunc(s.State(false), func(line string) bool {
		return slices.ContainsFunc(onlyMade, func(part string) bool { return strings.Contains(line, part) })
	})
	data, _ := s.Kube.Object("v1", "ConfigMap", "kube-system", "kubexm")["data"].(map[string]any)
	for key, value := range data {
		if key != "revision" { // it counts the changes
			lines = append(lines, fmt.Sprintf("record %s: %v", key, value))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestWhatInstallChangesInACluster: of each field that install takes on a cluster that
// exists, the cluster ends as one that was made with the new value. A short run takes
// every third.
func TestWhatInstallChangesInACluster(t *testing.T) {
	acted := 0
	for _, field := range manifest.SupportedFields() {
		c, ok := changes[field]
		if !ok {
			continue
		}
		before := whole
		for i := 2; i < len(c); i += 2 {
			before = replaced(t, before, c[i], c[i+1])
		}
		after := replaced(t, before, c[0], c[1])
		if len(manifest.RefusedChanges(steptest.Cluster(t, before), steptest.Cluster(t, after))) > 0 {
			continue // refused, see installer's TestAnExistingClusterIsKept
		}
		if strings.HasPrefix(field, "spec.etcd.external.") || strings.HasPrefix(field, "spec.registry.auths.pull") {
			continue // a store and a registry that exist already are not simulated here
		}
		if acted++; testing.Short() && acted%3 > 0 {
			continue
		}
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := siteOf(t, before)
				s.Must(pipeline.Create, "create")
				s.Edit(after)
				s.Must(pipeline.Create, "create with another "+field)
				fresh := siteOf(t, after)
				certs := filepath.Join(fresh.Workdir, "certs")
				if err := errors.Join(os.RemoveAll(certs), os.CopyFS(certs, os.DirFS(filepath.Join(s.Workdir, "certs")))); err != nil {
					t.Fatal(err)
				}
				fresh.Must(pipeline.Create, "create")
				fresh.Same("the cluster is as one that was made so", lasting(fresh), lasting(s))
			})
		})
	}
	if acted < 20 {
		t.Errorf("install takes %d fields only", acted)
	}
}
