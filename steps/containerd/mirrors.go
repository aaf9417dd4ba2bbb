package containerd

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Mirrors say that every image comes from the site's registry.
type Mirrors struct {
	registry.Mapper
	Upstreams []string // upstream registries that the bundle has images of
	// CA gives the certificate that the registry's is checked with, as PEM.
	CA func(*steps.Host) ([]byte, error)
	// Login gives the user who may pull.
	Login     func(*steps.Host) (user, password string, err error)
	PlainHTTP bool
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
func (m *Mirrors) resources(first string) []op.Resource {
	if m == nil {
		return nil
	}
	rs := []op.Resource{op.Text(caFile, func(_ context.Context, h *steps.Host) ([]byte, error) { return m.CA(h) })}
	for _, u := range m.Upstreams {
		rs = append(rs, m.upstream(u, choose(u == dockerIO, first))...)
	}
	rs = append(rs, m.file(m.Host, "", "")...)
	return append(rs, m.file("_default", "", "")...)
}

// caFile is where nodes keep the certificate that the site's registry is checked with.
const caFile = certsDir + "/kubexm-registry.crt"

// upstream are the files that send pulls of one upstream's images to the site's registry.
func (m *Mirrors) upstream(host, first string) []op.Resource {
	return m.file(host, path.Join(m.Namespace, registry.Prefix(host)), first)
}

func (m *Mirrors) file(host, prefix, first string) []op.Resource {
	dir := path.Join(certsDir, host)
	return []op.Resource{op.Dir{Path: dir, Own: true}, op.File{
		Path: path.Join(dir, "hosts.toml"), Attr: runner.Attr{Mode: 0o600}, Secret: true,
		Body: func(_ context.Context, h *steps.Host) ([]byte, error) { return m.hosts(h, prefix, first) },
	}}
}

// hosts writes one hosts.toml. The server is the site's registry as well: what
// it lacks is missing, and the internet is never asked.
func (m *Mirrors) hosts(h *steps.Host, prefix, first string) ([]byte, error) {
	scheme := "https://"
	if m.PlainHTTP {
		scheme = "http://"
	}
	base, override := scheme+m.Host, ""
	if prefix != "" {
		base, override = base+"/v2/"+prefix, "override_path = true\n"
	}
	user, password, err := m.Login(h)
	if err != nil {
		return nil, err
	}
	header := ""
	if user != "" {
		header = fmt.Sprintf("Authorization = [%q]\n", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "server = %q\ncapabilities = [\"pull\", \"resolve\"]\nca = %q\n%s", base, caFile, override)
	if header != "" {
		fmt.Fprintf(&b, "[header]\n  %s", header)
	}
	b.WriteString(first)
	fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n  ca = %q\n", base, caFile)
	if override != "" {
		b.WriteString("  " + override)
	}
	if header != "" {
		fmt.Fprintf(&b, "  [host.%q.header]\n    %s", base, header)
	}
	return []byte(b.String()), nil
}
