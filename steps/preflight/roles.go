package preflight

import (
	"cmp"
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
	"github.com/mensylisir/kubexm/steps/op"
)

// Begun reports whether kubexm has changed anything on this host for this cluster. It
// stores its records under the cluster's name from the first change on.
func Begun(ctx context.Context, h *steps.Host) (bool, error) {
	return h.Exists(ctx, op.RecordDir(h))
}

// parts returns the resources that a host gets first when it becomes part of a cluster,
// and those that remain of a cluster whose data was preserved. A host that was only
// prepared has none of them on record.
func parts(c *manifest.Cluster) []op.Resource {
	var out []op.Resource
	for _, r := range part.Runtimes() { // the config may have changed since
		out = append(out, op.Blob{Path: r.Program})
	}
	return append(out,
		op.Blob{Path: "/usr/local/bin/etcd"}, op.Blob{Path: "/usr/local/bin/registry"},
		op.Dir{Path: c.Spec.Etcd.DataDir}, op.Dir{Path: c.Spec.Registry.RegistryDataDir},
		op.Dir{Path: part.RuntimeOf(c).DataDir},
		op.Dir{Path: loadbalancer.Dir},
	)
}

// Joined reports whether kubexm has begun to make this host part of this cluster.
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

// role returns a node's role, for findings.
func role(h *steps.Host) string {
	if master(h) {
		return "master"
	}
	return "worker"
}

// member reports whether the host will run an etcd member of the cluster.
func member(h *steps.Host) bool {
	return part.Members.In(h.Cluster, h.Name)
}

// compareFindings orders findings by host and text, because they come out of a map.
func compareFindings(a, b steps.Finding) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.What, b.What))
}
