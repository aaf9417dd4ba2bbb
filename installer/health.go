package installer

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// Health is one aspect of a cluster's state.
type Health struct {
	Check    string   `json:"check"`
	Healthy  bool     `json:"healthy"`
	Detail   string   `json:"detail"`             // what was seen
	Problems []string `json:"problems,omitempty"` // each names its host
}

// expiresWithin is how long before its end a certificate is a problem.
const expiresWithin = 30 * 24 * time.Hour

// HealthOf checks a cluster: hosts, API servers, etcd, nodes, certificates, clocks and disks. It
// changes nothing. of returns a host, or nil if it was not reached; unreached has the reasons.
func HealthOf(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host, unreached HostErrors, now time.Time) ([]Health, error) {
	checks := []func(context.Context) Health{
		func(context.Context) Health { return hostHealth(c, of, unreached) },
		func(ctx context.Context) Health { return apiHealth(ctx, c, of) },
		func(ctx context.Context) Health { return storeHealth(ctx, c, of, unreached) },
		func(ctx context.Context) Health { return nodeHealth(ctx, c, of) },
		func(ctx context.Context) Health { return certificateHealth(ctx, c, of, now) },
		func(context.Context) Health { return clockHealth(c, of) },
		func(context.Context) Health { return diskHealth(c, of) },
	}
	out := make([]Health, len(checks))
	var g errgroup.Group
	for i, check := range checks {
		g.Go(func() error {
			out[i] = check(ctx)
			out[i].Healthy = len(out[i].Problems) == 0
			return nil
		})
	}
	_ = g.Wait() // errors are problems
	return out, context.Cause(ctx)
}

// reached returns those of some hosts that were reached.
func reached(hosts []manifest.Host, of func(manifest.Host) *steps.Host) []*steps.Host {
	var out []*steps.Host
	for _, m := range hosts {
		if h := of(m); h != nil {
			out = append(out, h)
		}
	}
	return out
}

func hostHealth(c *manifest.Cluster, of func(manifest.Host) *steps.Host, unreached HostErrors) Health {
	h := Health{Check: "hosts", Detail: fmt.Sprintf("%d of %d answer", len(reached(c.Spec.Hosts, of)), len(c.Spec.Hosts))}
	for _, e := range unreached {
		h.Problems = append(h.Problems, e.Error())
	}
	return h
}

func apiHealth(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host) Health {
	masters := part.Masters.Hosts(c)
	h, ready := Health{Check: "API"}, 0
	for _, m := range reached(masters, of) {
		ok, err := controlplane.APIServerReady(ctx, m)
		switch {
		case err != nil:
			h.Problems = append(h.Problems, fmt.Sprintf("API server of %s: %v", m.Name, err))
		case !ok:
			h.Problems = append(h.Problems, "the API server of "+m.Name+" is not ready: run crictl ps -a --name kube-apiserver on it")
		default:
			ready++
		}
	}
	h.Detail = fmt.Sprintf("%d of %d API servers are ready", ready, len(masters))
	return h
}

func storeHealth(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host, unreached HostErrors) Health {
	if part.StoreOf(c).Kind == part.External {
		return Health{Check: "etcd", Detail: "exists already: only the API servers check it"}
	}
	r, err := StoreReport(ctx, c, of, unreached)
	if err != nil {
		return Health{Check: "etcd", Detail: "no member answers", Problems: []string{err.Error()}}
	}
	h := Health{Check: "etcd", Detail: fmt.Sprintf("%d of %d members are healthy; etcd needs %d", r.Healthy, r.Voters, r.Quorum)}
	for _, m := range r.Members {
		for _, e := range m.Errors {
			h.Problems = append(h.Problems, fmt.Sprintf("member %s: %s", m.Name, e))
		}
	}
	return h
}

func nodeHealth(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host) Health {
	want := part.Nodes.Hosts(c)
	h := Health{Check: "nodes", Detail: "not read"}
	lead, err := NewLeadSelector(part.Masters.Hosts(c), of).Lead(ctx)
	if err != nil {
		h.Problems = []string{err.Error()}
		return h
	}
	ready, err := kubectl.NodesReady(ctx, of(lead))
	if err != nil {
		h.Problems = []string{fmt.Sprintf("the nodes cannot be read on %s: %s", lead.Name, strings.TrimSpace(err.Error()))}
		return h
	}
	count := 0
	for _, m := range want {
		if ready[m.Name] {
			count++
		} else {
			h.Problems = append(h.Problems, "node "+m.Name+" is not Ready: run kubectl describe node "+m.Name)
		}
	}
	h.Detail = fmt.Sprintf("%d of %d are Ready", count, len(want))
	return h
}

func certificateHealth(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host, now time.Time) Health {
	files := slices.Concat(controlplane.Certificates(), etcd.Certificates(), loadbalancer.Certificates(), registryd.Certificates())
	hosts := reached(c.Spec.Hosts, of)
	type found struct {
		ends     time.Time
		at       string
		problems []string
		count    int
	}
	all := make([]found, len(hosts))
	var g errgroup.Group
	g.SetLimit(32)
	for i, host := range hosts {
		g.Go(func() error {
			f := &all[i]
			for _, file := range files {
				text, err := host.ReadFile(ctx, file)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				var certs []*x509.Certificate
				if err == nil {
					certs, err = pki.Certificates(text)
				}
				if err != nil {
					f.problems = append(f.problems, fmt.Sprintf("%s on %s: %v", file, host.Name, err))
					continue
				}
				for _, cert := range certs {
					f.count++
					if f.at == "" || cert.NotAfter.Before(f.ends) {
						f.ends, f.at = cert.NotAfter, file+" on "+host.Name
					}
					if left := cert.NotAfter.Sub(now); left < expiresWithin {
						f.problems = append(f.problems, fmt.Sprintf("%s on %s %s", file, host.Name, ending(left, cert.NotAfter)))
					}
				}
			}
			return nil
		})
	}
	_ = g.Wait() // errors are problems
	var first found
	for _, f := range all {
		first.count += f.count
		first.problems = append(first.problems, f.problems...)
		if f.at != "" && (first.at == "" || f.ends.Before(first.ends)) {
			first.ends, first.at = f.ends, f.at
		}
	}
	h := Health{Check: "certificates", Problems: first.problems, Detail: "none were found"}
	if first.at != "" {
		h.Detail = fmt.Sprintf("%d; the first one %s: %s", first.count, ending(first.ends.Sub(now), first.ends), first.at)
	}
	return h
}

// ending describes the end of a certificate.
func ending(left time.Duration, at time.Time) string {
	if left <= 0 {
		return "has expired on " + at.Format(time.DateOnly)
	}
	return fmt.Sprintf("expires in %d days, on %s", int(left.Hours()/24), at.Format(time.DateOnly))
}

func clockHealth(c *manifest.Cluster, of func(manifest.Host) *steps.Host) Health {
	h := Health{Check: "time"}
	var most time.Duration
	for _, host := range reached(c.Spec.Hosts, of) {
		off := host.Facts.ClockOffset
		if most = max(most, off.Abs()); off.Abs() > preflight.MaxSkew {
			h.Problems = append(h.Problems, fmt.Sprintf("the clock of %s differs from this machine's by %s", host.Name, off.Round(100*time.Millisecond)))
		}
	}
	h.Detail = fmt.Sprintf("no clock is known to differ from this machine's by more than %s", most.Round(100*time.Millisecond))
	return h
}

func diskHealth(c *manifest.Cluster, of func(manifest.Host) *steps.Host) Health {
	h := Health{Check: "disk", Detail: "not read"}
	least, at := int64(101), ""
	for _, host := range reached(part.Nodes.Hosts(c), of) {
		var seen []string
		for _, need := range preflight.FreeDisk(c) {
			d, ok := host.Facts.Disk(need.Path)
			if !ok || d.Size == 0 || slices.Contains(seen, d.Mount) {
				continue
			}
			free := 100 * d.Free / d.Size
			if free < least {
				least, at = free, d.Mount+" on "+host.Name
			}
			if free < need.Percent {
				seen = append(seen, d.Mount)
				h.Problems = append(h.Problems, fmt.Sprintf("%s on %s has %d%% free; %s needs %d%%", d.Mount, host.Name, free, need.Path, need.Percent))
			}
		}
	}
	if at != "" {
		h.Detail = fmt.Sprintf("at least %d%% free: %s", least, at)
	}
	slices.SortFunc(h.Problems, strings.Compare)
	return h
}
