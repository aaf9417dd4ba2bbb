package installer

import (
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// Recall brings to this machine what the hosts keep of a cluster's keys, where it
// has none of its own: a cluster that was made from another machine keeps the
// authorities that its hosts know. On the hosts it changes nothing.
func (s *Session) Recall(ctx context.Context) error { return Recall(ctx, s.Cluster, s.Host) }

// Recall is the same for hosts that of gives.
func Recall(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host) error {
	for _, h := range part.RegistryOf(c).Hosts {
		if err := registryd.Recall(ctx, of(h)); err != nil {
			return fmt.Errorf("keys of the registry on %s: %w", h.Name, err)
		}
	}
	if masters := c.HostsWith(manifest.RoleMaster); len(masters) > 0 {
		if err := controlplane.Recall(ctx, of(masters[0])); err != nil {
			return fmt.Errorf("what Secrets are encrypted with, on %s: %w", masters[0].Name, err)
		}
	}
	store := part.StoreOf(c)
	if store.Kind != part.Service {
		return nil
	}
	var members []*steps.Host
	for _, h := range store.Members {
		members = append(members, of(h))
	}
	if err := etcd.Recall(ctx, members); err != nil {
		return fmt.Errorf("keys of etcd: %w", err)
	}
	return nil
}
