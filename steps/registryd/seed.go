package registryd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/op"
)

// parallel is how many blobs are sent at once.
const parallel = 4

// askers is how many questions are put to a registry at once.
const askers = 8

// Seed sends every image of the bundle to the registry, with nothing unpacked.
// What the registry holds already is not sent. One that stands already may refuse
// an index for its gaps: it gets one without them, and who names that image by its
// digest is told of the new one by Names.
func Seed(c *manifest.Cluster, needs []manifest.Need) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "registryd.seed-images", Needs: needs, Upload: true, Timeout: 2 * time.Hour, Retry: steps.Retry{Times: 2, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			t, err := target(c, h)
			if err != nil {
				return false, err
			}
			defer t.Client.CloseIdleConnections()
			has, err := compared(ctx, t, h)
			var refused *connector.DialError
			if errors.As(err, &refused) && !Stands(c) {
				return false, nil // it does not listen yet, and Act says so if it never will
			}
			if err != nil || has.Missing() > 0 {
				return false, err
			}
			digests, err := t.Redigested(has.Images)
			if err != nil {
				return false, err
			}
			return noted(c, h, digests)
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			t, err := target(c, h)
			if err != nil {
				return err
			}
			defer t.Client.CloseIdleConnections()
			return steps.Advise(fill(ctx, c, h, t), "%s", where(c, h))
		},
	}
}

// compared asks a registry for all images, or for the first alone where that is
// missing: one that was never filled is not asked for every blob, only to be asked
// again when it is.
func compared(ctx context.Context, t registry.Target, h *steps.Host) (*registry.Comparison, error) {
	images := h.Artifacts.Images()
	first, err := registry.Compare(ctx, t, h.Artifacts, images[:min(1, len(images))], 1)
	if err != nil || first.Missing() > 0 {
		return first, err
	}
	return registry.Compare(ctx, t, h.Artifacts, images, askers)
}

// fill sends what is missing, and notes which digests are others there.
func fill(ctx context.Context, c *manifest.Cluster, h *steps.Host, t registry.Target) error {
	has, err := registry.Compare(ctx, t, h.Artifacts, h.Artifacts.Images(), askers)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	done, images, err := registry.Fill(ctx, t, h.Artifacts, has, registry.Options{Parallel: parallel, Narrow: Stands(c)})
	h.Log.InfoContext(ctx, "seeded", "images", done.Images, "blobs", done.Blobs, "bytes", done.Bytes, "mounted", done.Mounted)
	if err != nil || !Stands(c) {
		return err
	}
	for _, at := range images {
		if at.Narrowed() {
			h.Log.WarnContext(ctx, "the registry has an image under another digest: it refuses indexes with gaps",
				"image", at.Reference, "published", at.Published, "digest", at.Digest)
		}
	}
	digests, err := t.Redigested(images)
	if err != nil {
		return err
	}
	return note(h, digests)
}

// where says where to look when a registry refuses.
func where(c *manifest.Cluster, h *steps.Host) string {
	if Stands(c) {
		return "see the log of " + c.Spec.Registry.PrivateRegistry + ", and whether its user may push there"
	}
	return "see `journalctl -u " + unit + "` on " + h.Name
}

// ErrNone is why a registry cannot be reached: this machine has never made one
// for the cluster.
var ErrNone = errors.New("no registry was made from here")

// Reach gives the registry of h's cluster to who only reads. Unlike the steps it
// makes no keys and no passwords: where there are none, there is no registry.
func Reach(c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	if Stands(c) {
		return target(c, h)
	}
	if err := AccessOf(h).Made(); err != nil {
		return registry.Target{}, err
	}
	return target(c, h)
}

// Made is ErrNone where this machine has never made a registry.
func (a Access) Made() error {
	for _, name := range []string{"ca.crt", PushUser + ".password"} {
		_, err := os.Stat(filepath.Join(a.Dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return ErrNone
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// target is the registry as the machine kubexm runs on reaches it. One of ours is
// reached through the SSH connection of its host, so that no other port has to be
// open; one that stands already directly, and through h where that fails. The name
// in the requests is the one that the certificate and the nodes know.
func target(c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	if Stands(c) {
		w := wayFrom(c, h, func(address string, why error) {
			h.Log.Info("the registry is not reached from here: going through the host", "address", address, "err", why)
		})
		return existing(c, h, w.dial)
	}
	f, ok := h.Conn().(connector.Forwarder)
	if !ok {
		return registry.Target{}, errors.New("the connection to this host carries no TCP")
	}
	_, port := HostPort(c)
	a := AccessOf(h)
	base := h.Waits.Transport(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return f.Dial(ctx, network, net.JoinHostPort("127.0.0.1", port))
	})
	base.MaxIdleConnsPerHost, base.WriteBufferSize = parallel, 256<<10
	client, err := a.client(base, time.Now())
	if err != nil {
		return registry.Target{}, err
	}
	password, err := a.Password(PushUser)
	if err != nil {
		return registry.Target{}, err
	}
	return registry.Target{
		Mapper: MapperOf(c), Client: client, Username: PushUser, Password: password,
	}, nil
}

// MapperOf gives images their names at the site.
func MapperOf(c *manifest.Cluster) registry.Mapper {
	return registry.Mapper{Host: c.Spec.Registry.PrivateRegistry, Namespace: c.Spec.Registry.NamespaceOverride}
}
