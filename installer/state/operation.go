package state

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// Operation returns the open operation of c's cluster; nil if none is open. It is read from
// the cluster if that answers and has a record. Before the installation has ended, or if no
// API server answers, it is read from the files on masters, and then from the cluster's folder
// dir.
func Operation(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*cluster.Operation, error) {
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		r, err := cluster.FetchRecorded(ctx, h)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			h.Log.WarnContext(ctx, "cannot read the open operation from the cluster", "err", err)
		case r != nil:
			return r.Operation()
		}
	}
	return OperationInFiles(ctx, c, dir, of)
}

// OperationInFiles returns the operation in the files on masters, or in the cluster's folder dir;
// nil if there is none. The cluster's record closes an operation together with the change, so a
// run that was killed right then leaves files of an operation that has ended.
func OperationInFiles(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*cluster.Operation, error) {
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
	return cluster.ReadWorkdirOperation(dir)
}

// History returns the operations on c's cluster that ended or failed, the oldest first: from
// the cluster's folder dir, and from the cluster those that other machines ran.
func History(ctx context.Context, c *manifest.Cluster, dir string, of Of) ([]cluster.HistoryEntry, error) {
	here, err := cluster.ReadWorkdirHistory(dir)
	if err != nil {
		return nil, err
	}
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		there, err := cluster.FetchHistory(ctx, h)
		if err == nil {
			return merged(there, here), nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.Log.WarnContext(ctx, "cannot read the history of operations from the cluster", "err", err)
	}
	return here, nil
}
