package containerd

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// endpoint is one registry as a hosts.toml describes it.
type endpoint struct {
	base           string // scheme and host, with the path where there is one
	override       bool   // the path is complete: containerd does not add /v2
	insecure       bool   // its certificate is not verified
	user, password string
	certs          registry.Certs
	files          certPaths // their paths on the node
}

// fields returns the settings of the endpoint for a TOML table; "" is the top level.
func (e endpoint) fields(table, indent string) string {
	s := ""
	if e.certs.CA != nil {
		s += fmt.Sprintf("%sca = %q\n", indent, e.files.ca)
	}
	if e.certs.Cert != nil {
		s += fmt.Sprintf("%sclient = [[%q, %q]]\n", indent, e.files.cert, e.files.key)
	}
	if e.insecure {
		s += indent + "skip_verify = true\n"
	}
	if e.override {
		s += indent + "override_path = true\n"
	}
	if e.user == "" {
		return s
	}
	name := "header"
	if table != "" {
		name = table + ".header"
	}
	basic := base64.StdEncoding.EncodeToString([]byte(e.user + ":" + e.password))
	return s + fmt.Sprintf("%s[%s]\n%s  Authorization = [%q]\n", indent, name, indent, "Basic "+basic)
}

// table returns the endpoint's table in a hosts.toml.
func (e endpoint) table() string {
	name := fmt.Sprintf("host.%q", e.base)
	return "[" + name + "]\n  capabilities = [\"pull\", \"resolve\"]\n" + e.fields(name, "  ")
}

// certPaths are the paths of a registry's CA certificate and of the client certificate and
// key on a node.
type certPaths struct{ ca, cert, key string }

// siteFiles are the paths for the site's registry.
var siteFiles = certPaths{certsDir + "/kubexm-registry.crt", certsDir + "/kubexm-registry.cert", certsDir + "/kubexm-registry.key"}

// certFiles returns these files. A registry may not need all of them.
func certFiles(at certPaths, of func(*steps.Host) (registry.Certs, error)) []op.Resource {
	part := func(pick func(registry.Certs) []byte) func(context.Context, *steps.Host) ([]byte, error) {
		return func(_ context.Context, h *steps.Host) ([]byte, error) {
			certs, err := of(h)
			return pick(certs), err
		}
	}
	return []op.Resource{
		given{op.Text(at.ca, part(func(c registry.Certs) []byte { return c.CA }))},
		given{op.Text(at.cert, part(func(c registry.Certs) []byte { return c.Cert }))},
		given{op.File{Path: at.key, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: part(func(c registry.Certs) []byte { return c.Key })}},
	}
}

// given is a file that exists only if it has content: which certificates a folder contains is
// known when a run reads it, not when it is planned.
type given struct{ op.File }

// Want removes the file if its content is empty.
func (g given) Want(ctx context.Context, h *steps.Host, earlier bool) (*op.Change, error) {
	body, err := g.Body(ctx, h)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return g.Gone(ctx, h)
	}
	return g.File.Want(ctx, h, earlier)
}
