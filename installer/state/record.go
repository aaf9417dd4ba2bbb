package state

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// Of gives the facade of a host; nil for one that was not reached.
type Of = func(manifest.Host) *steps.Host

// Record is what the last installation that ended well has left of itself.
type Record struct {
	Cluster    *manifest.Cluster // as it was applied; its secrets are references
	Config     []byte            // the same as text
	Components map[string]string // versions by component; nil: the record does not say
	Lock       string            // "sha256:…" of the bundle's lock

	summary  map[string]string
	recorded map[string]string // the components, as far as the record itself says them
}

// Again is what the record says, for a look at it: nothing of the run in hand.
func (r *Record) Again() steps.Applied {
	s := r.summary
	return steps.Applied{Config: r.Config, ConfigDigest: s["config"], LockDigest: s["lock"], Serial: s["serial"], Highest: s["highest"], Root: s["bundle"], Components: r.recorded}
}

// Here reads the record in the cluster's folder on this machine; nil without one.
func Here(dir string) (*Record, error) {
	r, err := cluster.ReadRecorded(dir)
	if err != nil || r == nil {
		return nil, err
	}
	return read(r, dir)
}

// Read gives the record of c's cluster: its own, and where no master answers or has
// one, that of the folder dir on this machine. It is nil where neither is: then the
// creation of the cluster has never ended.
func Read(ctx context.Context, c *manifest.Cluster, dir string, of Of) (*Record, error) {
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
			h.Log.WarnContext(ctx, "the cluster does not tell what was applied to it", "err", err)
		case r != nil:
			return read(r, dir)
		}
	}
	return Here(dir)
}

func read(r *cluster.Recorded, dir string) (*Record, error) {
	c, problems := manifest.Decode(bytes.NewReader(r.Config))
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("the config that was applied to the cluster: %w", err)
	}
	out := &Record{Cluster: c, Config: r.Config, Lock: r.Summary["lock"], summary: r.Summary}
	var err error
	if out.Components, err = r.Components(); err != nil || out.Components != nil {
		out.recorded = out.Components
		return out, err
	}
	out.Components = lockedHere(out, dir)
	return out, nil
}

// lockedHere gives the components of a record that does not say them, from the lock in
// the cluster's folder, if it is the one that was applied.
func lockedHere(r *Record, dir string) map[string]string {
	text, err := os.ReadFile(filepath.Join(dir, "applied", "kubexm.lock"))
	if err != nil || digest.FromBytes(text).String() != r.Lock {
		return nil // it is on another machine
	}
	l, problems := manifest.DecodeLock(bytes.NewReader(text))
	if problems.Err() != nil {
		return nil
	}
	return l.Components(r.Cluster.Spec.Kubernetes.Version)
}
