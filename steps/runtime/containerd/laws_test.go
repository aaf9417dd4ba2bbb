package containerd_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runtime/containerd"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const theirs = "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n"

func mirrors() *cri.Mirrors {
	return &cri.Mirrors{
		Mapper:    registry.Mapper{Host: "registry.kubexm.local"},
		Upstreams: []string{"docker.io", "registry.k8s.io"},
		Certs:     func(*steps.Host) (registry.Certs, error) { return registry.Certs{CA: []byte("the CA\n")}, nil },
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
			s.AddDir("/var/lib/containerd", 0o711)
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
				steptest.Ensure(t, c, containerd.Service(cluster, mirrors()), containerd.StopService(cluster, mirrors(), false))
			})
		})
	}
}

// TestRegistriesThatOnlyTheBundleKnows: images that a chart asks for come through
// the site's registry too, and a removal needs no bundle to find their files.
func TestRegistriesThatOnlyTheBundleKnows(t *testing.T) {
	cluster := steptest.Cluster(t, steptest.Small)
	c := steptest.Case{Cluster: cluster, Every: 11, Artifacts: steptest.Artifacts{Pins: []manifest.ImagePin{
		{Reference: "quay.example/a/b:1"}, {Reference: "registry.k8s.io/pause:3.10"}, {Reference: "localhost:5000/c:1"},
	}}, Before: func(s *conntest.Sim) {
		s.AddFile("/etc/containerd/certs.d/quay.example/hosts.toml", "# theirs\n", 0o644)
		s.AddFile("/etc/containerd/certs.d/other.example/hosts.toml", "# theirs\n", 0o644)
	}}
	install, remove := containerd.Service(cluster, mirrors()), containerd.StopService(cluster, mirrors(), false)
	steptest.Ensure(t, c, install, remove)

	s := c.Sim(t)
	if err := install.Run(t.Context(), c.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"quay.example": "registry.kubexm.local/v2/quay.example", "localhost:5000": "registry.kubexm.local/v2/localhost-5000", "other.example": "theirs",
	} {
		if got := s.Read("/etc/containerd/certs.d/" + host + "/hosts.toml"); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %s", host, got, want)
		}
	}
	c.Artifacts = steptest.Artifacts{}
	if err := remove.Run(t.Context(), c.NewHost(t, s, remove)); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"quay.example": "# theirs\n", "localhost:5000": "", "other.example": "# theirs\n"} {
		if got := s.Read("/etc/containerd/certs.d/" + host + "/hosts.toml"); got != want {
			t.Errorf("after the removal: %s: %q", host, got)
		}
	}
}

// TestServiceWithAContainerdThatClosesItsFolder: 2.1.9 sets the mode of its folder
// whenever it starts (cmd/containerd/server/server.go), and 2.0.5 left it alone.
func TestServiceWithAContainerdThatClosesItsFolder(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c}
	s := kase.Sim(t)
	started := 0
	s.Handle(func(cmd connector.Cmd) bool {
		return cmd.Verb == connector.VerbUnitStart || cmd.Verb == connector.VerbUnitRestart
	},
		func(connector.Cmd, []byte) (connector.Result, bool) {
			started++
			s.RemoveAll("/var/lib/containerd")
			s.AddDir("/var/lib/containerd", 0o700)
			return connector.Result{}, false
		})
	step := containerd.Service(c, mirrors())
	h := kase.NewHost(t, s, step)
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if v, err := step.Precheck(t.Context(), h); err != nil || v != steps.Done || started == 0 {
		t.Errorf("after %d starts: %v, %v", started, v, err)
	}
}
