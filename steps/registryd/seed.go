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

// parallel is how many blobs are sent in parallel.
const parallel = 4

// parallelRequests is how many existence checks are sent in parallel.
const parallelRequests = 8

// pushBuffer is the write buffer of a connection that sends blobs. Nodes only ask, a thousand of them
// at once: they use the default of net/http.
const pushBuffer = 256 << 10

// Seed pushes every image of the bundle to the registry, without unpacking anything. Blobs
// that the registry already has are not sent. An existing registry may refuse an index that
// lists platforms which the bundle lacks. It then gets an index without them, whose digest is
// recorded in registry-digests.json on the workdir host.
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
			if errors.As(err, &refused) && !UsesExisting(c) {
				return false, nil // it does not listen yet; Act fails if it never does
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
			return steps.Advise(fill(ctx, c, h, t), "%s", pushAdvice(c, h))
		},
	}
}

// compared checks which images a registry has. If the first image is missing it stops: it
// does not check every blob of an empty registry, because filling it repeats the checks.
func compared(ctx context.Context, t registry.Target, h *steps.Host) (*registry.Comparison, error) {
	images := h.Artifacts.Images()
	first, err := registry.Compare(ctx, t, h.Artifacts, images[:min(1, len(images))], 1)
	if err != nil || first.Missing() > 0 {
		return first, err
	}
	return registry.Compare(ctx, t, h.Artifacts, images, parallelRequests)
}

// fill pushes what is missing, and records the images that have another digest in the
// registry.
func fill(ctx context.Context, c *manifest.Cluster, h *steps.Host, t registry.Target) error {
	has, err := registry.Compare(ctx, t, h.Artifacts, h.Artifacts.Images(), parallelRequests)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	for _, at := range has.Images {
		if at.Previous != "" {
			h.Log.WarnContext(ctx, "the registry has another image under this tag, possibly pushed by another client: the bundle's image replaces it",
				"image", at.Reference, "was", at.Previous, "bundle", at.Published)
		}
	}
	done, images, err := registry.Fill(ctx, t, h.Artifacts, has, registry.Options{Parallel: parallel, Narrow: UsesExisting(c)})
	h.Log.InfoContext(ctx, "seeded", "images", done.Images, "blobs", done.Blobs, "bytes", done.Bytes, "mounted", done.Mounted)
	if err != nil || !UsesExisting(c) {
		return err
	}
	for _, at := range images {
		if at.Narrowed() {
			h.Log.WarnContext(ctx, "the registry has an image under another digest, because it refuses an index with missing platforms",
				"image", at.Reference, "published", at.Published, "digest", at.Digest)
		}
	}
	digests, err := t.Redigested(images)
	if err != nil {
		return err
	}
	return note(h, digests)
}

// pushAdvice returns what to check when a registry refuses a push.
func pushAdvice(c *manifest.Cluster, h *steps.Host) string {
	if UsesExisting(c) {
		return "read the log of " + c.Spec.Registry.PrivateRegistry + ", and check that the user may push"
	}
	return "run journalctl -u " + pushUnit + " on " + h.Name
}

// ErrNone is returned if the cluster's folder on the workdir host has no keys of a registry.
var ErrNone = errors.New("no registry was installed from this workdir")

// Reach returns the registry of h's cluster for reading, with a user that may only pull.
// Unlike the steps it generates no keys and passwords: if there are none, it returns
// ErrNone.
func Reach(c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	if UsesExisting(c) {
		return target(c, h)
	}
	if err := AccessOf(h).CheckExists(); err != nil {
		return registry.Target{}, err
	}
	return through(c, h, PullUser, pullAddress(c))
}

// Push returns the registry of h's cluster for a person who pushes. If the workdir has no
// keys and passwords, it copies them from h first. It returns ErrNone if there is no
// registry.
func Push(ctx context.Context, c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	if UsesExisting(c) {
		return target(c, h)
	}
	if err := Recall(ctx, h); err != nil {
		return registry.Target{}, err
	}
	if err := AccessOf(h).CheckExists(); err != nil {
		return registry.Target{}, err
	}
	return target(c, h)
}

// CheckExists returns ErrNone if the workdir has no keys of a registry.
func (a Access) CheckExists() error {
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

// target returns the registry for filling it from the workdir host. kubexm's own registry
// accepts pushes on the loopback address of its host, and is reached through the host's SSH
// connection. An existing registry is reached directly, or through h if that fails. Requests
// use the name that the certificate contains and the nodes use.
func target(c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	if UsesExisting(c) {
		w := routeFrom(c, h, func(address string, why error) {
			h.Log.Info("the workdir host cannot reach the registry: connecting through the host", "address", address, "err", why)
		})
		return existing(c, pushing(c), h, w.dial, pushBuffer)
	}
	return through(c, h, PushUser, pushAddress(c))
}

// through returns the registry that kubexm installed, at an address on its host.
func through(c *manifest.Cluster, h *steps.Host, user, address string) (registry.Target, error) {
	f, ok := h.Conn().(connector.Forwarder)
	if !ok {
		return registry.Target{}, errors.New("the connection to this host cannot forward TCP")
	}
	return ours(c, h, user, func(ctx context.Context, network, _ string) (net.Conn, error) { return f.Dial(ctx, network, address) })
}

// MapperOf returns the mapping of images to their names in the site's registry.
func MapperOf(c *manifest.Cluster) registry.Mapper {
	return registry.Mapper{Host: c.Spec.Registry.PrivateRegistry, Namespace: c.Spec.Registry.NamespaceOverride}
}
