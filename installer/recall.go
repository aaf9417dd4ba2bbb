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

// Recall copies the cluster's keys from the hosts to this machine if it has none: a cluster
// that was created from another machine keeps its certificate authorities. It changes nothing
// on the hosts.
func (s *Session) Recall(ctx context.Context) error { return Recall(ctx, s.Cluster, s.Host) }

// Recall is the same for the hosts that of returns.
func Recall(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host) error {
	for _, h := range part.RegistryOf(c).Hosts {
		if of(h) == nil {
			continue
		}
		if err := registryd.Recall(ctx, of(h)); err != nil {
			return fmt.Errorf("read the registry's keys from host %s: %w", h.Name, err)
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
		return fmt.Errorf("read etcd's keys from hosts: %w", err)
	}
	return nil
}

// recallEncryption reads from the first complete master, or, if there is none, from an
// incomplete one.
func recallEncryption(ctx context.Context, c *manifest.Cluster, of func(manifest.Host) *steps.Host) error {
	var from *steps.Host
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		whole, err := controlplane.Complete(ctx, h)
		if err != nil {
			return fmt.Errorf("read the encryption key of Secrets from host %s: %w", h.Name, err)
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
		return fmt.Errorf("read the encryption key of Secrets from host %s: %w", from.Name, err)
	}
	return nil
}
