package installer

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
)

// EndpointStatus is the state of a cluster's control plane endpoint.
type EndpointStatus struct {
	Name string `json:"name"`          // name and port in kubeconfigs
	VIP  string `json:"vip,omitempty"` // the virtual IP; "" unless kubexm's load balancers hold it
	// Workers are the workers with a load balancer of their own.
	Workers []BalancerStatus `json:"workers,omitempty"`
	// Holders are the hosts with the virtual IP: one, unless something is wrong.
	Holders   []string         `json:"holders,omitempty"`
	Balancers []BalancerStatus `json:"balancers,omitempty"`
	Servers   []ServerStatus   `json:"servers"`
}

// kubeVIP is the Program of a BalancerStatus.
const kubeVIP = "kube-vip"

// BalancerStatus is the state of a load balancer that kubexm installed, on a host of its own or on
// a worker, or of kube-vip on a master.
type BalancerStatus struct {
	Host    string `json:"host"`
	Program string `json:"program,omitempty"` // kube-vip, if it is that one
	Address string `json:"address"`
	// State is active (it has the virtual IP), standby, fault (its load balancer does not
	// answer), stopped (a service does not run) or unknown. On a worker it is running, stopped
	// or unknown.
	State string `json:"state"`
	// Since is when keepalived entered its state, by the host's clock, or when the master took
	// kube-vip's lease.
	Since   *time.Time `json:"since,omitempty"`
	Stopped []string   `json:"stopped,omitempty"`
	// Down are the API servers to which the load balancer of a worker forwards nothing.
	Down  []string `json:"down,omitempty"`
	Error string   `json:"error,omitempty"`
}

// ServerStatus is the state of one API server.
type ServerStatus struct {
	Host    string `json:"host"`
	Address string `json:"address"` // with the port
	// State is up or down as the load balancer By sees it. Where no load balancer checks the
	// API servers, it is ready or not ready, by the API server's own answer, or unknown.
	State string     `json:"state"`
	By    string     `json:"by,omitempty"`
	Since *time.Time `json:"since,omitempty"` // when State last changed
	Check string     `json:"check,omitempty"` // result of the load balancer's last check
	Error string     `json:"error,omitempty"`
}

// The states of a BalancerStatus and of a ServerStatus.
const (
	EndpointActive   = "active"
	EndpointStandby  = "standby"
	EndpointFault    = "fault"
	EndpointStopped  = "stopped"
	EndpointRunning  = "running"
	EndpointUnknown  = "unknown"
	EndpointUp       = "up"
	EndpointDown     = "down"
	EndpointReady    = "ready"
	EndpointNotReady = "not ready"
)

// Healthy reports whether one load balancer host has the virtual IP, all others stand by, those
// on workers run, and all API servers are in use.
func (e EndpointStatus) Healthy() bool {
	return (e.VIP == "" || len(e.Holders) == 1) &&
		!slices.ContainsFunc(e.Balancers, func(b BalancerStatus) bool { return b.State != EndpointActive && b.State != EndpointStandby }) &&
		!slices.ContainsFunc(e.Workers, func(b BalancerStatus) bool { return b.State != EndpointRunning || len(b.Down) > 0 }) &&
		!slices.ContainsFunc(e.Servers, func(s ServerStatus) bool { return s.State != EndpointUp && s.State != EndpointReady })
}

// Endpoint reads the state of the control plane endpoint from the load balancer hosts and the
// masters of the session. Hosts that the session did not reach have the state unknown, with
// the reason in unreached.
func (s *Session) Endpoint(ctx context.Context, unreached HostErrors) (EndpointStatus, error) {
	e := part.EndpointOf(s.Cluster)
	out := EndpointStatus{Name: e.Name()}
	why := unreached.byHost()
	var g errgroup.Group
	g.SetLimit(max(s.Parallel, 1))
	var reports []loadbalancer.Status
	if e.Front == part.HostsFront || e.Front == part.KubeVIPFront {
		hosts := part.Balancers.Hosts(s.Cluster)
		if e.Front == part.KubeVIPFront {
			hosts = part.Masters.Hosts(s.Cluster)
		}
		out.VIP, out.Balancers, reports = e.VIP, make([]BalancerStatus, len(hosts)), make([]loadbalancer.Status, len(hosts))
		for i, h := range hosts {
			g.Go(func() error {
				out.Balancers[i], reports[i] = s.balancer(ctx, h, why[h.Name])
				return nil
			})
		}
	}
	workers := part.WorkerBalancers.Hosts(s.Cluster)
	out.Workers = make([]BalancerStatus, len(workers))
	for i, h := range workers {
		g.Go(func() error {
			out.Workers[i] = s.workerBalancer(ctx, h, e.OnWorker(), why[h.Name])
			return nil
		})
	}
	masters := part.Masters.Hosts(s.Cluster)
	out.Servers = make([]ServerStatus, len(masters))
	for i, h := range masters {
		g.Go(func() error {
			out.Servers[i] = s.server(ctx, h, e.Backends()[i], why[h.Name])
			return nil
		})
	}
	_ = g.Wait() // errors are part of the states
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	by := -1
	for i, b := range out.Balancers {
		if reports[i].Holds {
			out.Holders = append(out.Holders, b.Host)
		}
		if reports[i].Servers != nil && (by < 0 || reports[i].Holds && !reports[by].Holds) {
			by = i
		}
	}
	if by >= 0 {
		out.seenBy(out.Balancers[by].Host, reports[by].Servers)
	}
	return out, nil
}

// seenBy replaces the API servers' own answers by what a load balancer says of them.
func (e *EndpointStatus) seenBy(balancer string, servers []loadbalancer.Server) {
	for i := range e.Servers {
		s := &e.Servers[i]
		at := slices.IndexFunc(servers, func(x loadbalancer.Server) bool { return x.Name == s.Host })
		if at < 0 {
			s.State, s.Error = EndpointDown, fmt.Sprintf("the load balancer on %s does not have %s among its servers", balancer, s.Host)
			continue
		}
		seen := servers[at]
		s.State, s.By, s.Since, s.Check = EndpointDown, balancer, stamp(seen.Since), seen.Check
		if seen.Up {
			s.State = EndpointUp
		}
	}
}

func (s *Session) balancer(ctx context.Context, m manifest.Host, unreached *HostError) (BalancerStatus, loadbalancer.Status) {
	b := BalancerStatus{Host: m.Name, Address: net.JoinHostPort(s.Cluster.NodeAddresses(m)[0], strconv.Itoa(s.Cluster.Spec.ControlPlaneEndpoint.Port)), State: EndpointUnknown}
	if part.EndpointOf(s.Cluster).Front == part.KubeVIPFront {
		b.Program = kubeVIP
	}
	if unreached != nil {
		b.Error = unreached.Error()
	}
	h := s.Host(m)
	if h == nil {
		return b, loadbalancer.Status{}
	}
	statusOf := loadbalancer.StatusOf
	if b.Program != "" {
		statusOf = loadbalancer.KubeVIPStatusOf
	}
	report, err := statusOf(ctx, h, s.Cluster)
	if err != nil {
		b.Error = (&HostError{Host: m.Name, Address: m.Address, Err: err}).Error()
	}
	b.Since, b.Stopped = stamp(report.Since), report.Stopped
	switch {
	case len(report.Stopped) > 0:
		b.State = EndpointStopped
	case report.Holds:
		b.State = EndpointActive
	case report.State == "FAULT":
		b.State = EndpointFault
	case err == nil:
		b.State = EndpointStandby
	}
	return b, report
}

func (s *Session) workerBalancer(ctx context.Context, m manifest.Host, at string, unreached *HostError) BalancerStatus {
	b := BalancerStatus{Host: m.Name, Address: at, State: EndpointUnknown}
	if unreached != nil {
		b.Error = unreached.Error()
	}
	h := s.Host(m)
	if h == nil {
		return b
	}
	report, err := loadbalancer.WorkerStatusOf(ctx, h, s.Cluster)
	if err != nil {
		b.Error = (&HostError{Host: m.Name, Address: m.Address, Err: err}).Error()
		return b
	}
	if b.State = EndpointStopped; report.Runs {
		b.State = EndpointRunning
	}
	for _, server := range report.Servers {
		if !server.Up {
			b.Down = append(b.Down, server.Name)
		}
	}
	return b
}

func (s *Session) server(ctx context.Context, m manifest.Host, at string, unreached *HostError) ServerStatus {
	out := ServerStatus{Host: m.Name, Address: at, State: EndpointUnknown}
	if unreached != nil {
		out.Error = unreached.Error()
	}
	h := s.Host(m)
	if h == nil {
		return out
	}
	ready, err := controlplane.APIServerReady(ctx, h)
	switch {
	case err != nil:
		out.Error = (&HostError{Host: m.Name, Address: m.Address, Err: err}).Error()
	case ready:
		out.State = EndpointReady
	default:
		out.State = EndpointNotReady
	}
	return out
}

// stamp returns nil for the zero time.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// String returns one word for a balancer's state, with the services that do not run, or the API
// servers that get no requests.
func (b BalancerStatus) String() string {
	if len(b.Down) > 0 {
		return b.State + ", down: " + strings.Join(b.Down, ", ")
	}
	if len(b.Stopped) > 0 {
		return b.State + ": " + strings.Join(b.Stopped, ", ")
	}
	return b.State
}
