package sitetest

import (
	"context"
	"log/slog"
	"net"
	"strings"

	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
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

// Site is the environment of a run, in memory: hosts, the cluster that kubeadm creates on
// them, the registry that systemd starts on one, and a bundle.
type Site struct {
	T                TB
	Cluster          *manifest.Cluster
	Kube             *steptest.Kube
	Sims             map[string]*conntest.Sim
	Bundle           *Bundle
	Registry         *registrydtest.Registry // nil: it exists already, or there is none
	ExternalRegistry *ExternalRegistry       // nil unless the registry exists already
	Workdir          string
	Parallel         int // how many steps run concurrently; 0 means 8
	Rollback         engine.Rollback
	Log              *audit.Log   // nil: no audit log
	Debug            *slog.Logger // nil: no log
	Secrets          []string     // in addition to "secret"
	// Answer answers a command instead of a host; if it is nil, or returns nil, the host
	// answers.
	Answer func(connector.Cmd) *connector.Result
	// Balancer connects a host to the endpoint that the site provides; nil: to an API server
	// that answers.
	Balancer func(host string) (net.Conn, error)
	// OnCommand is called with each command and its input; may be nil.
	OnCommand func(host, step string, c connector.Cmd, stdin []byte)
	// Components are the versions in the bundle other than Kubernetes', by component.
	Components map[string]string
	// Passed reports which steps an earlier run saw done, for a run that resumes; nil: all
	// steps are checked.
	Passed   func(node, host string) bool
	Skip     []string       // hosts that a run skips
	Targets  []string       // hosts that a run works on
	Flags    []string       // flags of the pipeline that are given
	Batch    plan.Batch     // of runs in batches
	Drain    plan.Drain     // of runs that drain nodes
	Lost     []string       // hosts that a change of the cluster's hosts does not reach
	Events   []engine.Event // of the last run
	Warnings []string       // warnings of all runs

	change    func(manifest.Host, *conntest.Machine) // of Options
	contents  *conntest.Contents                     // that the hosts have in common
	operation string                                 // id of the run's operation
}

// Options configure a site.
type Options struct {
	Config string // YAML text
	Root   string // root of the checkout, relative to the working directory
	// Change changes a host before it is used; may be nil.
	Change func(h manifest.Host, m *conntest.Machine)
	// Repositories are the package repositories, by system; those of debian-12 and rocky-9.4
	// always exist.
	Repositories map[string]string // system → format
}

// Of creates the site of a config.
func Of(t TB, o Options) *Site {
	t.Helper()
	c, problems := manifest.Decode(strings.NewReader(o.Config))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s := &Site{T: t, Cluster: c, Sims: map[string]*conntest.Sim{}, Workdir: t.TempDir(), contents: conntest.NewContents()}
	s.Kube = steptest.NewKube(s.Cluster)
	s.Kube.Disturbs = true
	if part.StoreOf(c).Kind == part.External {
		s.Kube.Outside = conntest.New(t)
	}
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
		if r := s.Bundle.Repositories[system]; part.EndpointOf(c).Front == part.HostsFront {
			for _, name := range []string{string(part.EndpointOf(c).Program), "keepalived"} {
				r.Want, r.Packages = append(r.Want, name), append(r.Packages, steptest.Package{Name: name, Version: "2.2", Script: "service"})
			}
			s.Bundle.Repositories[system] = r
		}
	}
	if registryd.UsesExisting(s.Cluster) {
		s.ExternalRegistry = newOutside(t, s)
		s.Kube.Holds = s.ExternalRegistry.holds
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

// Must executes a run that has to succeed.
func (s *Site) Must(p Pipe, when string) {
	s.T.Helper()
	if err := s.Run(p, nil); err != nil {
		s.T.Fatalf("%s: %v", when, err)
	}
}

// State returns the state of all hosts. It leaves out what differs between two installations
// of the same cluster: salted hashes, and the history of operations.
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

// Same reports an error if two states differ.
func (s *Site) Same(law string, want, got conntest.Snapshot) {
	s.T.Helper()
	if d := conntest.Diff(want, got); d != "" {
		s.T.Errorf("%s:\n%s", law, d)
	}
}
