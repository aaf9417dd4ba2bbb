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

// hostName is the form of a name that RFC 1123 allows, in lower case as Kubernetes
// wants it of a node.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// askTimeout is how long a name server may take to answer a connection.
const askTimeout = 2 * time.Second

func nameChecks() []Check {
	return []Check{
		{
			Name: "preflight.host-name", Asks: "whether the host name is one that a node may have, and means no loopback address", Levels: "error, warning, note", On: OnNodes,
			Limits: "RFC 1123, in lower case, at most 253 bytes; an error where spec.system.keep names hostname, else it is set anew", Reads: "/proc/sys/kernel/hostname, /etc/hosts", Source: "the deployment matrix; the names of Kubernetes' nodes",
			look: byFacts(checkHostName),
		},
		{
			Name: "preflight.resolv-conf", Asks: "whether /etc/resolv.conf names a server that pods can ask, too", Levels: "error, warning", On: OnNodes,
			Limits: "it is there, and has a nameserver; one on a loopback address is systemd-resolved's", Reads: "/etc/resolv.conf, /run/systemd/resolve/resolv.conf", Source: "the deployment matrix; a kubelet starts no pod without the file, and CoreDNS asks what it names",
			look: byFacts(checkResolvConf),
		},
		{
			Name: "preflight.name-servers", Asks: "whether a name server is reached from the host", Levels: "warning, note", On: OnNodes, Slow: true,
			Limits: fmt.Sprintf("one of them answers at TCP port 53 within %s", askTimeout), Reads: "a connection that the host's sshd opens for kubexm", Source: "the deployment matrix; a warning, because a server may answer by UDP alone",
			look: checkNameServers,
		},
	}
}

func checkHostName(h *steps.Host) steps.Findings {
	name := h.Facts.Hostname
	var out steps.Findings
	if !hostName.MatchString(name) || len(name) > 253 {
		f := steps.Finding{What: fmt.Sprintf("the host name %q is not one that a node may have", name), Advice: "nothing: it will be set to the name in spec.hosts", Warning: true}
		if h.Cluster.Spec.System.Keeps(manifest.KeepHostname) {
			f.Warning, f.Advice = false, "use letters in lower case, digits and dashes: hostnamectl set-hostname; or take hostname out of spec.system.keep"
		}
		out = append(out, f)
	}
	for _, a := range h.Facts.HostnameAddresses {
		if a.IsLoopback() {
			// Debian's installer writes 127.0.1.1: a habit, and no mistake.
			out = append(out, steps.Finding{What: fmt.Sprintf("/etc/hosts says that the host name means %s", a), Advice: "nothing: it is taken off that line, and put onto the host's own address", Warning: a != netip.MustParseAddr("127.0.1.1"), Note: a == netip.MustParseAddr("127.0.1.1")})
			break
		}
	}
	return out
}

// nameServers are those that the host asks in the end.
func nameServers(r runner.Resolv) []string {
	if strings.HasPrefix(r.Kind, "systemd-resolved") {
		return r.Real
	}
	return r.Nameservers
}

func checkResolvConf(h *steps.Host) steps.Findings {
	r := h.Facts.Resolv
	if len(h.Cluster.Spec.Extra.Resolves) > 0 && !r.Missing {
		return nil // they are added
	}
	const advice = "name a server there, or in spec.extra.resolves: pods ask it for names outside of the cluster"
	switch servers := nameServers(r); {
	case r.Missing:
		return steps.Findings{{What: "/etc/resolv.conf is not there", Advice: advice}}
	case len(servers) == 0:
		return steps.Findings{{What: "/etc/resolv.conf names no server", Advice: advice}}
	case len(h.Cluster.Spec.DNS.CoreDNS.UpstreamDNSServers) == 0:
		for _, s := range servers {
			if a, err := netip.ParseAddr(s); err == nil && a.IsLoopback() {
				return steps.Findings{{What: fmt.Sprintf("/etc/resolv.conf names %s, which is CoreDNS itself inside its pod", s), Advice: "name the server behind it in spec.dns.coredns.upstreamDNSServers", Warning: true}}
			}
		}
	}
	return nil
}

// checkNameServers tries to reach each server from the host. That one answers is
// enough.
func checkNameServers(ctx context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	servers := nameServers(h.Facts.Resolv)
	if len(servers) == 0 {
		return nil, nil // another check tells
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
		return steps.Findings{{What: "not tested whether its name servers are reached: sshd forwards no connections", Advice: "allow it for a while (AllowTcpForwarding local in sshd_config), or test by hand", Note: true}}, ctx.Err()
	}
	return steps.Findings{{What: fmt.Sprintf("reaches none of its name servers %s by TCP", names(servers)), Advice: "mend the network, or name others in /etc/resolv.conf", Warning: true}}, ctx.Err()
}
