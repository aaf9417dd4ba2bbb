package state

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// Operation gives the operation that is open on c's cluster; nil where none is. A cluster
// that answers and has a record tells it. Before its creation has ended, and where no API
// server answers, the files on masters do, and then the one in the cluster's folder dir.
func Operation(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*cluster.Operation, error) {
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		r, err := cluster.AskRecorded(ctx, h)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			h.Log.WarnContext(ctx, "the cluster does not tell whether an operation is open", "err", err)
		case r != nil:
			return r.Operation()
		}
	}
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		o, err := cluster.ReadOperation(ctx, h)
		if err != nil || o != nil {
			return o, err
		}
	}
	return cluster.OperationHere(dir)
}

// History gives the operations that have ended or failed on c's cluster, the oldest first:
// those in the cluster's folder dir, and before them those that the cluster remembers of
// other machines.
func History(ctx context.Context, c *manifest.Cluster, dir string, of Of) ([]cluster.Ended, error) {
	here, err := cluster.HistoryHere(dir)
	if err != nil {
		return nil, err
	}
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		there, err := cluster.AskHistory(ctx, h)
		if err == nil {
			return merged(there, here), nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.Log.WarnContext(ctx, "the cluster does not tell its history", "err", err)
	}
	return here, nil
}
