package preflight

import (
	"context"
	"errors"
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
	of := rosters()
	return Check{
		Name: "preflight.reachability", Question: "whether the hosts reach each other on the cluster's ports", Levels: "error, warning, note", Compares: true, Slow: true,
		Limits: fmt.Sprintf("an answer within %s, which may be a refused connection, but not of the NFS server; only a warning if kubexm will stop the other host's firewall", reachTimeout),
		Reads:  "a connection that the host's sshd opens for kubexm", Source: "nodes to API servers, registry and the NFS server of spec.storage, masters to kubelets and etcd, etcd members to each other",
		look: func(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
			out, err := checkReach(ctx, h, o, of(h.Cluster).goals(h.Name))
			if err != nil || !part.HasNFS(h.Cluster) || !part.Nodes.In(h.Cluster, h.Name) {
				return out, err
			}
			server, err := reachNFS(ctx, h)
			return append(out, server...), err
		},
	}
}

// goal is one port of one host that another has to reach.
type goal struct {
	host string
	port uint16
	who  string // the program that listens on it
}

// roster lists the cluster's ports: which hosts listen, and which have to reach them. It is computed once for
// all hosts of a run.
type roster struct {
	cluster *manifest.Cluster
	ports   []part.Port
	on      [][]string        // by port: the hosts that listen
	from    []map[string]bool // by port: the hosts that have to reach them
}

func newRoster(c *manifest.Cluster) *roster {
	r := &roster{cluster: c}
	names := map[part.Group][]string{}
	all := func(groups []part.Group) (out []string) {
		for _, g := range groups {
			if _, ok := names[g]; !ok {
				names[g] = g.Names(c)
			}
			out = append(out, names[g]...)
		}
		return out
	}
	for _, p := range part.Ports(c) {
		if len(p.From) == 0 {
			continue
		}
		on := all(p.On)
		slices.Sort(on)
		from := map[string]bool{}
		for _, name := range all(p.From) {
			from[name] = true
		}
		r.ports, r.on, r.from = append(r.ports, p), append(r.on, slices.Compact(on)), append(r.from, from)
	}
	return r
}

// goals returns the ports of other hosts that the host from has to reach.
func (r *roster) goals(from string) []goal {
	var out []goal
	for i, p := range r.ports {
		if !r.from[i][from] {
			continue
		}
		for _, host := range r.on[i] {
			if host != from {
				out = append(out, goal{host, p.Number, p.Reached})
			}
		}
	}
	return out
}

// rosters returns a function that returns the roster of a cluster, the last one of which it remembers.
func rosters() func(*manifest.Cluster) *roster {
	var mu sync.Mutex
	var last *roster
	return func(c *manifest.Cluster) *roster {
		mu.Lock()
		defer mu.Unlock()
		if last == nil || last.cluster != c {
			last = newRoster(c)
		}
		return last
	}
}

func checkReach(ctx context.Context, h *steps.Host, o Options, goals []goal) (steps.Findings, error) {
	ours, err := Joined(ctx, h)
	if err != nil || ours { // it reaches them already, or its steps report why not
		return nil, err
	}
	known := map[string]*peer{}
	var mu sync.Mutex
	var untested error
	lost := map[goal][]string{} // hosts by port and program, for one finding each
	var g errgroup.Group
	g.SetLimit(reachAtOnce)
	for _, x := range goals {
		p, ok := known[x.host]
		if !ok {
			if p, err = peerNamed(h, o, x.host); err != nil {
				return nil, err
			}
			known[x.host] = p
		}
		if p == nil { // it is not checked
			continue
		}
		a, _, _ := inside(p.Host, p.facts)
		if !a.IsValid() {
			continue
		}
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

// nfsPort is where an NFS server listens (RFC 7530, section 3.1).
const nfsPort = "2049"

// reachNFS connects to the NFS server that volumes are on.
func reachNFS(ctx context.Context, h *steps.Host) (steps.Findings, error) {
	at := net.JoinHostPort(h.Cluster.Spec.Storage.NFS.Server, nfsPort)
	what, why := h.Reach(ctx, at, reachTimeout)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case what == runner.Untested:
		return steps.Findings{{Note: true, What: "connection to the NFS server at " + at + " not tested: sshd forwards no connections",
			Advice: "set AllowTcpForwarding local in sshd_config during the check, or test the connection by hand"}}, nil
	case errors.Is(why, runner.ErrNoName):
		return steps.Findings{{What: "cannot resolve the NFS server " + h.Cluster.Spec.Storage.NFS.Server, Advice: "write its IP address into spec.storage.nfs.server, or add a record to the site's name servers"}}, nil
	case why != nil:
		return steps.Findings{{What: fmt.Sprintf("cannot reach the NFS server at %s: %v", at, why), Advice: "start the server, export spec.storage.nfs.path to all nodes, and open the port"}}, nil
	}
	return nil, nil
}
