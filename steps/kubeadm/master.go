package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Vacant carries, for each further master, whether it is still to be joined: what
// the cluster knows of an earlier one in its place is dead then.
var Vacant = steps.NewKey[bool]("kubeadm.vacant")

// MasterJoin carries from the lead to one that joins what it takes: a
// token, and the keys that all masters share. It is in memory alone.
var MasterJoin = steps.NewKey[MasterToken]("kubeadm.join-of-master")

// MasterToken is what a master joins with.
type MasterToken struct {
	Token
	Keys map[string][]byte // secrets, by their names in kubeadm's folder of certificates
}

// sharedKeys are what all masters have the same of, as kubeadm's documentation
// lists it.
func sharedKeys(c *manifest.Cluster) []string {
	out := []string{"ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key"}
	if stacked(c) {
		out = append(out, "etcd/ca.crt", "etcd/ca.key")
	}
	return out
}

// readShared reads the keys that all masters have the same of. What Secrets are
// encrypted with is there where the cluster was made so.
func readShared(ctx context.Context, h *steps.Host, c *manifest.Cluster, dir string) (map[string][]byte, error) {
	keys := map[string][]byte{}
	for _, name := range append(sharedKeys(c), manifest.EncryptionName) {
		text, err := h.ReadFile(ctx, path.Join(dir, name))
		if name == manifest.EncryptionName && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		keys[name] = text
	}
	return keys, nil
}

// PrepareMaster finds out whether a further master has joined, and takes back what
// an earlier run left half way.
func PrepareMaster() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.prepare-master", Writes: []steps.AnyKey{Vacant}, Timeout: 15 * time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if stands, err := masterStands(ctx, h); err != nil || stands {
				return stands, errors.Join(err, Vacant.On(h.Name).Put(h, false))
			}
			s, err := h.Job(ctx, joinJob, 0)
			if err != nil || s.Exists {
				return false, err
			}
			if half, err := controlplane.Begun(ctx, h); err != nil || half {
				return false, err
			}
			return true, Vacant.On(h.Name).Put(h, true)
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			done, err := found(ctx, h, joinJob, masterJoined)
			if err != nil {
				return err
			}
			return Vacant.On(h.Name).Put(h, !done)
		},
	}
}

// masterStands tells whether a master was made whole and its kubelet runs.
func masterStands(ctx context.Context, h *steps.Host) (bool, error) {
	if whole, err := controlplane.Complete(ctx, h); err != nil || !whole {
		return false, err
	}
	return joined(ctx, h)
}

// masterJoined looks for what the last phase of kubeadm join of a master leaves: a
// node that is marked as one.
func masterJoined(ctx context.Context, h *steps.Host) (bool, error) {
	if ok, err := controlplane.Bootable(ctx, h); err != nil || !ok {
		return false, err
	}
	if ok, err := joined(ctx, h); err != nil || !ok {
		return false, err
	}
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "node", h.Name, "-o", "jsonpath={.metadata.labels}")
	if runner.Refused(err) {
		return false, nil
	}
	return err == nil && strings.Contains(out, "node-role.kubernetes.io/control-plane"), err
}

// MintMasterToken makes on the lead what joining joins with, where it is
// still to be joined. The keys travel in memory, over the connections that kubexm
// has: nothing of them is stored in the cluster.
func MintMasterToken(c *manifest.Cluster, joining manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.mint-master-token", Reads: []steps.AnyKey{Vacant}, Writes: []steps.AnyKey{MasterJoin}, Always: true,
			Timeout: 3 * time.Minute, Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			vacant, err := Vacant.On(joining.Name).Get(h)
			if err != nil || vacant {
				return false, err
			}
			return true, MasterJoin.Put(h, MasterToken{})
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			// Of one that was reset without the cluster's knowledge the node stays Ready for a while.
			gone, err := soon(ctx, h, func(ctx context.Context, h *steps.Host) (bool, error) {
				out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "nodes", "-o", readiness)
				return !slices.Contains(strings.Fields(out), joining.Name+"=True"), err
			}, doubt)
			if err == nil && !gone {
				err = known(joining.Name)
			}
			if err != nil {
				return err
			}
			t, err := mint(ctx, h)
			if err != nil {
				return err
			}
			keys, err := readShared(ctx, h, c, controlplane.PKIDir)
			if err != nil {
				return err
			}
			return MasterJoin.Put(h, MasterToken{Token: t, Keys: keys})
		},
	}
}

// JoinMaster makes a host a master of the cluster, beside those that are.
func JoinMaster(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M:    steps.Meta{Name: "kubeadm.join-master", Final: true, Reads: []steps.AnyKey{MasterJoin}, Needs: controlPlaneNeeds(c), Timeout: 15 * time.Minute},
		Done: masterStands,
		Act: func(ctx context.Context, h *steps.Host) error {
			t, err := MasterJoin.Get(h)
			if err != nil {
				return err
			}
			if t.Value == "" {
				return fmt.Errorf("%s was a master when this run began, and is none any more", h.Name)
			}
			if err := makeStore(ctx, h); err != nil {
				return err
			}
			// Of one that somebody has reset: what fails from here on is to be taken back.
			if err := h.Remove(ctx, controlplane.CompleteFile); err != nil {
				return err
			}
			if err := giveKeys(ctx, h, t.Keys); err != nil {
				return err
			}
			if err := join(ctx, c, h, t.Token); err != nil {
				return err
			}
			// The API server that says so may be a moment away: the store has one member more.
			if done, err := soon(ctx, h, masterJoined, doubt); err != nil || !done {
				return errors.Join(errors.New("kubeadm ended well, and the cluster has no such master"), err)
			}
			return controlplane.MarkComplete(ctx, h)
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return takeBack(ctx, h, joinJob, masterJoined) },
	}
}

// giveKeys writes the keys that all masters share, where kubeadm looks for them.
func giveKeys(ctx context.Context, h *steps.Host, keys map[string][]byte) error {
	return writeKeys(ctx, h, controlplane.PKIDir, keys)
}

func writeKeys(ctx context.Context, h *steps.Host, dir string, keys map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		file := path.Join(dir, name)
		if _, err := h.Mkdir(ctx, path.Dir(file), runner.Attr{}); err != nil {
			return err
		}
		a := runner.Attr{Mode: 0o600}
		if strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, ".pub") {
			a.Mode = 0o644
		}
		if err := h.WriteFile(ctx, file, keys[name], a); err != nil {
			return err
		}
	}
	return nil
}
