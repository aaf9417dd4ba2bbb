package kubeadm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// preservedDir returns the folder on the first master in which a deletion that preserves data
// saves the cluster's keys and a description of the preserved etcd data. The next creation
// uses both.
func preservedDir(h *steps.Host) string { return path.Join(path.Dir(op.RecordDir(h)), "kept") }

func preservedKeyDir(h *steps.Host) string { return path.Join(preservedDir(h), "pki") }

// preserved describes the cluster that preserved etcd data belongs to.
type preserved struct {
	Kubernetes string   `json:"kubernetes"` // "v1.32.2"
	Etcd       string   `json:"etcd"`       // its type
	DataDir    string   `json:"dataDir"`
	Master     string   `json:"master"`  // the first master, which has the keys
	Members    []string `json:"members"` // "e1 at 10.0.0.31"
}

// preservedOf returns what a deletion of c preserves. An etcd that kubeadm runs is left
// with one member: the other masters leave it before the first one stops.
func preservedOf(c *manifest.Cluster) preserved {
	masters, store := c.HostsWith(manifest.RoleMaster), part.StoreOf(c)
	k := preserved{Kubernetes: c.Spec.Kubernetes.Version, Etcd: c.Spec.Etcd.Type, DataDir: store.DataDir, Master: masters[0].Name}
	members := store.Members
	switch store.Kind {
	case part.Stacked:
		members = masters[:1]
	case part.External:
		k.Members = append(k.Members, store.Endpoints...)
	case part.Service:
	}
	for _, m := range members {
		k.Members = append(k.Members, m.Name+" at "+c.NodeAddresses(m)[0])
	}
	slices.Sort(k.Members)
	return k
}

func preservedFile(h *steps.Host) string { return path.Join(preservedDir(h), "store.json") }

// readPreserved reads the description of what an earlier deletion preserved; nil if there
// is none.
func readPreserved(ctx context.Context, h *steps.Host) (*preserved, error) {
	text, err := h.ReadFile(ctx, preservedFile(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := &preserved{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("%s: %w", preservedFile(h), err)
	}
	return k, nil
}

// PreserveKeys saves the cluster's keys on the first master, with a description of the etcd
// data that the deletion preserves.
func PreserveKeys(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.keep-keys", Timeout: 2 * time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			complete, err := controlplane.Complete(ctx, h)
			if err != nil || !complete {
				return err == nil, err // a deletion has begun, or the control plane was never complete
			}
			if k, err := readPreserved(ctx, h); err != nil || k == nil {
				return false, err
			}
			keys, err := readShared(ctx, h, c, controlplane.PKIDir)
			if err != nil {
				return false, err
			}
			for name, now := range keys {
				have, err := h.ReadFile(ctx, path.Join(preservedKeyDir(h), name))
				if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(have, now) {
					return false, nil
				}
				if err != nil {
					return false, err
				}
			}
			return true, nil
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			keys, err := readShared(ctx, h, c, controlplane.PKIDir)
			if err != nil {
				return err
			}
			if _, err := h.Mkdir(ctx, preservedDir(h), runner.Attr{Mode: 0o700}); err != nil {
				return err
			}
			if err := writeKeys(ctx, h, preservedKeyDir(h), keys); err != nil {
				return err
			}
			text, err := json.Marshal(preservedOf(c))
			if err != nil {
				return err
			}
			return h.WriteFile(ctx, preservedFile(h), append(text, '\n'), runner.Attr{Mode: 0o600})
		},
	}
}

// CheckAlone checks, before the first master stops, that its etcd member is the only one left
// of the etcd whose data is preserved: together with members that no longer exist it would
// have no quorum.
func CheckAlone() steps.Step {
	return op.Check("kubeadm.check-last-member", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		if complete, err := controlplane.Complete(ctx, h); err != nil || !complete {
			return nil, err
		}
		all, err := localMember().Members(ctx, h)
		if err != nil {
			return nil, steps.Advise(err, "etcd must answer, because preserved data is usable only with one member left; without --preserve-data all data is deleted")
		}
		if len(all) == 1 {
			return nil, nil
		}
		var names []string
		for _, m := range all {
			names = append(names, m.Name)
		}
		return steps.Findings{{What: "the etcd whose data is preserved has further members: " + strings.Join(names, ", "),
			Advice: fmt.Sprintf("remove the members of masters that no longer exist, on %s: crictl exec $(crictl ps --quiet --name '^etcd$') %s",
				h.Name, strings.Join(localMember().Argv("member", "remove", "ID"), " "))}}, nil
	})
}

// CheckPreserved reports etcd data, preserved by an earlier deletion, that a cluster of this
// config cannot adopt.
func CheckPreserved(c *manifest.Cluster) steps.Step {
	return op.Check("kubeadm.check-kept-store", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		k, err := readPreserved(ctx, h)
		if err != nil || k == nil {
			return nil, err
		}
		if complete, err := controlplane.Complete(ctx, h); err != nil || complete {
			return nil, err // it is adopted already
		}
		want := preservedOf(c)
		var out steps.Findings
		other := func(what, have, now, write string) {
			if have != now {
				out = append(out, steps.Finding{What: fmt.Sprintf("has preserved etcd data of a cluster with %s %s, but this config has %s", what, have, now),
					Advice: write + "; or discard the data with kubexm delete cluster --preserve-data=false"})
			}
		}
		other("etcd of type", k.Etcd, want.Etcd, "set spec.etcd.type: "+k.Etcd)
		other("the data folder", k.DataDir, want.DataDir, "set spec.etcd.dataDir: "+k.DataDir)
		other("the first master", k.Master, want.Master, "list "+k.Master+" first in spec.roleGroups.master: it has the cluster's keys")
		other("the members", strings.Join(k.Members, ", "), strings.Join(want.Members, ", "), "run etcd on the same hosts, with the same addresses")
		other("Kubernetes", release(k.Kubernetes), release(want.Kubernetes), "install Kubernetes "+release(k.Kubernetes)+", the version of the data")
		if len(out) == 0 {
			keys, err := preservedKeys(ctx, h, c)
			if errors.Is(err, fs.ErrNotExist) {
				out = append(out, steps.Finding{What: "has preserved etcd data, but some keys of its cluster are missing in " + preservedKeyDir(h),
					Advice: "restore the keys; or discard the data with kubexm delete cluster --preserve-data=false"})
			} else if err != nil {
				return nil, err
			}
			if keys[manifest.EncryptionName] != nil && !controlplane.Encrypts(c) {
				out = append(out, steps.Finding{What: "has preserved etcd data with encrypted Secrets, but this config disables encryption: the API server could not read them",
					Advice: "remove encryption from spec.kubernetes.hardening.relax; or discard the data with kubexm delete cluster --preserve-data=false"})
			}
		}
		return out, nil
	})
}

// release returns the minor release of a version: "v1.32".
func release(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// preservedKeys reads the keys that a deletion saved.
func preservedKeys(ctx context.Context, h *steps.Host, c *manifest.Cluster) (map[string][]byte, error) {
	return readShared(ctx, h, c, preservedKeyDir(h))
}

// FinishAdoption completes an Init that adopted preserved etcd data: it deletes the Node
// objects of the earlier cluster's other hosts, which join again, and the saved keys.
func FinishAdoption() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.take-up-store", Timeout: 5 * time.Minute, Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			exists, err := h.Exists(ctx, preservedDir(h))
			return err == nil && !exists, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			nodes, err := kubectl.NodesReady(ctx, h)
			if err != nil {
				return err
			}
			delete(nodes, h.Name)
			stale := slices.Sorted(maps.Keys(nodes))
			if len(stale) > 0 {
				if _, err := kubectl.Run(ctx, h, append([]string{"--request-timeout=30s", "delete", "node", "--ignore-not-found"}, stale...)...); err != nil {
					return err
				}
			}
			return h.RemoveAll(ctx, preservedDir(h))
		},
	}
}
