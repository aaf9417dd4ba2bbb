package state

import (
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// Adopt updates the record in the cluster's folder dir from the cluster or its masters, if
// theirs is newer. It returns the master that the record was read from; "" if dir was up to
// date, or if there is no record. replaced reports that dir had an older one.
func Adopt(ctx context.Context, c *manifest.Cluster, dir string, of Of) (from string, replaced bool, err error) {
	f, err := find(ctx, c, dir, of)
	if err != nil || f.record == nil || f.at == nil {
		return "", false, err
	}
	if f.here != nil && f.here.Same(f.record) {
		return "", false, nil
	}
	var lock []byte
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		if h := of(m); h != nil && lock == nil {
			if lock, err = cluster.LockOf(ctx, h, f.record); err != nil {
				h.Log.WarnContext(ctx, "cannot read the lock copy on the master", "err", err)
			}
		}
	}
	if err := cluster.WriteRecorded(dir, f.record, lock); err != nil {
		return "", false, fmt.Errorf("cluster record: %w", err)
	}
	return f.at.Name, f.here != nil, nil
}
