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

// Where says on which hosts a check is made.
type Where int

// The hosts of a check.
const (
	Everywhere Where = iota
	OnNodes          // those that run a kubelet
	OnFirst          // it looks at all hosts at once
)

// Options are what checks are told beside the host.
type Options struct {
	Systems []string // that the bundle has packages of, as packages.SystemOf names them
	Modules []string // of the kernel, that nodes need
	Writes  []Write  // what goes to which hosts
	Hosts   []string // all that are looked at
}

// Check is one thing that is looked at before anything is changed. The texts are
// what docs/preflight.md says of it.
type Check struct {
	Name     string // of its step: "preflight.memory"
	Asks     string
	Levels   string // of its findings, the worst first
	Limits   string
	Reads    string // on the host
	Source   string // of the limits
	On       Where
	Compares bool // reads the facts of other hosts; all that are made on the first do
	Slow     bool // asks the host again
	Packages bool // made where the bundle holds packages alone
	Bundle   bool // needs a bundle
	Endpoint bool // made where what leads to the API servers exists before them

	needs func(Options) []manifest.Need
	look  func(context.Context, *steps.Host, Options) (steps.Findings, error)
}

// Step gives the step of c.
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

// Checks lists all checks.
func Checks() []Check {
	return slices.Concat(machineChecks(), diskChecks(), nodeChecks(), systemChecks(), timeChecks(), networkChecks(), nameChecks(), usedChecks(), []Check{endpointCheck(), reachCheck()})
}

// The checks that are made when a host is reached, and without which nothing else is.
const (
	Connectivity = "preflight.connectivity"
	Sudo         = "preflight.sudo"
)

// Names lists the names of all checks that can be left out.
func Names() []string {
	var out []string
	for _, c := range Checks() {
		out = append(out, c.Name)
	}
	return out
}

// facts is what each host is, for the checks that compare hosts.
var facts = steps.NewKey[runner.Facts]("preflight.facts")

// GatherFacts gives what the host is to the checks that compare hosts.
func GatherFacts() steps.Step {
	return &op.Do{
		M:   steps.Meta{Name: "preflight.gather-facts", Always: true, LooksOnly: true, Timeout: time.Minute, Writes: []steps.AnyKey{facts}},
		Act: func(_ context.Context, h *steps.Host) error { return facts.On(h.Name).Put(h, h.Facts) },
	}
}

// peer is one of the hosts that are looked at.
type peer struct {
	manifest.Host
	facts runner.Facts
}

// peers gives all hosts that are looked at, in the config's order.
func peers(h *steps.Host, o Options) ([]peer, error) {
	looked := map[string]bool{}
	for _, name := range o.Hosts {
		looked[name] = true
	}
	var out []peer
	for _, x := range h.Cluster.Spec.Hosts {
		if !looked[x.Name] {
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

// compare is a look at all hosts at once.
func compare(look func(*manifest.Cluster, []peer) steps.Findings) func(context.Context, *steps.Host, Options) (steps.Findings, error) {
	return func(_ context.Context, h *steps.Host, o Options) (steps.Findings, error) {
		all, err := peers(h, o)
		if err != nil {
			return nil, err
		}
		return look(h.Cluster, all), nil
	}
}

// repositories are those that the bundle may have packages for a host in.
func repositories(o Options) []manifest.Need {
	var out []manifest.Need
	for _, s := range o.Systems {
		out = append(out, manifest.Need{Kind: manifest.Packages, Name: s})
	}
	return out
}

// byFacts is a look at what the host has said of itself already.
func byFacts(look func(*steps.Host) steps.Findings) func(context.Context, *steps.Host, Options) (steps.Findings, error) {
	return func(_ context.Context, h *steps.Host, _ Options) (steps.Findings, error) { return look(h), nil }
}

// ShortName is a check's name as tables have it, and as --skip-checks takes it.
func ShortName(name string) string { return strings.TrimPrefix(name, "preflight.") }
