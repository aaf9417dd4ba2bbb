package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/controlplane"
)

// SerialHere returns the highest serial in the record in the cluster's folder dir; 0 without
// one.
func SerialHere(dir string) (int64, error) {
	summary, err := cluster.ReadSummary(dir)
	if err != nil {
		return 0, fmt.Errorf("cluster record: %w", err)
	}
	return cluster.HighestSerial(summary), nil
}

// BundleHere returns the bundle of the record in dir; nil without one.
func BundleHere(dir string) (*manifest.AppliedBundle, error) {
	summary, err := cluster.ReadSummary(dir)
	if err != nil || summary["bundle"] == "" {
		return nil, err
	}
	return &manifest.AppliedBundle{Root: summary["bundle"], Serial: summary["serial"]}, nil
}

// LockHere returns the lock of the record in dir, with its digest; nil without one.
func LockHere(dir string) (l *manifest.Lock, sum string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "applied", "kubexm.lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	l, problems := manifest.DecodeLock(bytes.NewReader(text))
	return l, digest.FromBytes(text).String(), problems.Err()
}

// Serial reads the highest serial from c's cluster; 0 if the cluster does not exist yet. If a
// complete control plane exists but no master answers, it returns an error: copies of the
// record may be older.
func Serial(ctx context.Context, c *manifest.Cluster, of Of) (int64, error) {
	var failed error
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		h := of(m)
		if h == nil {
			continue
		}
		complete, err := controlplane.Complete(ctx, h)
		if err == nil && !complete { // no record exists yet
			continue
		}
		if err == nil {
			var serial int64
			if serial, err = cluster.AppliedSerial(ctx, h); err == nil {
				return serial, nil
			}
		}
		failed = errors.Join(failed, fmt.Errorf("host %s: %w", m.Name, err))
	}
	return 0, failed
}
