package containerd

import (
	"fmt"
	"path"
	"slices"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Mirrors say that every image comes from the site's registry.
type Mirrors struct {
	registry.Mapper
	Upstreams []string // upstream registries that the bundle has images of
	// Certs are what the registry's certificate is checked with and what it is shown.
	Certs func(*steps.Host) (registry.Certs, error)
	// Login gives the user who may pull.
	Login     func(*steps.Host) (user, password string, err error)
	PlainHTTP bool
	Insecure  bool // the registry's certificate is not checked
}

// Upstreams gives the registries of image references, each once.
func Upstreams(references []string) []string {
	var out []string
	for _, r := range references {
		n, err := reference.ParseNormalizedNamed(r)
		if err == nil && !slices.Contains(out, reference.Domain(n)) {
			out = append(out, reference.Domain(n))
		}
	}
	slices.Sort(out)
	return out
}

const certsDir = "/etc/containerd/certs.d"

// resources are the files for m; first are the tables of mirrors of docker.io that
// are asked before it.
func (m *Mirrors) resources(first tables) []op.Resource {
	if m == nil {
		return nil
	}
	rs := certFiles(siteFiles, m.Certs)
	for _, u := range m.Upstreams {
		before := first
		if u != dockerIO {
			before = nil
		}
		rs = append(rs, m.upstream(u, before)...)
	}
	rs = append(rs, m.file(m.Host, "", nil)...)
	return append(rs, m.file("_default", "", nil)...)
}

// upstream are the files that send pulls of one upstream's images to the site's registry.
func (m *Mirrors) upstream(host string, first tables) []op.Resource {
	return m.file(host, path.Join(m.Namespace, registry.Prefix(host)), first)
}

func (m *Mirrors) file(host, prefix string, first tables) []op.Resource {
	return hostsFile(host, func(h *steps.Host) ([]byte, error) { return m.hosts(h, prefix, first) })
}

// hosts writes one hosts.toml. The server is the site's registry as well: what
// it lacks is missing, and the internet is never asked.
func (m *Mirrors) hosts(h *steps.Host, prefix string, first tables) ([]byte, error) {
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
	before, err := first.text(h)
	if err != nil {
		return nil, err
	}
	e := endpoint{base: base, override: override, insecure: m.Insecure, user: user, password: password, certs: certs, files: siteFiles}
	return []byte(fmt.Sprintf("server = %q\ncapabilities = [\"pull\", \"resolve\"]\n", base) + e.fields("", "") + before + "\n" + e.table()), nil
}
