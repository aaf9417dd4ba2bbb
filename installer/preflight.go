package installer

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/preflight"
)

// Reach is like Open, but continues without the hosts that cannot be reached and returns the
// reasons.
func Reach(ctx context.Context, o Options) (*Session, HostErrors, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	failed, err := s.reachAll(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, failed, nil
}

// Reached returns the names of the reached hosts, in the order of the config.
func (s *Session) Reached() []string {
	var out []string
	for _, h := range s.Cluster.Spec.Hosts {
		if s.hosts[h.Name] != nil {
			out = append(out, h.Name)
		}
	}
	return out
}

// Names returns the hosts, in the order of the errors.
func (e HostErrors) Names() []string {
	var out []string
	for _, err := range e {
		if host, ok := errors.AsType[*HostError](err); ok {
			out = append(out, host.Host)
		}
	}
	return out
}

// Findings returns the unreachable hosts as findings, like those of checks.
func (e HostErrors) Findings() []steps.Finding {
	var out []steps.Finding
	for _, err := range e {
		var host *HostError
		if !errors.As(err, &host) {
			continue
		}
		f := steps.Finding{Host: host.Host, Check: preflight.Connectivity, What: host.Err.Error(), Advice: strings.Join(steps.Advice(err), "; ")}
		var sudo *connector.SudoError
		var dial *connector.DialError
		switch {
		case errors.As(err, &sudo):
			f.Check = preflight.Sudo
		case errors.As(err, &dial) && f.Advice == "":
			f.Advice = "check the host's address and port in the config, the network and firewalls on the way, and that sshd runs on the host"
		case f.Advice == "":
			f.Advice = "test the connection by hand: ssh " + host.Address
		}
		out = append(out, f)
	}
	return out
}

// ChecksOf returns the names of the checks of p for a cluster that can be skipped.
func ChecksOf(p plan.Pipeline, c *manifest.Cluster) ([]string, error) {
	g, err := plan.Build(p, plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version})
	if err != nil {
		return nil, err
	}
	out := preflight.Names()
	for _, n := range g.Nodes {
		if m := n.Step.Meta(); m.ReadOnly && m.Always && len(m.Writes) == 0 && !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	return out, nil
}
