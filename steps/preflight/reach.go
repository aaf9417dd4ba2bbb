package preflight

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// A connection attempt ends after reachTimeout, and reachAtOnce of them run in parallel
// from one host: a hundred unreachable hosts take as long as one.
const (
	reachTimeout = 2 * time.Second
	reachAtOnce  = 128
)

func reachCheck() Check {
	return Check{
		Name: "preflight.reachability", Question: "whether the hosts reach each other on the cluster's ports", Levels: "error, warning, note", Compares: true, Slow: true,
		Limits: fmt.Sprintf("an answer within %s, which may be a refused connection; only a warning if kubexm will stop the other host's firewall", reachTimeout),
		Reads:  "a connection that the host's sshd opens for kubexm", Source: "nodes to API servers and registry, masters to kubelets and etcd, etcd members to each other",
		look: checkReach,
	}
}

// goal is one port of one host that another has to reach.
type goal struct {
	host string
	port uint16
	who  string // the program that listens on it
}

// roster lists the cluster's ports: which hosts listen, and which have to reach them.
type roster struct {
	ports []part.Port
	names map[part.Group]map[string]bool
}

func newRoster(c *manifest.Cluster) roster {
	r := roster{names: map[part.Group]map[string]bool{}}
	for _, p := range part.Ports(c) {
		if len(p.From) == 0 {
			continue
		}
		r.ports = append(r.ports, p)
		for _, g := range slices.Concat(p.On, p.From) {
			if r.names[g] != nil {
				continue
			}
			r.names[g] = map[string]bool{}
			for _, name := range g.Names(c) {
				r.names[g][name] = true
			}
		}
	}
	return r
}

// goals returns the ports of the host to that the host from has to reach.
func (r roster) goals(from, to string) []goal {
	in := func(groups []part.Group, host string) bool {
		return slices.ContainsFunc(groups, func(g part.Group) bool { return r.names[g][host] })
	}
	var out []goal
	for _, p := range r.ports {
		if in(p.On, to) && in(p.From, from) {
			out = append(out, goal{to, p.Number, p.Reached})
		}
	}
	return out
}

func checkReach(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	ours, err := Joined(ctx, h)
	if err != nil || ours { // it reaches them already, or its steps report why not
		return nil, err
	}
	all, err := peers(h, o)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var untested error
	lost := map[goal][]string{} // hosts by port and program, for one finding each
	roles := newRoster(h.Cluster)
	var g errgroup.Group
	g.SetLimit(reachAtOnce)
	for _, p := range all {
		a, _, _ := inside(p.Host, p.facts)
		if p.Name == h.Name || !a.IsValid() {
			continue
		}
		for _, x := range roles.goals(h.Name, p.Name) {
			g.Go(func() error {
				what, why := h.Reach(ctx, net.JoinHostPort(a.String(), strconv.Itoa(int(x.port))), reachTimeout)
				mu.Lock()
				defer mu.Unlock()
				switch what {
				case runner.Reached:
				case runner.Untested:
					untested = why
				case runner.Unreached:
					key := goal{port: x.port, who: x.who}
					if len(p.facts.Firewalls) > 0 && !h.Cluster.Spec.System.Keeps(manifest.KeepFirewall) {
						key.host = "stopped" // kubexm stops the firewall that may block it
					}
					lost[key] = append(lost[key], p.Name)
				}
				return ctx.Err()
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out steps.Findings
	for key, hosts := range lost {
		slices.Sort(hosts)
		f := steps.Finding{What: fmt.Sprintf("cannot reach port %d of %s, where %s will listen", key.port, names(hosts), key.who), Advice: "open the port between these hosts, in their firewalls and in the network"}
		if key.host != "" {
			f.Warning, f.Advice = true, "no action needed if their own firewall blocks it: kubexm stops that firewall"
		}
		out = append(out, f)
	}
	slices.SortFunc(out, compareFindings)
	if untested != nil {
		out = append(out, steps.Finding{Note: true, What: "connections to the other hosts not tested: sshd forwards no connections", Advice: "set AllowTcpForwarding local in sshd_config during the check, or test the connections by hand"})
	}
	return out, nil
}
