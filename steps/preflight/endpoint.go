package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

func endpointCheck() Check {
	return Check{
		Name: "preflight.endpoint", Question: "whether the host reaches an external load balancer or external DNS name for the API servers", Levels: "error, warning, note", On: OnNodes, Slow: true, Endpoint: true,
		Limits: fmt.Sprintf("the name resolves; the address answers within %s: no answer is an error, a connection refused by a load balancer is a warning", reachTimeout),
		Reads:  "a connection that the host's sshd opens for kubexm", Source: "kubeadm and all kubelets reach the API servers through it, and wait for minutes if they cannot",
		look: checkEndpoint,
	}
}

// endpoint returns where a host finds the API servers: the address if the config has
// one, otherwise the name, which the host resolves.
func endpoint(c *manifest.Cluster) string {
	e := part.EndpointOf(c)
	if e.SiteDNS {
		for _, x := range c.Spec.Extra.Hosts { // kubexm writes them into /etc/hosts later
			if x.Domain == e.Domain {
				return net.JoinHostPort(x.Address, strconv.Itoa(e.Port))
			}
		}
	}
	return e.At()
}

// checkEndpoint connects to the endpoint before any API server runs: a load balancer may
// refuse the connection then, and a name may resolve to masters that do not listen yet.
func checkEndpoint(ctx context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	c := h.Cluster
	ours, err := Joined(ctx, h)
	if err != nil || ours { // it reaches them already, or its steps report why not
		return nil, err
	}
	at := endpoint(c)
	what, why := h.Reach(ctx, at, reachTimeout)
	balancer := part.EndpointOf(c).Front == part.ExternalFront
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case what == runner.Untested:
		return steps.Findings{{Note: true, What: "connection to " + at + " not tested: sshd forwards no connections",
			Advice: "set AllowTcpForwarding local in sshd_config during the check, or test the connection by hand"}}, nil
	case errors.Is(why, runner.ErrNoName):
		return steps.Findings{unnamed(c)}, nil
	case what == runner.Unreached && balancer:
		return steps.Findings{{What: fmt.Sprintf("cannot reach the load balancer at %s: %v", at, why),
			Advice: "configure it to forward TCP from this host to " + servers(c) + "; if it answers only once a server behind it does, skip this check: --skip-checks endpoint"}}, nil
	case what == runner.Unreached:
		return steps.Findings{{What: fmt.Sprintf("cannot reach %s: %v", at, why),
			Advice: "point the name at the masters or at a load balancer in front of them, and open the port"}}, nil
	case errors.Is(why, runner.ErrRefused) && balancer:
		return steps.Findings{{Warning: true, What: "the load balancer at " + at + " refuses connections",
			Advice: "no action needed if it opens the port once a server behind it answers; otherwise configure it to forward TCP to " + servers(c)}}, nil
	}
	return nil, nil
}

// unnamed reports a name that the host cannot resolve. Name servers that kubexm
// configures later may resolve it.
func unnamed(c *manifest.Cluster) steps.Finding {
	f := steps.Finding{What: "cannot resolve " + part.EndpointOf(c).Domain,
		Advice: "add a record to the site's name servers; or remove spec.controlPlaneEndpoint.externalDNS, and kubexm writes the name into /etc/hosts"}
	if len(c.Spec.Extra.Resolves) > 0 {
		f.Warning, f.Advice = true, "no action needed if the name servers of spec.extra.resolves resolve it: kubexm configures them first"
	}
	return f
}

// servers lists the backends of a load balancer.
func servers(c *manifest.Cluster) string { return strings.Join(part.EndpointOf(c).Backends(), ", ") }
