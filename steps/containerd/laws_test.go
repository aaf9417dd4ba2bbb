package containerd_test

import (
	"testing"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/containerd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const theirs = "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n"

func mirrors() *containerd.Mirrors {
	return &containerd.Mirrors{
		Mapper:    registry.Mapper{Host: "registry.kubexm.local"},
		Upstreams: []string{"docker.io", "registry.k8s.io"},
		CA:        func(*steps.Host) ([]byte, error) { return []byte("the CA\n"), nil },
		Login:     func(*steps.Host) (string, string, error) { return "kubexm-pull", "hush", nil },
	}
}

func TestBinariesAndServiceKeepTheirLaws(t *testing.T) {
	cluster := steptest.Cluster(t, steptest.Small)
	for name, before := range map[string]func(*conntest.Sim){
		"bare": nil,
		"with a runtime of the distribution's": func(s *conntest.Sim) {
			s.AddUnit("containerd.service", theirs, true, true)
			s.AddFile("/etc/containerd/config.toml", "version = 2\n", 0o644)
			s.AddFile("/usr/local/sbin/runc", "theirs", 0o755)
			s.AddDir("/opt/cni/bin", 0o775)
			s.AddDir("/var/lib/containerd", 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := steptest.Case{Cluster: cluster, Before: before, Every: 13}
			t.Run("binaries", func(t *testing.T) {
				steptest.Ensure(t, c, containerd.Binaries(), containerd.RemoveBinaries())
			})
			c.Every = 7
			t.Run("service", func(t *testing.T) {
				steptest.Ensure(t, c, containerd.Service(cluster, mirrors()), containerd.StopService(cluster, mirrors()))
			})
		})
	}
}
