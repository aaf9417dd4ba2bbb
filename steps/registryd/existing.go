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

// Stands tells whether the cluster's registry stands already: kubexm fills it, and
// leaves it as it is otherwise.
func Stands(c *manifest.Cluster) bool { return part.RegistryOf(c).Kind == part.ExternalRegistry }

// pushing is how kubexm speaks to a registry that stands already, and pulling how
// nodes do.
func pushing(c *manifest.Cluster) manifest.RegistryAuth {
	return c.Spec.Registry.Auth(c.Spec.Registry.PrivateRegistry)
}
func pulling(c *manifest.Cluster) manifest.RegistryAuth {
	return c.Spec.Registry.PullAuth(c.Spec.Registry.PrivateRegistry)
}

// existing is a registry that stands already, for who reaches it by dialing.
func existing(c *manifest.Cluster, a manifest.RegistryAuth, h *steps.Host, to dial) (registry.Target, error) {
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
	t := h.Waits.Transport(to)
	t.TLSClientConfig, t.MaxIdleConnsPerHost, t.WriteBufferSize = conf, parallel, 256<<10
	return registry.Target{
		Mapper: MapperOf(c), PlainHTTP: a.PlainHTTP, Username: a.Username, Password: password,
		Client: &http.Client{Transport: t},
	}, nil
}

// CheckPull asks a registry that stands already the way that a node reaches it,
// as the node's runtime will.
func CheckPull(c *manifest.Cluster) steps.Step {
	return op.Check("registryd.check-pull", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		t, err := fromNode(c, h)
		if err != nil {
			return nil, err
		}
		defer t.Client.CloseIdleConnections()
		if err := registry.AskPull(ctx, t); err != nil {
			return steps.Findings{refused(c, err, "this host")}, ctx.Err()
		}
		return nil, nil
	})
}

// CheckPush asks a registry that stands already from this machine, or through h
// where this machine does not reach it, and whether the user may send images where
// the first of them is not there. That the user of the nodes may, too, is a warning.
func CheckPush(c *manifest.Cluster) steps.Step {
	return op.Check("registryd.check-push", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		var out steps.Findings
		w := wayFrom(c, h, func(address string, why error) {
			out = append(out, steps.Finding{Warning: true,
				What:   fmt.Sprintf("this machine does not reach %s (%v): images go through the SSH connection to %s", address, why, h.Name),
				Advice: "nothing has to be done; a route or a name for it here makes it faster"})
		})
		t, err := existing(c, pushing(c), h, w.dial)
		if err != nil {
			return nil, err
		}
		defer t.Client.CloseIdleConnections()
		if err := registry.AskPull(ctx, t); err != nil {
			return append(out, refused(c, err, "this machine")), ctx.Err()
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
		// What goes for one goes for the others, and where it is there nothing has to be sent.
		standing, err := registry.Compare(ctx, t, h.Artifacts, images[:1], 1)
		if err != nil {
			return append(out, refused(c, err, "this machine")), ctx.Err()
		}
		if standing.Missing() == 0 {
			return out, nil
		}
		if err := registry.AskPush(ctx, t, repository); err != nil {
			out = append(out, refused(c, fmt.Errorf("send to %s: %w", repository, err), "this machine"))
		}
		return out, ctx.Err()
	})
}

// nodesPush warns where the login that every node has may push: root on any of them
// can replace the images of all.
func nodesPush(ctx context.Context, c *manifest.Cluster, h *steps.Host, w *way, repository string) (steps.Findings, error) {
	t, err := existing(c, pulling(c), h, w.dial)
	if err != nil {
		return nil, err
	}
	defer t.Client.CloseIdleConnections()
	if err := registry.AskPush(ctx, t, repository); err != nil {
		return nil, ctx.Err()
	}
	who := t.Username
	if who == "" {
		who = "anybody"
	}
	return steps.Findings{{Warning: true,
		What: fmt.Sprintf("registry %s: %s, who pulls on the nodes, may push to %s: root on any node can replace every image of the site",
			c.Spec.Registry.PrivateRegistry, who, repository),
		Advice: fmt.Sprintf("make a user there who can only pull, and write it as spec.registry.auths[%q].pullUsername and pullPassword", c.Spec.Registry.PrivateRegistry)}}, nil
}

// refused gives what a registry refuses its advice.
func refused(c *manifest.Cluster, err error, from string) steps.Finding {
	at := c.Spec.Registry.PrivateRegistry
	auth := fmt.Sprintf("spec.registry.auths[%q]", at)
	f := steps.Finding{What: fmt.Sprintf("registry %s: %v", at, err)}
	var answer *errcode.ErrorResponse
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	switch {
	case errors.Is(err, registry.ErrTokensOnly):
		f.Advice = "let it take the user and password of a request, as Harbor, Nexus and the distribution registry with htpasswd do"
	case errors.As(err, &unknown):
		f.Advice = "put the CA's certificate as a *.crt into a folder, and name that in " + auth + ".certsPath"
	case errors.As(err, &other):
		f.Advice = "write spec.registry.privateRegistry as a name that its certificate is for"
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		f.Advice = "write a user who may pull and push there, and the password, as " + auth + "; a project has to exist: spec.registry.namespaceOverride"
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		f.Advice = "see that it is a registry, and that the project exists: spec.registry.namespaceOverride"
	case errors.As(err, &answer):
		f.Advice = "see its own log"
	default:
		f.Advice = "see whether " + from + " reaches it: curl -v " + scheme(c) + at + "/v2/"
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

// NoteLeft says what a removal leaves in a registry that is not kubexm's.
func NoteLeft(c *manifest.Cluster) steps.Step {
	return op.Check("registryd.note-left", func(context.Context, *steps.Host) (steps.Findings, error) {
		return steps.Findings{{
			Warning: true, What: "the cluster's images stay in the registry " + c.Spec.Registry.Namespaced(),
			Advice: "when nobody needs them any more, delete them there",
		}}, nil
	})
}

// CheckFiles looks at the folders of certificates before any host is asked.
func CheckFiles(c *manifest.Cluster, now time.Time) manifest.Problems {
	var ps manifest.Problems
	for host, a := range c.Spec.Registry.Auths {
		if err := goodCerts(a.CertsPath, now); err != nil {
			advice := "put the registry's CA there as a *.crt in PEM, a client's certificate as *.cert and *.key; paths start at the config's folder"
			if errors.Is(err, fs.ErrPermission) {
				advice = "let the user who runs kubexm read it"
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

// forgotten removes a file of this machine.
func forgotten(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
