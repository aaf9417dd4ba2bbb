package registryd

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

func resources(c *manifest.Cluster) []op.Resource {
	in := func(name string) string { return path.Join(configDir, name) }
	readable := runner.Attr{Mode: 0o640, Group: account}
	rs := []op.Resource{
		op.Blob{Path: "/usr/local/bin/registry", Need: manifest.Need{Kind: manifest.Binary, Name: "registry/registry"}},
		op.User{Name: account},
		op.Dir{Path: "/etc/kubexm"},
		op.Dir{Path: configDir, Attr: runner.Attr{Mode: 0o750, Group: account}, Own: true},
		op.Dir{Path: c.Spec.Registry.RegistryDataDir, Attr: runner.Attr{Mode: 0o700, Owner: account, Group: account}, Own: true},
	}
	rs = append(rs, access()...)
	rs = append(rs,
		op.Text(in("tls.crt"), func(ctx context.Context, h *steps.Host) ([]byte, error) {
			cert, _, err := certificate(ctx, c, h)
			return cert, err
		}),
		op.File{Path: in("tls.key"), Attr: readable, Secret: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
			_, key, err := certificate(ctx, c, h)
			return key, err
		}})
	for _, s := range services(c) {
		rs = append(rs,
			op.Text(in(s.config), func(context.Context, *steps.Host) ([]byte, error) { return s.configuration(c) }),
			op.File{Path: in(s.passwords), Attr: readable, Secret: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
				have, err := h.ReadFile(ctx, in(s.passwords))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, err
				}
				logins, err := s.logins(AccessOf(h), c, h)
				if err != nil {
					return nil, err
				}
				return htpasswd(logins, have)
			}},
			op.Text("/etc/systemd/system/"+s.unit, func(_ context.Context, h *steps.Host) ([]byte, error) { return s.file(c, h) }))
	}
	for _, s := range services(c) {
		rs = append(rs, op.Unit{Name: s.unit})
	}
	return rs
}

// Install installs the registry as two services: one that nodes pull from, and one on the
// loopback address that accepts pushes.
func Install(c *manifest.Cluster) steps.Step {
	return op.Ensure("registryd.install", resources(c), op.Upload)
}

// Uninstall removes the registry's services, files and images. A deletion that preserves data
// keeps the images.
func Uninstall(c *manifest.Cluster, keep bool) steps.Step {
	rs := resources(c)
	if keep {
		rs = op.Without(rs, c.Spec.Registry.RegistryDataDir)
	}
	return op.Remove("registryd.uninstall", rs, op.Destroys)
}

// certificate returns the registry's certificate and key, for its name and every address of
// its host.
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
