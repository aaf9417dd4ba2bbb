package installer

import (
	"context"

	"github.com/mensylisir/kubexm/steps/cluster"
)

// HostRelease is the release that a host has.
type HostRelease struct {
	Host  string   `json:"host"`
	Roles []string `json:"roles"`
	*cluster.Release
	Error string `json:"error,omitempty"` // why it is not known
}

// Releases queries all hosts of the cluster, in their order; unreached are the hosts that the
// session did not reach.
func (s *Session) Releases(ctx context.Context, unreached HostErrors) (out []HostRelease, err error) {
	why := unreached.byHost()
	for _, h := range s.Cluster.Spec.Hosts {
		v := HostRelease{Host: h.Name, Roles: s.Cluster.RolesOf(h.Name)}
		var err error
		if e := why[h.Name]; e != nil {
			err = e
		}
		if x := s.Host(h); x != nil {
			if v.Release, err = cluster.ReadRelease(ctx, x); err != nil {
				err = &HostError{Host: h.Name, Address: h.Address, Err: err}
			}
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			v.Error = err.Error()
		}
		out = append(out, v)
	}
	return out, nil
}
