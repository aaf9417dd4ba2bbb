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

// NotJoined reports, for each further master, whether it still has to join. Then an etcd
// member of its address in the cluster is an earlier one that no longer runs.
var NotJoined = steps.NewKey[bool]("kubeadm.vacant")

// MasterJoinToken passes the token and the shared keys from the first healthy master to a
// joining one, in memory only.
var MasterJoinToken = steps.NewKey[MasterToken]("kubeadm.join-of-master")

// MasterToken is what a master needs to join.
type MasterToken struct {
	Token
	Keys map[string][]byte // secrets, by their paths in /etc/kubernetes/pki
}

// sharedKeys returns the key files that are identical on all masters, as listed in kubeadm's
// documentation.
func sharedKeys(c *manifest.Cluster) []string {
	out := []string{"ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key"}
	if stacked(c) {
		out = append(out, "etcd/ca.crt", "etcd/ca.key")
	}
	return out
}

// readShared reads the keys that are identical on all masters, including the encryption
// configuration of Secrets if the cluster has one.
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

// PrepareMaster finds out whether a further master has joined, and resets an incomplete
// join of an earlier run.
func PrepareMaster() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.prepare-master", Writes: []steps.AnyKey{NotJoined}, Timeout: 15 * time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if exists, err := masterExists(ctx, h); err != nil || exists {
				return exists, errors.Join(err, NotJoined.On(h.Name).Put(h, false))
			}
			s, err := h.Job(ctx, joinJob, 0)
			if err != nil || s.Exists {
				return false, err
			}
			if half, err := controlplane.Started(ctx, h); err != nil || half {
				return false, err
			}
			return true, NotJoined.On(h.Name).Put(h, true)
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			done, err := prepareMaster(ctx, h, joinJob, masterJoined)
			if err != nil {
				return err
			}
			return NotJoined.On(h.Name).Put(h, !done)
		},
	}
}

// masterExists reports whether a master is marked complete and its kubelet runs.
func masterExists(ctx context.Context, h *steps.Host) (bool, error) {
	if complete, err := controlplane.Complete(ctx, h); err != nil || !complete {
		return false, err
	}
	return joined(ctx, h)
}

// masterJoined checks for the result of the last phase of kubeadm join for a master: the
// control-plane label of its node.
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

// MintMasterToken creates a token on the first healthy master and reads the shared keys, if
// the joining host has not joined yet. kubexm transfers the keys in memory over its SSH
// connections, and does not store them in the cluster.
func MintMasterToken(c *manifest.Cluster, joining manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.mint-master-token", Reads: []steps.AnyKey{NotJoined}, Writes: []steps.AnyKey{MasterJoinToken}, Always: true,
			Timeout: 3 * time.Minute, Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			vacant, err := NotJoined.On(joining.Name).Get(h)
			if err != nil || vacant {
				return false, err
			}
			return true, MasterJoinToken.Put(h, MasterToken{})
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			// The node of a host that was reset outside of kubexm stays Ready for a while.
			gone, err := poll(ctx, h, func(ctx context.Context, h *steps.Host) (bool, error) {
				ready, err := kubectl.NodesReady(ctx, h)
				return !ready[joining.Name], err
			}, unknownTimeout)
			if err == nil && !gone {
				err = nameTaken(joining.Name)
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
			return MasterJoinToken.Put(h, MasterToken{Token: t, Keys: keys})
		},
	}
}

// JoinMaster joins a host to the cluster as a further master, with kubeadm join.
func JoinMaster(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M:    steps.Meta{Name: "kubeadm.join-master", Final: true, Reads: []steps.AnyKey{MasterJoinToken}, Needs: controlPlaneNeeds(c), Timeout: 15 * time.Minute},
		Done: masterExists,
		Act: func(ctx context.Context, h *steps.Host) error {
			t, err := MasterJoinToken.Get(h)
			if err != nil {
				return err
			}
			if t.Value == "" {
				return fmt.Errorf("%s was a master when this run began, but no longer is one", h.Name)
			}
			if err := makeStore(ctx, h); err != nil {
				return err
			}
			// The mark may remain from before a kubeadm reset; without it a failure is undone.
			if err := h.Remove(ctx, controlplane.CompleteFile); err != nil {
				return err
			}
			if err := installKeys(ctx, h, t.Keys); err != nil {
				return err
			}
			if err := join(ctx, c, h, t.Token); err != nil {
				return err
			}
			// The API server may not answer for a moment, because etcd has one more member.
			if done, err := poll(ctx, h, masterJoined, unknownTimeout); err != nil || !done {
				return errors.Join(errors.New("kubeadm join succeeded, but the cluster has no such master"), err)
			}
			return controlplane.MarkComplete(ctx, h)
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return undoMaster(ctx, h, joinJob, masterJoined) },
	}
}

// installKeys writes the shared keys to kubeadm's certificate folder.
func installKeys(ctx context.Context, h *steps.Host, keys map[string][]byte) error {
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
