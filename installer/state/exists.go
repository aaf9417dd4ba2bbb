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

// Of returns the facade of a host; nil for one that was not reached.
type Of = func(manifest.Host) *steps.Host

// Here returns the record in the cluster's folder dir on this machine; nil without one.
func Here(dir string) (*manifest.Existing, error) {
	r, err := cluster.ReadRecorded(dir)
	if err != nil || r == nil {
		return nil, err
	}
	return decodeRecord(r, dir)
}

// Exists returns the record of c's cluster; nil if there is none: then the installation
// of the cluster has never finished. dir is the cluster's folder on this machine. The
// order of trust is
//
//  1. the cluster: the record is read through the first master whose API server answers;
//  2. the copies on masters: the one with the highest revision;
//  3. the copy in dir, only if its revision is higher than theirs.
//
// A copy is also used if the cluster answers but has no record: the record may have been
// deleted from the cluster.
func Exists(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*manifest.Existing, error) {
	e, _, err := Recorded(ctx, c, dir, of)
	return e, err
}

// Recorded is Exists, and also returns the record in the form that checks of hosts use: what
// was applied, without the current run.
func Recorded(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*manifest.Existing, steps.Applied, error) {
	f, err := find(ctx, c, dir, of)
	if err != nil || f.record == nil {
		return nil, steps.Applied{}, err
	}
	e, err := decodeRecord(f.record, dir)
	if err != nil {
		return nil, steps.Applied{}, err
	}
	a, err := f.record.Applied()
	return e, a, err
}

// found is a record with its source.
type found struct {
	record *cluster.Recorded // nil: there is no record
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
		r, err := cluster.FetchRecorded(ctx, h)
		switch {
		case ctx.Err() != nil:
			return found{}, ctx.Err()
		case err != nil:
			h.Log.WarnContext(ctx, "cannot read the cluster record from the API", "err", err)
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
			h.Log.WarnContext(ctx, "cannot read the copy of the cluster record on the master", "err", err)
		case r != nil && (out.record == nil || r.Revision() > out.record.Revision()):
			out.record, out.at = r, h
		}
	}
	if here != nil && (out.record == nil || here.Revision() > out.record.Revision()) {
		out.record, out.at = here, nil
	}
	return out, nil
}

// decodeRecord decodes a record.
func decodeRecord(r *cluster.Recorded, dir string) (*manifest.Existing, error) {
	c, problems := manifest.Decode(bytes.NewReader(r.Config))
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("config in the cluster record: %w", err)
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
		out.Components = localComponents(out, dir)
	}
	for _, h := range c.Spec.Hosts {
		out.Hosts = append(out.Hosts, manifest.ExistingHost{
			Name: h.Name, Roles: c.RolesOf(h.Name), Joined: part.Nodes.In(c, h.Name), Components: maps.Clone(part.Components(c, h.Name, out.Components)),
		})
	}
	return out, nil
}

// localComponents returns the components for a record that does not list them, from the lock in the
// cluster's folder, if that is the applied one.
func localComponents(e *manifest.Existing, dir string) map[string]string {
	l, sum, err := LockHere(dir)
	if err != nil || l == nil || sum != e.Lock {
		return nil // the lock is on another machine
	}
	return l.Components(e.Set)
}
