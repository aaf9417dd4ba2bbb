package registryd

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/op"
)

// UsesExisting reports whether the cluster uses an existing registry: kubexm fills it and changes
// nothing else in it.
func UsesExisting(c *manifest.Cluster) bool { return part.RegistryOf(c).Kind == part.ExternalRegistry }

// pushing is kubexm's access to an existing registry, pulling that of nodes.
func pushing(c *manifest.Cluster) manifest.RegistryAuth {
	return c.Spec.Registry.Auth(c.Spec.Registry.PrivateRegistry)
}
func pulling(c *manifest.Cluster) manifest.RegistryAuth {
	return c.Spec.Registry.PullAuth(c.Spec.Registry.PrivateRegistry)
}

// existing returns an existing registry as a target that is connected to with the given dial
// function, and a write buffer for each connection: 0 is the default.
func existing(c *manifest.Cluster, a manifest.RegistryAuth, h *steps.Host, to dial, buffer int) (registry.Target, error) {
	certs, err := registry.ReadCerts(a.CertsPath)
	if err != nil {
		return registry.Target{}, err
	}
	conf, err := certs.TLS(a.SkipTLSVerify)
	if err != nil {
		return registry.Target{}, fmt.Errorf("%s: %w", a.CertsPath, err)
	}
	password, err := h.Secret(a.Password)
	if err != nil {
		return registry.Target{}, err
	}
	t := h.Timeouts.Transport(to)
	t.TLSClientConfig, t.MaxIdleConnsPerHost, t.WriteBufferSize = conf, parallel, buffer
	return registry.Target{
		Mapper: MapperOf(c), PlainHTTP: a.PlainHTTP, Username: a.Username, Password: password,
		Client: &http.Client{Transport: t},
	}, nil
}

// CheckPull checks an existing registry from a node, with the login and certificates that the
// node's container runtime will use.
func CheckPull(c *manifest.Cluster) steps.Step {
	return op.Check("registryd.check-pull", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		t, err := fromNode(c, h)
		if err != nil {
			return nil, err
		}
		defer t.Client.CloseIdleConnections()
		if err := registry.CheckPull(ctx, t); err != nil {
			return steps.Findings{refused(c, err, "this host")}, ctx.Err()
		}
		return nil, nil
	})
}

// CheckPush checks an existing registry from the workdir host, or through the SSH connection
// of its host if the workdir host does not reach it. If the bundle's first image is missing
// in the registry, it checks that the user may push. It warns if the nodes' user may push,
// too.
func CheckPush(c *manifest.Cluster) steps.Step {
	return op.Check("registryd.check-push", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		var out steps.Findings
		w := routeFrom(c, h, func(address string, why error) {
			out = append(out, steps.Finding{Warning: true,
				What:   fmt.Sprintf("the workdir host cannot reach %s (%v): images are sent through the SSH connection to %s", address, why, h.Name),
				Advice: "no action needed; a route or DNS name for it on the workdir host makes the transfer faster"})
		})
		t, err := existing(c, pushing(c), h, w.dial, 0)
		if err != nil {
			return nil, err
		}
		defer t.Client.CloseIdleConnections()
		if err := registry.CheckPull(ctx, t); err != nil {
			return append(out, refused(c, err, "the workdir host")), ctx.Err()
		}
		images := h.Artifacts.Images()
		if len(images) == 0 {
			return out, nil
		}
		repository, _, err := t.Repository(images[0].Reference)
		if err != nil {
			return out, err
		}
		found, err := nodesPush(ctx, c, h, w, repository)
		if out = append(out, found...); err != nil {
			return out, err
		}
		// The first image is checked for all, and if it exists nothing has to be sent.
		has, err := registry.Compare(ctx, t, h.Artifacts, images[:1], 1)
		if err != nil {
			return append(out, refused(c, err, "the workdir host")), ctx.Err()
		}
		if has.Missing() == 0 {
			return out, nil
		}
		if err := registry.CheckPush(ctx, t, repository); err != nil {
			out = append(out, refused(c, fmt.Errorf("push to %s: %w", repository, err), "the workdir host"))
		}
		return out, ctx.Err()
	})
}

// nodesPush warns if the login of the nodes may push: then root on any node can replace the
// images of all.
func nodesPush(ctx context.Context, c *manifest.Cluster, h *steps.Host, w *route, repository string) (steps.Findings, error) {
	t, err := existing(c, pulling(c), h, w.dial, 0)
	if err != nil {
		return nil, err
	}
	defer t.Client.CloseIdleConnections()
	if err := registry.CheckPush(ctx, t, repository); err != nil {
		return nil, ctx.Err()
	}
	user := "user " + t.Username
	if t.Username == "" {
		user = "anonymous clients"
	}
	return steps.Findings{{Warning: true,
		What: fmt.Sprintf("registry %s: the nodes' login (%s) may push to %s: root on any node can replace every image of the site",
			c.Spec.Registry.PrivateRegistry, user, repository),
		Advice: fmt.Sprintf("create a user that can only pull in the registry, and set spec.registry.auths[%q].pullUsername and pullPassword", c.Spec.Registry.PrivateRegistry)}}, nil
}

// refused returns a finding for an error of a registry, with advice for its kind.
func refused(c *manifest.Cluster, err error, from string) steps.Finding {
	at := c.Spec.Registry.PrivateRegistry
	auth := fmt.Sprintf("spec.registry.auths[%q]", at)
	f := steps.Finding{What: fmt.Sprintf("registry %s: %v", at, err)}
	var answer *errcode.ErrorResponse
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	switch {
	case errors.Is(err, registry.ErrTokensOnly):
		f.Advice = "enable HTTP basic authentication, as Harbor, Nexus and the distribution registry with htpasswd have it"
	case errors.As(err, &unknown):
		f.Advice = "put the CA's certificate as *.crt into a folder, and set " + auth + ".certsPath to that folder"
	case errors.As(err, &other):
		f.Advice = "set spec.registry.privateRegistry to a name that its certificate contains"
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		f.Advice = "set a user that may pull and push, and its password, in " + auth + "; the project in spec.registry.namespaceOverride must exist"
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		f.Advice = "check that it is a registry, and that the project in spec.registry.namespaceOverride exists"
	case errors.As(err, &answer):
		f.Advice = "read the registry's log"
	default:
		f.Advice = "check that " + from + " reaches it: curl -v " + scheme(c) + at + "/v2/"
		if refusal := (*connector.DialError)(nil); errors.As(err, &refusal) && refusal.Hint != "" {
			f.Advice += "; " + refusal.Hint
		}
	}
	return f
}

func scheme(c *manifest.Cluster) string {
	if c.Spec.Registry.Auth(c.Spec.Registry.PrivateRegistry).PlainHTTP {
		return "http://"
	}
	return "https://"
}

// ReportRemaining reports the images that a removal leaves in an existing registry.
func ReportRemaining(c *manifest.Cluster) steps.Step {
	return op.Check("registryd.note-left", func(context.Context, *steps.Host) (steps.Findings, error) {
		return steps.Findings{{
			Warning: true, What: "the cluster's images remain in the registry " + c.Spec.Registry.Namespaced(),
			Advice: "when they are no longer needed, delete them in the registry",
		}}, nil
	})
}

// CheckFiles checks the certificate folders of spec.registry.auths on the workdir host: they
// are readable, and no client certificate has expired at the time now.
func CheckFiles(c *manifest.Cluster, now time.Time) manifest.Problems {
	var ps manifest.Problems
	for host, a := range c.Spec.Registry.Auths {
		if err := goodCerts(a.CertsPath, now); err != nil {
			advice := "put the registry's CA into the folder as *.crt in PEM, a client certificate as *.cert and *.key; paths are relative to the config's folder"
			if errors.Is(err, fs.ErrPermission) {
				advice = "make it readable for the user that runs kubexm"
			}
			ps = append(ps, manifest.Problem{Path: fmt.Sprintf("spec.registry.auths[%q].certsPath", host), Message: err.Error(), Advice: advice})
		}
	}
	ps.Sort()
	return ps
}

func goodCerts(dir string, now time.Time) error {
	certs, err := registry.ReadCerts(dir)
	if err != nil {
		return err
	}
	conf, err := certs.TLS(false)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, p := range conf.Certificates {
		if now.After(p.Leaf.NotAfter) {
			return fmt.Errorf("%s: the certificate of %s expired on %s", dir, p.Leaf.Subject.CommonName, p.Leaf.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	return nil
}

// removeFile removes a file of the workdir host, if it exists.
func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
