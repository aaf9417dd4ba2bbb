package registryd

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

//go:embed templates
var files embed.FS

const (
	configDir = "/etc/kubexm/registry"
	unit      = "kubexm-registry.service"
)

func resources(c *manifest.Cluster) []op.Resource {
	in := func(name string) string { return path.Join(configDir, name) }
	rs := []op.Resource{
		op.Blob{Path: "/usr/local/bin/registry", Need: manifest.Need{Kind: manifest.Binary, Name: "registry/registry"}},
		op.Dir{Path: "/etc/kubexm"},
		op.Dir{Path: configDir, Attr: runner.Attr{Mode: 0o700}, Own: true},
		op.Dir{Path: c.Spec.Registry.RegistryDataDir, Attr: runner.Attr{Mode: 0o700}, Own: true},
	}
	rs = append(rs, access()...)
	return append(rs,
		op.Text(in("config.yml"), func(context.Context, *steps.Host) ([]byte, error) { return configuration(c) }),
		op.File{Path: in("htpasswd"), Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
			have, err := h.ReadFile(ctx, in("htpasswd"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			logins, err := AccessOf(h).logins(c, h)
			if err != nil {
				return nil, err
			}
			return htpasswd(logins, have)
		}},
		op.Text(in("tls.crt"), func(ctx context.Context, h *steps.Host) ([]byte, error) {
			cert, _, err := certificate(ctx, c, h)
			return cert, err
		}),
		op.File{Path: in("tls.key"), Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
			_, key, err := certificate(ctx, c, h)
			return key, err
		}},
		op.Text("/etc/systemd/system/"+unit, func(context.Context, *steps.Host) ([]byte, error) {
			return files.ReadFile("templates/registry.service")
		}),
		op.Unit{Name: unit},
	)
}

// Install brings up the registry.
func Install(c *manifest.Cluster) steps.Step {
	return op.Ensure("registryd.install", resources(c), op.Upload)
}

// Uninstall is its inverse, with all images unless these are to stay.
func Uninstall(c *manifest.Cluster, keep bool) steps.Step {
	rs := resources(c)
	if keep {
		rs = op.Without(rs, c.Spec.Registry.RegistryDataDir)
	}
	return op.Remove("registryd.uninstall", rs, op.Destroys)
}

// certificate gives the registry's own, for its name and every address of its host.
func certificate(ctx context.Context, c *manifest.Cluster, h *steps.Host) (cert, key []byte, err error) {
	a, now := AccessOf(h), time.Now()
	ca, err := a.Authority(now)
	if err != nil {
		return nil, nil, err
	}
	name, _ := HostPort(c)
	names := []string{name, h.Name}
	for _, x := range append(slices.Clone(h.InternalAddress), h.Address) {
		if !slices.Contains(names, x) {
			names = append(names, x)
		}
	}
	p, err := a.store().LeafFrom("server", ca, pki.Request{CommonName: name, Names: names, Server: true}, now, func() (cert, key []byte, err error) {
		if cert, err = h.ReadFile(ctx, path.Join(configDir, "tls.crt")); err == nil {
			key, err = h.ReadFile(ctx, path.Join(configDir, "tls.key"))
		}
		return cert, key, err
	})
	if err != nil {
		return nil, nil, err
	}
	return p.Encode()
}

// configuration is distribution's own. Indexes of which the bundle carries only
// some platforms are allowed: they are served as upstream published them.
func configuration(c *manifest.Cluster) ([]byte, error) {
	_, port := HostPort(c)
	type m = map[string]any
	return yaml.Marshal(m{
		"version": 0.1,
		"log":     m{"level": "info"},
		"storage": m{
			"filesystem": m{"rootdirectory": c.Spec.Registry.RegistryDataDir},
			"delete":     m{"enabled": true},
		},
		"http": m{
			"addr": ":" + port,
			"tls": m{
				"certificate": path.Join(configDir, "tls.crt"), "key": path.Join(configDir, "tls.key"), "minimumtls": "tls1.2",
			},
		},
		"auth":       m{"htpasswd": m{"realm": "kubexm", "path": path.Join(configDir, "htpasswd")}},
		"validation": m{"manifests": m{"indexes": m{"platforms": "none"}}},
	})
}
