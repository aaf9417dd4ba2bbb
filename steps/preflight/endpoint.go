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
		Name: "preflight.endpoint", Asks: "whether a load balancer that exists, or the site's name for the API servers, is there", Levels: "error, warning, note", On: OnNodes, Slow: true, Endpoint: true,
		Limits: fmt.Sprintf("the name has an address; the address answers within %s: an error where nothing comes back, a warning where a load balancer refuses", reachTimeout),
		Reads:  "a connection that the host's sshd opens for kubexm", Source: "kubeadm and all kubelets reach the API servers through it, and wait for minutes where they cannot",
		look: checkEndpoint,
	}
}

// endpoint is where a host is to find the API servers: the address where the config has
// one, else the name, which the host looks up.
func endpoint(c *manifest.Cluster) string {
	e := part.EndpointOf(c)
	if e.SiteDNS {
		for _, x := range c.Spec.Extra.Hosts { // a line of /etc/hosts that is to be written
			if x.Domain == e.Domain {
				return net.JoinHostPort(x.Address, strconv.Itoa(e.Port))
			}
		}
	}
	return e.At()
}

// checkEndpoint tries it before any API server runs: a load balancer may refuse then,
// and a name may lead to masters where nobody listens.
func checkEndpoint(ctx context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	c := h.Cluster
	ours, err := Joined(ctx, h)
	if err != nil || ours { // it reaches them, or its steps say why not
		return nil, err
	}
	at := endpoint(c)
	what, why := h.Reach(ctx, at, reachTimeout)
	balancer := part.EndpointOf(c).Front == part.ExternalFront
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case what == runner.Untested:
		return steps.Findings{{Note: true, What: "not tested whether " + at + " is reached: sshd forwards no connections",
			Advice: "allow it for a while (AllowTcpForwarding local in sshd_config), or test by hand"}}, nil
	case errors.Is(why, runner.ErrNoName):
		return steps.Findings{unnamed(c)}, nil
	case what == runner.Unreached && balancer:
		return steps.Findings{{What: fmt.Sprintf("does not reach the load balancer at %s: %v", at, why),
			Advice: "have it pass TCP from there to " + servers(c) + "; one that is silent until a server behind it answers is passed by --skip-preflight endpoint"}}, nil
	case what == runner.Unreached:
		return steps.Findings{{What: fmt.Sprintf("does not reach %s: %v", at, why),
			Advice: "have the name mean the masters or a load balancer before them, and open the port"}}, nil
	case errors.Is(why, runner.ErrRefused) && balancer:
		return steps.Findings{{Warning: true, What: "the load balancer at " + at + " refuses connections",
			Advice: "nothing, if it opens the port once a server behind it answers; else have it pass TCP to " + servers(c)}}, nil
	}
	return nil, nil
}

// unnamed is a name that a host has no address of. Name servers that the host is yet
// to get may know it.
func unnamed(c *manifest.Cluster) steps.Finding {
	f := steps.Finding{What: "knows no address of " + part.EndpointOf(c).Domain,
		Advice: "have the site's name servers know it; or leave spec.controlPlaneEndpoint.externalDNS out, and kubexm writes it into /etc/hosts"}
	if len(c.Spec.Extra.Resolves) > 0 {
		f.Warning, f.Advice = true, "nothing, if the servers of spec.extra.resolves know it: they are added first"
	}
	return f
}

// servers lists what a load balancer has behind it.
func servers(c *manifest.Cluster) string { return strings.Join(part.EndpointOf(c).Backends(), ", ") }
