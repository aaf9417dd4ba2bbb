package installer

import (
	"context"
	"errors"
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// Registry is the registry of a cluster as a push target, reached through one of the cluster's
// hosts.
type Registry struct {
	registry.Target
	Session *Session
	Via     string // the host
}

// OpenRegistry connects to the registry of a cluster through its host, or through the first
// master that answers if the registry already exists.
func OpenRegistry(ctx context.Context, o Options) (*Registry, error) {
	c, role := o.Cluster, manifest.RoleRegistry
	if registryd.UsesExisting(c) {
		role = manifest.RoleMaster
	}
	hosts := c.HostsWith(role)
	if len(hosts) == 0 || c.Spec.Registry.PrivateRegistry == "" {
		return nil, &refusal.Error{Err: errors.New("the config has no registry"), Kind: refusal.Usage, Advice: "specify another registry with --to, or a host in spec.roleGroups.registry"}
	}
	session, host, err := ReachOne(ctx, o, hosts)
	if err != nil {
		return nil, err
	}
	r := &Registry{Session: session, Via: host.Name}
	r.Target, err = registryd.Push(ctx, c, host)
	if errors.Is(err, registryd.ErrNone) {
		err = &refusal.Error{Err: fmt.Errorf("cluster %s has no registry on host %s", c.Metadata.Name, r.Via), Kind: refusal.Failed, Advice: "create it: kubexm install --bundle …"}
	}
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return r, nil
}
