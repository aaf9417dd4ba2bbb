package sitetest

import (
	"context"
	"log/slog"
	"net"
	"strings"

	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/registryd/registrydtest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TB is the part of testing.TB that a Site needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	TempDir() string
	Cleanup(func())
	Context() context.Context
}

// Site is all that a run meets, in memory: hosts, the cluster that kubeadm makes
// on them, the registry that systemd starts on one, and a bundle.
type Site struct {
	T        TB
	Cluster  *manifest.Cluster
	Kube     *steptest.Kube
	Sims     map[string]*conntest.Sim
	Bundle   *Bundle
	Registry *registrydtest.Registry // nil: it exists already, or there is none
	Outside  *Outside                // where the registry exists already
	Workdir  string
	AtOnce   int // how many steps run at once; 8 where it is 0
	Rollback engine.Rollback
	Log      *audit.Log   // nil: nothing is on record
	Debug    *slog.Logger // nil: nothing is logged
	Secrets  []string     // beside "secret"
	// Answer answers a command in the place of a host; nil, or a nil result: the host does.
	Answer func(connector.Cmd) *connector.Result
	// Balancer connects a host to the endpoint that the site has set up; nil: to an
	// API server that answers.
	Balancer func(host string) (net.Conn, error)
	// Heard is told of each command and of what it reads; nil: nobody is.
	Heard func(host, step string, c connector.Cmd, stdin []byte)
	// Components are versions that the bundle has beside Kubernetes', by component.
	Components map[string]string
	// Passed tells which steps a run before has seen done, for a run that goes on; nil: it
	// looks at all.
	Passed func(node, host string) bool
	Skip   []string       // hosts that a run goes without
	Events []engine.Event // of the last run
	Said   []string       // warnings of all runs

	change    func(manifest.Host, *conntest.Machine) // of Options
	operation string                                 // the id of the run's
}

// Options choose a site.
type Options struct {
	Config string // text
	Root   string // the checkout, as seen from the working directory
	// Change changes a host before anything else knows of it; nil changes none.
	Change func(h manifest.Host, m *conntest.Machine)
	// Repositories are those of packages, by system; those of debian-12 and rocky-9.4
	// are always there.
	Repositories map[string]string // to a format
}

// Of gives the site of a config.
func Of(t TB, o Options) *Site {
	t.Helper()
	c, problems := manifest.Decode(strings.NewReader(o.Config))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s := &Site{T: t, Cluster: c, Sims: map[string]*conntest.Sim{}, Workdir: t.TempDir()}
	s.Kube = steptest.NewKube(s.Cluster)
	s.Kube.Disturbs = true
	s.change = o.Change
	for _, h := range s.Cluster.Spec.Hosts {
		s.addHost(h)
	}
	s.Bundle = newBundle(t, s.Graph(pipeline.Create, nil), o.Root)
	s.Bundle.Repositories = map[string]steptest.Repository{}
	formats := map[string]string{"debian-12": manifest.Deb, "rocky-9.4": manifest.RPM}
	for system, format := range o.Repositories {
		formats[system] = format
	}
	for system, format := range formats {
		s.Bundle.Repositories[system] = steptest.Repository{Format: format, Want: []string{"ipvsadm", "socat"}, Packages: []steptest.Package{
			{Name: "ipvsadm", Version: "1.31", Depends: []string{"libnl"}}, {Name: "libnl", Version: "3.7"}, {Name: "socat", Version: "1.7"},
		}}
	}
	if registryd.Stands(s.Cluster) {
		s.Outside = newOutside(t, s)
		s.Kube.Holds = s.Outside.holds
		return s
	}
	if s.Cluster.Spec.Registry.Type == "" {
		s.Kube.Holds = func(string) bool { return false }
		return s
	}
	s.Registry = registrydtest.Start(s.Cluster, s.Sims[s.Cluster.HostsWith(manifest.RoleRegistry)[0].Name], nil)
	t.Cleanup(s.Registry.Stop)
	s.Kube.Holds = s.Registry.Holds
	return s
}

// Must is a run that ends well.
func (s *Site) Must(p Pipe, when string) {
	s.T.Helper()
	if err := s.Run(p, nil); err != nil {
		s.T.Fatalf("%s: %v", when, err)
	}
}

// State is all hosts as they are. What differs from one making of a cluster to
// the next is left out of them: salted hashes, and the cluster's history of operations.
func (s *Site) State(records bool) conntest.Snapshot {
	var out conntest.Snapshot
	for _, h := range s.Cluster.Spec.Hosts {
		for _, l := range s.Sims[h.Name].Snapshot() {
			switch {
			case strings.HasPrefix(l, "file /var/lib/kubexm") && !records, strings.Contains(l, "/ConfigMap.core/kube-system/kubexm-history "):
				continue
			case (strings.HasPrefix(l, "file /etc/kubexm/registry/htpasswd ") || strings.HasPrefix(l, "file /etc/kubexm/registry/push.htpasswd ")) && !records:
				l = strings.Join(strings.Fields(l)[:4], " ")
			}
			out = append(out, h.Name+": "+l)
		}
	}
	return out
}

// Same holds two states to be the same.
func (s *Site) Same(law string, want, got conntest.Snapshot) {
	s.T.Helper()
	if d := conntest.Diff(want, got); d != "" {
		s.T.Errorf("%s:\n%s", law, d)
	}
}
