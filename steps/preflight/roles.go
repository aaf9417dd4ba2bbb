package preflight

import (
	"cmp"
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Begun tells whether kubexm has changed anything on this host for this very cluster:
// it keeps its records under the cluster's name from the first change on.
func Begun(ctx context.Context, h *steps.Host) (bool, error) {
	return h.Exists(ctx, op.RecordDir(h))
}

// parts are what a host gets first that becomes a part of a cluster, and what stays of
// one whose data was preserved. None is on record of a host that was only made ready.
func parts(c *manifest.Cluster) []op.Resource {
	var out []op.Resource
	for _, r := range part.Runtimes() { // whatever the config says by now
		out = append(out, op.Blob{Path: r.Program})
	}
	return append(out,
		op.Blob{Path: "/usr/local/bin/etcd"}, op.Blob{Path: "/usr/local/bin/registry"},
		op.Dir{Path: c.Spec.Etcd.DataDir}, op.Dir{Path: c.Spec.Registry.RegistryDataDir},
		op.Dir{Path: part.RuntimeOf(c).DataDir},
	)
}

// Joined tells whether kubexm has begun to make this host part of this very cluster.
func Joined(ctx context.Context, h *steps.Host) (bool, error) {
	if begun, err := Begun(ctx, h); err != nil || !begun {
		return false, err
	}
	for _, r := range parts(h.Cluster) {
		if ours, err := op.Recorded(ctx, h, r); err != nil || ours {
			return ours, err
		}
	}
	return false, nil
}

func master(h *steps.Host) bool { return part.Masters.In(h.Cluster, h.Name) }

func node(h *steps.Host) bool { return part.Nodes.In(h.Cluster, h.Name) }

// role is what a node is called.
func role(h *steps.Host) string {
	if master(h) {
		return "master"
	}
	return "worker"
}

// member tells whether the host is to run a member of the cluster's store.
func member(h *steps.Host) bool {
	return part.Members.In(h.Cluster, h.Name)
}

// compareFindings orders what comes out of a map.
func compareFindings(a, b steps.Finding) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.What, b.What))
}
