package registryd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
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

// Seed sends every image of the bundle to the registry, with nothing unpacked.
// What the registry holds already is not sent.
func Seed(c *manifest.Cluster, needs []manifest.Need) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "registryd.seed-images", Needs: needs, Upload: true, Timeout: 2 * time.Hour, Retry: steps.Retry{Times: 2, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			t, err := target(ctx, c, h)
			if err != nil {
				return false, err
			}
			missing, err := registry.Missing(ctx, t, h.Artifacts.Images())
			var refused *connector.DialError
			if errors.As(err, &refused) {
				return false, nil // it does not listen yet, and Act says so if it never will
			}
			return err == nil && len(missing) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			t, err := target(ctx, c, h)
			if err != nil {
				return err
			}
			missing, err := registry.Missing(ctx, t, h.Artifacts.Images())
			if err != nil {
				return steps.Advise(fmt.Errorf("registry: %w", err), "see `journalctl -u %s` on %s", unit, h.Name)
			}
			done, err := registry.Seed(ctx, t, h.Artifacts, missing, registry.Options{Parallel: parallel})
			h.Log.InfoContext(ctx, "seeded", "images", done.Images, "blobs", done.Blobs, "bytes", done.Bytes)
			return steps.Advise(err, "see `journalctl -u %s` on %s", unit, h.Name)
		},
	}
}

// ErrNone is why a registry cannot be reached: this machine has never made one
// for the cluster.
var ErrNone = errors.New("no registry was made from here")

// Reach gives the registry of h's cluster to who only reads. Unlike the steps it
// makes no keys and no passwords: where there are none, there is no registry.
func Reach(ctx context.Context, c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	if err := AccessOf(h).Made(); err != nil {
		return registry.Target{}, err
	}
	return target(ctx, c, h)
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

// target is the registry as the machine kubexm runs on reaches it: through the
// SSH connection of its host, so that no other port has to be open. The name in
// the requests is the one that the certificate and the nodes know.
func target(_ context.Context, c *manifest.Cluster, h *steps.Host) (registry.Target, error) {
	f, ok := h.Conn().(connector.Forwarder)
	if !ok {
		return registry.Target{}, errors.New("the connection to this host carries no TCP")
	}
	_, port := HostPort(c)
	a := AccessOf(h)
	client, err := a.client(&http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return f.Dial(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
		MaxIdleConnsPerHost: parallel, WriteBufferSize: 256 << 10, ForceAttemptHTTP2: false,
	}, time.Now())
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
