package containerd

import (
	"fmt"
	"path"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

const certsDir = "/etc/containerd/certs.d"

// mirrored returns the files for m. others are the tables of docker.io's mirrors, which are asked for
// what the site's registry lacks.
func mirrored(m *cri.Mirrors, others tables) []op.Resource {
	if m == nil {
		return nil
	}
	rs := certFiles(siteFiles, m.Certs)
	for _, u := range m.Upstreams {
		after := others
		if u != dockerIO {
			after = nil
		}
		rs = append(rs, upstream(m, u, after)...)
	}
	rs = append(rs, mirror(m, m.Host, "", nil)...)
	return append(rs, mirror(m, "_default", "", nil)...)
}

// upstream returns the files that redirect pulls from one upstream registry to the site's
// registry.
func upstream(m *cri.Mirrors, host string, others tables) []op.Resource {
	return mirror(m, host, path.Join(m.Namespace, registry.Prefix(host)), others)
}

// mirror returns the hosts.toml of one registry, with its folder.
func mirror(m *cri.Mirrors, host, prefix string, others tables) []op.Resource {
	return hostsFile(host, func(h *steps.Host) ([]byte, error) { return hosts(m, h, prefix, others) })
}

// hosts returns the content of one hosts.toml. Its server is the site's registry, too: a pull
// of an image that it lacks fails, and no request is sent to the internet.
func hosts(m *cri.Mirrors, h *steps.Host, prefix string, others tables) ([]byte, error) {
	scheme := "https://"
	if m.PlainHTTP {
		scheme = "http://"
	}
	base, override := scheme+m.Host, false
	if prefix != "" {
		base, override = base+"/v2/"+prefix, true
	}
	user, password, err := m.Login(h)
	if err != nil {
		return nil, err
	}
	certs, err := m.Certs(h)
	if err != nil {
		return nil, err
	}
	after, err := others.text(h)
	if err != nil {
		return nil, err
	}
	e := endpoint{base: base, override: override, insecure: m.Insecure, user: user, password: password, certs: certs, files: siteFiles}
	return []byte(fmt.Sprintf("server = %q\ncapabilities = [\"pull\", \"resolve\"]\n", base) + e.fields("", "") + "\n" + e.table() + after), nil
}
