package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubeadm"
)

// Replaced finds a first master on which kubeadm init would create a second cluster beside an
// existing one: its machine was replaced, or a new host is listed first. The other hosts or
// the folder dir on this machine prove that a cluster exists. r is the cluster record; nil
// without one.
func Replaced(ctx context.Context, c *manifest.Cluster, r *manifest.Existing, dir string, of Of) (steps.Findings, error) {
	masters := c.HostsWith(manifest.RoleMaster)
	if len(masters) == 0 {
		return nil, nil
	}
	if found := listedFirst(masters[0], r); len(found) > 0 {
		return found, nil
	}
	if of(masters[0]) == nil {
		return nil, nil
	}
	first := of(masters[0])
	if done, err := controlplane.Complete(ctx, first); err != nil || done {
		return nil, err
	}
	hosts, ca, err := clusterNodes(ctx, c, first.Name, of)
	if err != nil {
		return nil, err
	}
	knows := slices.Clone(hosts)
	switch _, err := os.Stat(cluster.KubeconfigPath(dir)); {
	case err == nil:
		knows = append(knows, "the kubeconfig in "+dir)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if r != nil {
		knows = append(knows, "the cluster record")
	}
	if len(knows) == 0 {
		return nil, nil
	}
	if ours, err := recovers(ctx, first, ca); err != nil || ours {
		return nil, err
	}
	f := steps.Finding{Host: first.Name, Check: Check,
		What:   fmt.Sprintf("is the first master and has no control plane of the existing cluster (known from %s): was its machine replaced? kubeadm init would create a second cluster there", strings.Join(knows, ", ")),
		Advice: "bring the machine back with its disk, or restore the disk from a backup. If the data of the cluster may be lost: kubexm delete cluster -f CONFIG --yes, then kubexm install --bundle ARCHIVE",
	}
	if len(hosts) == 0 {
		f.Advice += ". No host belongs to the cluster: if the cluster was deleted from another machine, run the deletion on this machine too"
	}
	return steps.Findings{f}, nil
}

// listedFirst finds a first master that the cluster record does not list as a master. Its host may
// have a control plane of its own, such as one that was deleted while it did not answer.
func listedFirst(first manifest.Host, r *manifest.Existing) steps.Findings {
	if r == nil || slices.Contains(r.Config.RolesOf(first.Name), manifest.RoleMaster) {
		return nil
	}
	was := r.Config.Spec.RoleGroups.Names(manifest.RoleMaster)
	if len(was) == 0 {
		return nil
	}
	return steps.Findings{{Host: first.Name, Check: Check,
		What:   "is listed first in spec.roleGroups.master, but is not a master of the existing cluster: kubeadm init would create a second cluster there",
		Advice: "list " + was[0] + " first: the masters after the first join the cluster",
	}}
}

// Preserved reports whether the cluster was deleted with its data preserved for the next one:
// the first master has that data, and no host belongs to a cluster. The record in dir may be
// older than the deletion if that ran on another machine.
func Preserved(ctx context.Context, c *manifest.Cluster, dir string, of Of) (bool, error) {
	masters := c.HostsWith(manifest.RoleMaster)
	if len(masters) == 0 || of(masters[0]) == nil {
		return false, nil
	}
	first := of(masters[0])
	ca, err := kubeadm.PreservedCA(ctx, first)
	if err != nil || ca == nil {
		return false, err
	}
	if own, err := controlplane.CA(ctx, first); err != nil || own != nil {
		return false, err
	}
	if hosts, _, err := clusterNodes(ctx, c, first.Name, of); err != nil || len(hosts) > 0 {
		return false, err
	}
	return cluster.KubeconfigMatches(dir, ca)
}

// clusterNodes returns the hosts other than the first master that are nodes of a cluster, and the
// CA of the first of them.
func clusterNodes(ctx context.Context, c *manifest.Cluster, first string, of Of) (hosts []string, ca []byte, err error) {
	for _, x := range c.Spec.Hosts {
		h := of(x)
		if h == nil || x.Name == first {
			continue
		}
		text, err := controlplane.CA(ctx, h)
		if err != nil {
			return nil, nil, fmt.Errorf("host %s: %w", x.Name, err)
		}
		if text == nil {
			continue
		}
		if hosts = append(hosts, x.Name); ca == nil {
			ca = text
		}
	}
	return hosts, ca, nil
}

// recovers reports whether the first master has a working control plane of the cluster with
// ca, or of an unknown one, that was not recorded as complete.
func recovers(ctx context.Context, first *steps.Host, ca []byte) (bool, error) {
	makes, err := kubeadm.Initializes(ctx, first)
	if err != nil || makes {
		return false, err
	}
	own, err := controlplane.CA(ctx, first)
	if err != nil || ca != nil && !bytes.Equal(own, ca) {
		return false, err
	}
	return controlplane.Running(ctx, first)
}
