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
		if of(h) == nil {
			continue
		}
		if err := registryd.Recall(ctx, of(h)); err != nil {
			return fmt.Errorf("keys of the registry on %s: %w", h.Name, err)
		}
	}
	if err := recallEncryption(ctx, c, of); err != nil {
		return err
	}
	store := part.StoreOf(c)
	if store.Kind != part.Service {
		return nil
	}
	var members []*steps.Host
	for _, h := range store.Members {
		if x := of(h); x != nil {
			members = append(members, x)
		}
	}
	if err := etcd.Recall(ctx, members); err != nil {
		return fmt.Errorf("keys of etcd: %w", err)
	}
	return nil
}

// recallEncryption asks the first master that was made whole. Where none was, one that
// was begun may have it.
func recallEncryption(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host) error {
	var from *steps.Host
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		whole, err := controlplane.Complete(ctx, h)
		if err != nil {
			return fmt.Errorf("what Secrets are encrypted with, on %s: %w", h.Name, err)
		}
		if from == nil || whole {
			from = h
		}
		if whole {
			break
		}
	}
	if from == nil {
		return nil
	}
	if err := controlplane.Recall(ctx, from); err != nil {
		return fmt.Errorf("what Secrets are encrypted with, on %s: %w", from.Name, err)
	}
	return nil
}
