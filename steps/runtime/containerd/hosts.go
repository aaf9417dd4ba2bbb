package containerd

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

// dockerIO is the registry whose mirrors are in spec.runtime.containerd.registryMirrors.
const dockerIO = "docker.io"

// remote is a registry that the config specifies in addition to the site's own.
type remote struct {
	base  string // scheme and host, with the path where there is one
	host  string // host or host:port
	open  bool   // its certificate is not verified
	login manifest.RegistryAuth
}

// remotes parses registry addresses of the config, and adds their settings in
// spec.registry.auths.
func remotes(c *manifest.Cluster, written []string, open func(host string) bool) []remote {
	var out []remote
	for _, s := range written {
		base, full := strings.TrimSuffix(s, "/"), strings.Contains(s, "://")
		u, err := url.Parse(choose(!full, "https://") + base)
		if err != nil {
			continue // the validation of the config reports it
		}
		a := c.Spec.Registry.PullAuth(u.Host)
		if !full {
			base = choose(!a.PlainHTTP, "https://") + choose(a.PlainHTTP, "http://") + base
		}
		out = append(out, remote{base: base, host: u.Host, login: a, open: strings.HasPrefix(base, "https://") && (open(u.Host) || a.SkipTLSVerify)})
	}
	return out
}

// files returns the paths of the certificates for the remote on a node.
func (r remote) files() certPaths {
	at := path.Join(certsDir, "kubexm-of-"+r.host)
	return certPaths{at + ".crt", at + ".cert", at + ".key"}
}

func (r remote) certs(*steps.Host) (registry.Certs, error) {
	return registry.ReadCerts(r.login.CertsPath)
}

// endpoint returns the remote with its certificates and password, which a run reads.
func (r remote) endpoint(h *steps.Host) (endpoint, error) {
	certs, err := r.certs(h)
	if err != nil {
		return endpoint{}, err
	}
	password, err := h.Secret(r.login.Password)
	_, at, _ := strings.Cut(strings.TrimPrefix(r.base, "https://"), "/")
	return endpoint{
		base: r.base, insecure: r.open, user: r.login.Username, password: password, certs: certs, files: r.files(),
		override: strings.Contains("/"+at+"/", "/v2/"),
	}, err
}

// server returns the hosts.toml of a registry without mirrors.
func (r remote) server(h *steps.Host) ([]byte, error) {
	e, err := r.endpoint(h)
	if err != nil {
		return nil, err
	}
	top := e
	top.override = false
	return []byte(fmt.Sprintf("server = %q\n", e.base) + top.fields("", "") + "\n" + e.table()), nil
}

// tables are the tables of mirrors, in their order.
type tables []remote

func (ts tables) text(h *steps.Host) (string, error) {
	s := ""
	for _, r := range ts {
		e, err := r.endpoint(h)
		if err != nil {
			return "", err
		}
		s += "\n" + e.table()
	}
	return s, nil
}

// certs returns containerd's registry configuration (certs.d): for the site's registry, and
// for those that the config specifies.
func certs(c *manifest.Cluster, m *cri.Mirrors) []op.Resource {
	engine := c.Spec.Runtime.Containerd
	open := remotes(c, engine.InsecureRegistries, func(string) bool { return true })
	first := tables(remotes(c, engine.RegistryMirrors, func(host string) bool {
		return slices.ContainsFunc(open, func(r remote) bool { return r.host == host })
	}))
	logins := remotes(c, slices.Sorted(maps.Keys(c.Spec.Registry.Auths)), func(string) bool { return false })
	rs, taken := mirrored(m, first), []string{dockerIO}
	if m != nil {
		taken = append(append(taken, m.Upstreams...), m.Host) // the site's registry serves them
	}
	if len(first) > 0 && (m == nil || !slices.Contains(m.Upstreams, dockerIO)) {
		rs = append(rs, hostsFile(dockerIO, func(h *steps.Host) ([]byte, error) {
			s, err := first.text(h)
			return []byte(strings.TrimPrefix(s, "\n")), err
		})...)
	}
	known := len(taken)
	for _, r := range append(open, logins...) {
		if slices.ContainsFunc(taken, func(t string) bool { return t == r.host || t+":443" == r.host || t == r.host+":443" }) {
			continue
		}
		taken = append(taken, r.host)
		rs = append(rs, hostsFile(r.host, r.server)...)
	}
	for _, r := range logins { // after taken is known: certificates of other registries are not used
		used := slices.Contains(taken[known:], r.host) || slices.ContainsFunc(first, func(x remote) bool { return x.host == r.host })
		if r.login.CertsPath != "" && used {
			rs = append(rs, certFiles(r.files(), r.certs)...)
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

// hostsFile returns the hosts.toml of one registry, with its folder. It may contain a
// password.
func hostsFile(host string, text func(*steps.Host) ([]byte, error)) []op.Resource {
	dir := path.Join(certsDir, host)
	return []op.Resource{op.Dir{Path: dir, Own: true}, op.File{
		Path: path.Join(dir, "hosts.toml"), Attr: runner.Attr{Mode: 0o600}, Secret: true,
		Body: func(_ context.Context, h *steps.Host) ([]byte, error) { return text(h) },
	}}
}
