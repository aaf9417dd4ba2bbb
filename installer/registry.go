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

// Registry is the registry of a cluster, for who pushes, through one of its hosts.
type Registry struct {
	registry.Target
	Session *Session
	Via     string // the host
}

// OpenRegistry reaches the registry of a cluster through its host, or through the
// first master that answers where the registry exists already.
func OpenRegistry(ctx context.Context, o Options) (*Registry, error) {
	c, role := o.Cluster, manifest.RoleRegistry
	if registryd.Stands(c) {
		role = manifest.RoleMaster
	}
	hosts := c.HostsWith(role)
	if len(hosts) == 0 || c.Spec.Registry.PrivateRegistry == "" {
		return nil, &refusal.Error{Err: errors.New("the config has no registry"), Kind: refusal.Usage, Advice: "name another one with --to, or a host in spec.roleGroups.registry"}
	}
	session, host, err := ReachOne(ctx, o, hosts)
	if err != nil {
		return nil, err
	}
	r := &Registry{Session: session, Via: host.Name}
	r.Target, err = registryd.Push(ctx, c, host)
	if errors.Is(err, registryd.ErrNone) {
		err = &refusal.Error{Err: fmt.Errorf("there is no registry of cluster %s on %s", c.Metadata.Name, r.Via), Kind: refusal.Failed, Advice: "make it: kubexm install --bundle …"}
	}
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return r, nil
}
