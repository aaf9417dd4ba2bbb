package state

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// Of gives the facade of a host; nil for one that was not reached.
type Of = func(manifest.Host) *steps.Host

// Here gives the record in the cluster's folder dir on this machine; nil without one.
func Here(dir string) (*manifest.Existing, error) {
	r, err := cluster.ReadRecorded(dir)
	if err != nil || r == nil {
		return nil, err
	}
	return existing(r, dir)
}

// Exists gives the record of c's cluster; nil where there is none: then the creation of
// the cluster has never ended. dir is the cluster's folder on this machine. The order of
// trust is
//
//  1. the cluster: the first master whose API server answers tells the record;
//  2. the copies on masters, of several the one with the highest revision;
//  3. the copy in dir, which counts before those on masters only where its revision is
//     higher than theirs.
//
// A copy counts also where the cluster answers and has no record: somebody may have
// taken it away there.
func Exists(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*manifest.Existing, error) {
	e, _, err := Recorded(ctx, c, dir, of)
	return e, err
}

// Recorded is Exists, and gives the record also as a look at hosts takes it: what it was
// applied with, and nothing of a run in hand.
func Recorded(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*manifest.Existing, steps.Applied, error) {
	f, err := find(ctx, c, dir, of)
	if err != nil || f.record == nil {
		return nil, steps.Applied{}, err
	}
	e, err := existing(f.record, dir)
	if err != nil {
		return nil, steps.Applied{}, err
	}
	a, err := f.record.Applied()
	return e, a, err
}

// found is a record, and where it was found.
type found struct {
	record *cluster.Recorded // nil: there is none
	at     *steps.Host       // the master; nil: this machine
	here   *cluster.Recorded // the copy on this machine; nil without one
}

func find(ctx context.Context, c *manifest.Cluster, dir string, of Of) (found, error) {
	here, err := cluster.ReadRecorded(dir)
	if err != nil {
		return found{}, err
	}
	out := found{here: here}
	var masters []*steps.Host
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		masters = append(masters, h)
		r, err := cluster.AskRecorded(ctx, h)
		switch {
		case ctx.Err() != nil:
			return found{}, ctx.Err()
		case err != nil:
			h.Log.WarnContext(ctx, "the cluster does not tell what was applied to it", "err", err)
		case r != nil && len(r.Config) > 0:
			out.record, out.at = r, h
			return out, nil
		}
	}
	for _, h := range masters {
		r, err := cluster.ReadCopy(ctx, h)
		switch {
		case ctx.Err() != nil:
			return found{}, ctx.Err()
		case err != nil:
			h.Log.WarnContext(ctx, "the master's copy of the cluster's record cannot be read", "err", err)
		case r != nil && (out.record == nil || r.Revision() > out.record.Revision()):
			out.record, out.at = r, h
		}
	}
	if here != nil && (out.record == nil || here.Revision() > out.record.Revision()) {
		out.record, out.at = here, nil
	}
	return out, nil
}

// existing decodes a record.
func existing(r *cluster.Recorded, dir string) (*manifest.Existing, error) {
	c, problems := manifest.Decode(bytes.NewReader(r.Config))
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("the config that was applied to the cluster: %w", err)
	}
	out := &manifest.Existing{
		Config: c, Set: cmp.Or(r.Set(), c.Spec.Kubernetes.Version), Root: r.Summary["bundle"], Serial: r.Serial(), Highest: cluster.HighestSerial(r.Summary),
		Lock: r.Summary["lock"], Lead: r.Lead(), Away: r.Away(), Revision: r.Revision(),
	}
	var err error
	if out.Components, err = r.Components(); err != nil {
		return nil, err
	}
	if out.Components == nil {
		out.Components = lockedHere(out, dir)
	}
	for _, h := range c.Spec.Hosts {
		out.Hosts = append(out.Hosts, manifest.ExistingHost{
			Name: h.Name, Roles: c.RolesOf(h.Name), Joined: part.Nodes.In(c, h.Name), Components: maps.Clone(part.Components(c, h.Name, out.Components)),
		})
	}
	return out, nil
}

// lockedHere gives the components of a record that does not say them, from the lock in
// the cluster's folder, if it is the one that was applied.
func lockedHere(e *manifest.Existing, dir string) map[string]string {
	l, sum, err := LockHere(dir)
	if err != nil || l == nil || sum != e.Lock {
		return nil // it is on another machine
	}
	return l.Components(e.Set)
}
