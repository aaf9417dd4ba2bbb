package containerd

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// dockerIO is what spec.runtime.containerd.registryMirrors stand for.
const dockerIO = "docker.io"

// remote is a registry that the config names beside the site's own.
type remote struct {
	base     string // scheme and host, with the path where there is one
	host     string // host or host:port
	insecure bool   // its certificate is not checked
}

func remotes(written []string, insecure func(host string) bool) []remote {
	var out []remote
	for _, s := range written {
		base := strings.TrimSuffix(s, "/")
		if !strings.Contains(base, "://") {
			base = "https://" + base
		}
		u, err := url.Parse(base)
		if err != nil {
			continue // the config's reader refuses it
		}
		out = append(out, remote{base: base, host: u.Host, insecure: strings.HasPrefix(base, "https://") && insecure(u.Host)})
	}
	return out
}

// section is the remote's table in a hosts.toml.
func (r remote) section() string {
	s := fmt.Sprintf("\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", r.base)
	if r.insecure {
		s += "  skip_verify = true\n"
	}
	if _, p, _ := strings.Cut(strings.TrimPrefix(r.base, "https://"), "/"); strings.Contains("/"+p+"/", "/v2/") {
		s += "  override_path = true\n" // the path is whole: containerd adds no /v2 of its own
	}
	return s
}

// certs are the files by which containerd finds registries: the site's own, and
// those that the config names.
func certs(c *manifest.Cluster, m *Mirrors) []op.Resource {
	engine := c.Spec.Runtime.Containerd
	open := remotes(engine.InsecureRegistries, func(string) bool { return true })
	mirrors := remotes(engine.RegistryMirrors, func(host string) bool {
		return slices.ContainsFunc(open, func(r remote) bool { return r.host == host })
	})
	first := ""
	for _, r := range mirrors {
		first += r.section()
	}
	rs, taken := m.resources(first), []string{dockerIO}
	if m != nil {
		taken = append(append(taken, m.Upstreams...), m.Host) // which the site's registry answers for
	}
	if first != "" && (m == nil || !slices.Contains(m.Upstreams, dockerIO)) {
		rs = append(rs, hostsFile(dockerIO, first[1:])...)
	}
	for _, r := range open {
		if !slices.Contains(taken, r.host) {
			taken = append(taken, r.host)
			rs = append(rs, hostsFile(r.host, fmt.Sprintf("server = %q\n%s%s", r.base, choose(r.insecure, "skip_verify = true\n"), r.section()))...)
		}
	}
	if m != nil {
		rs = append(rs, further{mirrors: m, known: append(slices.Clone(taken), "_default")})
	}
	return rs
}

func choose(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

// hostsFile is the hosts.toml of one registry, with its folder.
func hostsFile(host, text string) []op.Resource {
	dir := path.Join(certsDir, host)
	return []op.Resource{
		op.Dir{Path: dir, Own: true},
		op.Text(path.Join(dir, "hosts.toml"), func(context.Context, *steps.Host) ([]byte, error) { return []byte(text), nil }),
	}
}
