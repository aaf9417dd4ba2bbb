package preflight

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Where selects the hosts that a check runs on.
type Where int

// The hosts of a check.
const (
	Everywhere  Where = iota
	OnNodes           // those that run a kubelet
	OnFirst           // once, on the first host, for all hosts
	OnBalancers       // those that may hold the virtual IP: with the role loadbalancer, or the masters with kube-vip
)

// Options is the input of checks beside the host.
type Options struct {
	Systems []string // operating systems that the bundle has packages for, in the form of packages.SystemOf
	Modules []string // kernel modules that nodes need
	Writes  []Write  // what the plan writes to which hosts
	Hosts   []string // names of all hosts that are checked
	// HoldsVIP tells that the cluster exists and its load balancers or kube-vip hold the virtual IP.
	HoldsVIP bool
}

// Check is one check of hosts, made before anything is changed. Its texts are those of
// docs/reference/preflight.md.
type Check struct {
	Name     string // of its step: "preflight.memory"
	Question string // the question it answers: "whether …"
	Levels   string // of its findings, the most severe first
	Limits   string
	Reads    string // on the host
	Source   string // of the limits
	On       Where
	Compares bool // reads the facts of other hosts; all checks with OnFirst do
	Slow     bool // runs further commands or connections on the host
	Packages bool // made only if the bundle contains packages
	Bundle   bool // needs a bundle
	Endpoint bool // made only if the load balancer or DNS name of the API servers exists before them

	needs func(Options) []manifest.Need
	look  func(context.Context, *steps.Host, Options) (steps.Findings, error)
}

// Step returns the step that makes the check.
func (c Check) Step(o Options) steps.Step {
	var opts []op.Option
	if c.Compares {
		opts = append(opts, func(m *steps.Meta) { m.Reads = append(m.Reads, facts) })
	}
	if c.needs != nil {
		opts = append(opts, func(m *steps.Meta) { m.Needs = c.needs(o) })
	}
	return op.Check(c.Name, func(ctx context.Context, h *steps.Host) (steps.Findings, error) { return c.look(ctx, h, o) }, opts...)
}

// Checks returns all checks.
func Checks() []Check {
	return slices.Concat(machineChecks(), diskChecks(), nodeChecks(), systemChecks(), timeChecks(), networkChecks(), nameChecks(), usedChecks(), []Check{endpointCheck(), virtualIPCheck(), reachCheck()})
}

// The checks that are made when kubexm connects to a host. No other check runs without
// them, and they cannot be skipped.
const (
	Connectivity = "preflight.connectivity"
	Sudo         = "preflight.sudo"
)

// Names returns the names of all checks that can be skipped.
func Names() []string {
	var out []string
	for _, c := range Checks() {
		out = append(out, c.Name)
	}
	return out
}

// facts are the facts of each host, for the checks that compare hosts.
var facts = steps.NewKey[runner.Facts]("preflight.facts")

// GatherFacts stores the host's facts for the checks that compare hosts.
func GatherFacts() steps.Step {
	return &op.Do{
		M:   steps.Meta{Name: "preflight.gather-facts", Always: true, ReadOnly: true, Timeout: time.Minute, Writes: []steps.AnyKey{facts}},
		Act: func(_ context.Context, h *steps.Host) error { return facts.On(h.Name).Put(h, h.Facts) },
	}
}

// peer is one of the hosts that are checked.
type peer struct {
	manifest.Host
	facts runner.Facts
}

// peers returns all hosts that are checked, in the config's order.
func peers(h *steps.Host, o Options) ([]peer, error) {
	checked := map[string]bool{}
	for _, name := range o.Hosts {
		checked[name] = true
	}
	var out []peer
	for _, x := range h.Cluster.Spec.Hosts {
		if !checked[x.Name] {
			continue
		}
		f, err := facts.On(x.Name).Get(h)
		if err != nil {
			return nil, err
		}
		out = append(out, peer{x, f})
	}
	return out, nil
}

// peerNamed returns one of them; nil if it is not checked.
func peerNamed(h *steps.Host, o Options, name string) (*peer, error) {
	x, ok := h.Cluster.Host(name)
	if !ok || !slices.Contains(o.Hosts, name) {
		return nil, nil
	}
	f, err := facts.On(name).Get(h)
	if err != nil {
		return nil, err
	}
	return &peer{x, f}, nil
}

// compare wraps a check of all hosts.
func compare(look func(*manifest.Cluster, []peer) steps.Findings) func(context.Context, *steps.Host, Options) (steps.Findings, error) {
	return func(_ context.Context, h *steps.Host, o Options) (steps.Findings, error) {
		all, err := peers(h, o)
		if err != nil {
			return nil, err
		}
		return look(h.Cluster, all), nil
	}
}

// repositories lists the package repositories of the bundle, one of which may be for the
// host.
func repositories(o Options) []manifest.Need {
	var out []manifest.Need
	for _, s := range o.Systems {
		out = append(out, manifest.Need{Kind: manifest.Packages, Name: s})
	}
	return out
}

// byFacts wraps a check that reads only the facts that were gathered before.
func byFacts(look func(*steps.Host) steps.Findings) func(context.Context, *steps.Host, Options) (steps.Findings, error) {
	return func(_ context.Context, h *steps.Host, _ Options) (steps.Findings, error) { return look(h), nil }
}

// ShortName returns a check's name without "preflight.", as tables print it and
// --skip-checks accepts it.
func ShortName(name string) string { return strings.TrimPrefix(name, "preflight.") }
