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

// TagError says that a tag of the site's registry names another image than the
// bundle's: somebody else pushed it, or removed it.
type TagError struct {
	Registry, Reference string
	Digest              string // that the tag names; "" is none
	Want                string // the bundle's
}

func (e *TagError) Error() string {
	if e.Digest == "" {
		return fmt.Sprintf("registry %s: %s is not there, and the bundle has %s", e.Registry, e.Reference, e.Want)
	}
	return fmt.Sprintf("registry %s: %s is %s, and the bundle has %s: somebody else pushed it", e.Registry, e.Reference, e.Digest, e.Want)
}

// TagsAt gives a function that asks the site's registry, the way that a node's
// runtime does, whether its tags name the bundle's images: pods' images are pulled
// by tag. Each that does not is a *TagError.
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
				continue // pods name it by its digest
			}
			repository, _, err := names.Repository(im.Reference)
			if err != nil {
				return err
			}
			want := im.Digest
			if own := names.Digests[registry.Place(repository, im.Digest)]; own != "" {
				want = own
			}
			has, err := registry.Tagged(ctx, t, im.Reference)
			if refused := (*connector.DialError)(nil); errors.As(err, &refused) && refused.Forbidden {
				h.Log.WarnContext(ctx, "tags of the registry cannot be asked for: sshd here forwards no TCP; the images are pulled by digest", "host", h.Name)
				return nil
			}
			if err != nil {
				return steps.Advise(err, "%s", where(c, h))
			}
			if has != want {
				all = append(all, &TagError{Registry: c.Spec.Registry.PrivateRegistry, Reference: im.Reference, Digest: has, Want: want})
			}
		}
		return steps.Advise(errors.Join(all...), "find out who pushed: %s; `kubexm install` again puts the bundle's images back", logs(c))
	}
}

// logs says where a registry writes down who pushed.
func logs(c *manifest.Cluster) string {
	if Stands(c) {
		return "see the log of " + c.Spec.Registry.PrivateRegistry
	}
	host := "the registry's host"
	if hosts := c.HostsWith(manifest.RoleRegistry); len(hosts) > 0 {
		host = hosts[0].Name
	}
	return "see `journalctl -u " + pushUnit + "` on " + host
}

// fromNode is the registry as a node reaches it, with the login that nodes have.
func fromNode(c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	f, ok := h.Conn().(connector.Forwarder)
	if !ok {
		return registry.Target{}, errors.New("the connection to this host carries no TCP")
	}
	names := namesOf(c)
	to := func(ctx context.Context, network, address string) (net.Conn, error) {
		return f.Dial(ctx, network, named(names, address))
	}
	if Stands(c) {
		return existing(c, pulling(c), h, to)
	}
	return ours(c, h, PullUser, to)
}

// ours is the registry that kubexm installed, for a user who reaches it by dialing.
func ours(c *manifest.Cluster, h *steps.Host, user string, to dial) (registry.Target, error) {
	a := AccessOf(h)
	base := h.Waits.Transport(to)
	base.MaxIdleConnsPerHost, base.WriteBufferSize = parallel, 256<<10
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
