package registryd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
)

// TagError is a tag of the site's registry that refers to another image than the bundle's,
// or is missing: another client has pushed or removed it.
type TagError struct {
	Registry, Reference string
	Digest              string // of the tag's image; "" if the tag is missing
	Want                string // the bundle's
}

func (e *TagError) Error() string {
	if e.Digest == "" {
		return fmt.Sprintf("registry %s: %s does not exist, but the bundle has %s", e.Registry, e.Reference, e.Want)
	}
	return fmt.Sprintf("registry %s: %s is %s, but the bundle has %s: another client pushed it", e.Registry, e.Reference, e.Digest, e.Want)
}

// TagsAt returns a function that checks from a node, with its login, that the tags of the
// site's registry refer to the bundle's images: the images of pods are pulled by tag. Every
// tag that does not is a *TagError.
func TagsAt(c *manifest.Cluster) func(context.Context, *steps.Host, []manifest.ImagePin) error {
	return func(ctx context.Context, h *steps.Host, images []manifest.ImagePin) error {
		t, err := fromNode(c, h)
		if err != nil {
			return err
		}
		defer t.Client.CloseIdleConnections()
		names, err := Names(c, h)
		if err != nil {
			return err
		}
		var all []error
		for _, im := range images {
			if strings.Contains(im.Reference, "@") {
				continue // pods refer to it by its digest
			}
			repository, _, err := names.Repository(im.Reference)
			if err != nil {
				return err
			}
			want := im.Digest
			if own := names.Digests[registry.DigestKey(repository, im.Digest)]; own != "" {
				want = own
			}
			has, err := registry.Tagged(ctx, t, im.Reference)
			if refused := (*connector.DialError)(nil); errors.As(err, &refused) && refused.Forbidden {
				h.Log.WarnContext(ctx, "the registry's tags cannot be checked, because sshd on the host forwards no TCP; images are pulled by digest", "host", h.Name)
				return nil
			}
			if err != nil {
				return steps.Advise(err, "%s", pushAdvice(c, h))
			}
			if has != want {
				all = append(all, &TagError{Registry: c.Spec.Registry.PrivateRegistry, Reference: im.Reference, Digest: has, Want: want})
			}
		}
		return steps.Advise(errors.Join(all...), "find out which client pushed: %s; running kubexm install again restores the bundle's images", logs(c))
	}
}

// logs returns how to read the log with a registry's pushes.
func logs(c *manifest.Cluster) string {
	if UsesExisting(c) {
		return "read the log of " + c.Spec.Registry.PrivateRegistry
	}
	host := "the registry's host"
	if hosts := c.HostsWith(manifest.RoleRegistry); len(hosts) > 0 {
		host = hosts[0].Name
	}
	return "run journalctl -u " + pushUnit + " on " + host
}

// fromNode returns the registry with connections from a node and the nodes' login.
func fromNode(c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	f, ok := h.Conn().(connector.Forwarder)
	if !ok {
		return registry.Target{}, errors.New("the connection to this host cannot forward TCP")
	}
	names := namesOf(c)
	to := func(ctx context.Context, network, address string) (net.Conn, error) {
		return f.Dial(ctx, network, named(names, address))
	}
	if UsesExisting(c) {
		return existing(c, pulling(c), h, to, 0)
	}
	return ours(c, h, PullUser, to)
}

// ours returns the registry that kubexm installed, for a user, connected to with the given
// dial function.
func ours(c *manifest.Cluster, h *steps.Host, user string, to dial) (registry.Target, error) {
	a := AccessOf(h)
	base := h.Timeouts.Transport(to)
	base.MaxIdleConnsPerHost = parallel
	if user == PushUser {
		base.WriteBufferSize = pushBuffer
	}
	client, err := a.client(base, time.Now())
	if err != nil {
		return registry.Target{}, err
	}
	password, err := a.Password(user)
	if err != nil {
		return registry.Target{}, err
	}
	return registry.Target{Mapper: MapperOf(c), Client: client, Username: user, Password: password}, nil
}
