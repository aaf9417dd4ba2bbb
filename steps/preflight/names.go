package preflight

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// hostName is the form of a host name of RFC 1123, in lower case as Kubernetes requires
// of node names.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// askTimeout limits one connection attempt to a name server.
const askTimeout = 2 * time.Second

func nameChecks() []Check {
	return []Check{
		{
			Name: "preflight.host-name", Question: "whether the host name is a valid node name and does not resolve to a loopback address", Levels: "error, warning, note", On: OnNodes,
			Limits: "RFC 1123, in lower case, at most 253 bytes; an error if spec.system.keep contains hostname, otherwise kubexm sets the host name", Reads: "/proc/sys/kernel/hostname, /etc/hosts", Source: "Kubernetes' rules for node names",
			look: byFacts(checkHostName),
		},
		{
			Name: "preflight.resolv-conf", Question: "whether /etc/resolv.conf lists a name server that pods can use", Levels: "error, warning", On: OnNodes,
			Limits: "the file exists and has a nameserver line; a loopback address is accepted only for systemd-resolved", Reads: "/etc/resolv.conf, /run/systemd/resolve/resolv.conf", Source: "a kubelet starts no pod without the file, and CoreDNS forwards queries to its name servers",
			look: byFacts(checkResolvConf),
		},
		{
			Name: "preflight.name-servers", Question: "whether the host reaches a name server", Levels: "warning, note", On: OnNodes, Slow: true,
			Limits: fmt.Sprintf("one of them accepts a connection to TCP port 53 within %s", askTimeout), Reads: "a connection that the host's sshd opens for kubexm", Source: "only a warning, because a name server may answer on UDP only",
			look: checkNameServers,
		},
	}
}

func checkHostName(h *steps.Host) steps.Findings {
	name := h.Facts.Hostname
	var out steps.Findings
	if !hostName.MatchString(name) || len(name) > 253 {
		f := steps.Finding{What: fmt.Sprintf("the host name %q is not a valid node name", name), Advice: "no action needed: kubexm sets it to the name in spec.hosts", Warning: true}
		if h.Cluster.Spec.System.Keeps(manifest.KeepHostname) {
			f.Warning, f.Advice = false, "set a name of lower case letters, digits and dashes with hostnamectl set-hostname; or remove hostname from spec.system.keep"
		}
		out = append(out, f)
	}
	for _, a := range h.Facts.HostnameAddresses {
		if a.IsLoopback() {
			// Debian's installer writes 127.0.1.1: usual there, and no mistake.
			out = append(out, steps.Finding{What: fmt.Sprintf("/etc/hosts maps the host name to %s", a), Advice: "no action needed: kubexm removes it from that line and adds it to the host's own address", Warning: a != netip.MustParseAddr("127.0.1.1"), Note: a == netip.MustParseAddr("127.0.1.1")})
			break
		}
	}
	return out
}

// nameServers returns the name servers that the host's queries reach: those behind
// systemd-resolved, if that is what /etc/resolv.conf lists.
func nameServers(r runner.Resolv) []string {
	if strings.HasPrefix(r.Kind, "systemd-resolved") {
		return r.Upstream
	}
	return r.Nameservers
}

func checkResolvConf(h *steps.Host) steps.Findings {
	r := h.Facts.Resolv
	if len(h.Cluster.Spec.Extra.Resolves) > 0 && !r.Missing {
		return nil // they are added
	}
	const advice = "add a name server to the file or to spec.extra.resolves: pods use it to resolve names outside the cluster"
	switch servers := nameServers(r); {
	case r.Missing:
		return steps.Findings{{What: "/etc/resolv.conf does not exist", Advice: advice}}
	case len(servers) == 0:
		return steps.Findings{{What: "/etc/resolv.conf lists no name server", Advice: advice}}
	case len(h.Cluster.Spec.DNS.CoreDNS.UpstreamDNSServers) == 0:
		for _, s := range servers {
			if a, err := netip.ParseAddr(s); err == nil && a.IsLoopback() {
				return steps.Findings{{What: fmt.Sprintf("/etc/resolv.conf lists %s, which is CoreDNS itself inside its pod", s), Advice: "set spec.dns.coredns.upstreamDNSServers to the name server behind it", Warning: true}}
			}
		}
	}
	return nil
}

// checkNameServers connects to each name server from the host. One that answers is
// enough.
func checkNameServers(ctx context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	servers := nameServers(h.Facts.Resolv)
	if len(servers) == 0 {
		return nil, nil // another check reports it
	}
	got := make([]runner.Reach, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { got[i], _ = h.Reach(ctx, net.JoinHostPort(s, "53"), askTimeout) })
	}
	wg.Wait()
	worst := runner.Unreached
	for _, g := range got {
		switch g {
		case runner.Reached:
			return nil, ctx.Err()
		case runner.Untested:
			worst = g
		}
	}
	if worst == runner.Untested {
		return steps.Findings{{What: "connections to its name servers not tested: sshd forwards no connections", Advice: "set AllowTcpForwarding local in sshd_config during the check, or test the connections by hand", Note: true}}, ctx.Err()
	}
	return steps.Findings{{What: fmt.Sprintf("cannot reach any of its name servers %s by TCP", names(servers)), Advice: "repair the network, or list other name servers in /etc/resolv.conf", Warning: true}}, ctx.Err()
}
