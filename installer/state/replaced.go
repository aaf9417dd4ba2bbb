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

// Replaced finds a first master on which kubeadm init would make a second cluster
// beside one that exists: its machine was replaced, or it is new and stands first.
// That there is a cluster its other hosts tell, or the folder dir on this machine.
// r is the cluster's record; nil where there is none.
func Replaced(ctx context.Context, c *manifest.Cluster, r *manifest.Existing, dir string, of Of) (steps.Findings, error) {
	masters := c.HostsWith(manifest.RoleMaster)
	if len(masters) == 0 || of(masters[0]) == nil {
		return nil, nil
	}
	first := of(masters[0])
	if done, err := controlplane.Complete(ctx, first); err != nil || done {
		return nil, err
	}
	hosts, ca, err := belonging(ctx, c, first.Name, of)
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
		knows = append(knows, "the record of what was applied")
	}
	if len(knows) == 0 {
		return nil, nil
	}
	if ours, err := recovers(ctx, first, ca); err != nil || ours {
		return nil, err
	}
	f := steps.Finding{Host: first.Name, Check: Check,
		What:   fmt.Sprintf("is the first master and holds no control plane of the cluster that exists (known from %s): was its machine replaced? kubeadm init would make a second cluster there", strings.Join(knows, ", ")),
		Advice: "bring the machine back with its disk, or restore the disk from a backup. If the data of the cluster may be lost: kubexm delete cluster -f CONFIG --yes, then kubexm install --bundle ARCHIVE",
	}
	if len(hosts) == 0 {
		f.Advice += ". No host belongs to the cluster: if another machine has deleted the cluster, run the deletion here too"
	}
	if r != nil && !slices.Contains(r.Config.RolesOf(first.Name), manifest.RoleMaster) {
		if was := r.Config.Spec.RoleGroups.Names(manifest.RoleMaster); len(was) > 0 {
			f.What = "stands first in spec.roleGroups.master, and is no master of the cluster that exists: kubeadm init would make a second cluster there"
			f.Advice = "name " + was[0] + " first: masters behind the first join the cluster"
		}
	}
	return steps.Findings{f}, nil
}

// Preserved tells whether the cluster was deleted and its data preserved for the next
// one: the first master holds that data, and no host belongs to a cluster. The record
// in dir may be older than the deletion, which ran on another machine.
func Preserved(ctx context.Context, c *manifest.Cluster, dir string, of Of) (bool, error) {
	masters := c.HostsWith(manifest.RoleMaster)
	if len(masters) == 0 || of(masters[0]) == nil {
		return false, nil
	}
	first := of(masters[0])
	ca, err := kubeadm.KeptCA(ctx, first)
	if err != nil || ca == nil {
		return false, err
	}
	if own, err := controlplane.CA(ctx, first); err != nil || own != nil {
		return false, err
	}
	if hosts, _, err := belonging(ctx, c, first.Name, of); err != nil || len(hosts) > 0 {
		return false, err
	}
	return cluster.Knows(dir, ca)
}

// belonging names the hosts beside the first master that are nodes of a cluster, and
// gives the CA of the first of them.
func belonging(ctx context.Context, c *manifest.Cluster, first string, of Of) (hosts []string, ca []byte, err error) {
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

// recovers tells whether the first master has a control plane of the cluster with ca,
// or of an unknown one, that answers: nobody has written down that it was whole.
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
