package registryd_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestInstallKeepsItsLaws(t *testing.T) {
	cluster := steptest.Cluster(t, steptest.Small)
	for name, before := range map[string]func(*conntest.Sim){
		"bare": nil,
		"with a folder of images": func(s *conntest.Sim) {
			s.AddFile(cluster.Spec.Registry.RegistryDataDir+"/docker/theirs", "t", 0o644)
			s.AddFile("/etc/kubexm/registry/htpasswd", "somebody:x\n", 0o640)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steptest.Ensure(t, steptest.Case{
				Cluster: cluster, Before: before, Every: 199, // each try makes hashes of passwords, which take their time on purpose
				Workdir: t.TempDir(), Varies: []string{"/etc/kubexm/registry/htpasswd", "/etc/kubexm/registry/push.htpasswd"},
			}, registryd.Install(cluster), registryd.Uninstall(cluster, false))
		})
	}
}
