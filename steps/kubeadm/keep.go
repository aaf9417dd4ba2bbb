package kubeadm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// What a deletion that preserves data leaves on the first master, beside the store
// itself: the keys that the objects in the store were made with, and what they are
// of. The next creation goes on from them.
func keptDir(h *steps.Host) string { return path.Join(path.Dir(op.RecordDir(h)), "kept") }

func keptKeys(h *steps.Host) string { return path.Join(keptDir(h), "pki") }

// kept says which cluster a store that was preserved is of.
type kept struct {
	Kubernetes string   `json:"kubernetes"` // "v1.32.2"
	Etcd       string   `json:"etcd"`       // its type
	DataDir    string   `json:"dataDir"`
	Master     string   `json:"master"`  // the first, which has the keys
	Members    []string `json:"members"` // "e1 at 10.0.0.31"
}

// keptOf is what c preserves. A store that kubeadm runs ends with one member: the
// other masters leave it before the first one stops.
func keptOf(c *manifest.Cluster) kept {
	masters, store := c.HostsWith(manifest.RoleMaster), part.StoreOf(c)
	k := kept{Kubernetes: c.Spec.Kubernetes.Version, Etcd: c.Spec.Etcd.Type, DataDir: store.DataDir, Master: masters[0].Name}
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

func keptFile(h *steps.Host) string { return path.Join(keptDir(h), "store.json") }

// readKept gives what an earlier deletion preserved; nil where there is nothing.
func readKept(ctx context.Context, h *steps.Host) (*kept, error) {
	text, err := h.ReadFile(ctx, keptFile(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := &kept{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("%s: %w", keptFile(h), err)
	}
	return k, nil
}

// KeepKeys puts on record, on the first master, what the store that stays is of.
func KeepKeys(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.keep-keys", Timeout: 2 * time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			whole, err := controlplane.Complete(ctx, h)
			if err != nil || !whole {
				return err == nil, err // what is left of a deletion, or was never whole
			}
			if k, err := readKept(ctx, h); err != nil || k == nil {
				return false, err
			}
			keys, err := readShared(ctx, h, c, controlplane.PKIDir)
			if err != nil {
				return false, err
			}
			for name, now := range keys {
				have, err := h.ReadFile(ctx, path.Join(keptKeys(h), name))
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
			if _, err := h.Mkdir(ctx, keptDir(h), runner.Attr{Mode: 0o700}); err != nil {
				return err
			}
			if err := writeKeys(ctx, h, keptKeys(h), keys); err != nil {
				return err
			}
			text, err := json.Marshal(keptOf(c))
			if err != nil {
				return err
			}
			return h.WriteFile(ctx, keptFile(h), append(text, '\n'), runner.Attr{Mode: 0o600})
		},
	}
}

// CheckAlone looks, before the first master stops, whether its member of the store
// that stays is the last one: with others that are gone it would never start again.
func CheckAlone() steps.Step {
	return op.Check("kubeadm.check-last-member", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		if whole, err := controlplane.Complete(ctx, h); err != nil || !whole {
			return nil, err
		}
		all, err := memberHere().Members(ctx, h)
		if err != nil {
			return nil, steps.Advise(err, "the store has to answer: what stays of it is of use with one member alone; without --preserve-data everything goes")
		}
		if len(all) == 1 {
			return nil, nil
		}
		var names []string
		for _, m := range all {
			names = append(names, m.Name)
		}
		return steps.Findings{{What: "the store that is to stay has other members: " + strings.Join(names, ", "),
			Advice: fmt.Sprintf("remove those of masters that are gone, on %s: crictl exec $(crictl ps --quiet --name '^etcd$') %s",
				h.Name, strings.Join(memberHere().Argv("member", "remove", "ID"), " "))}}, nil
	})
}

// CheckKept finds data of a deletion that preserved it which this config cannot
// take up.
func CheckKept(c *manifest.Cluster) steps.Step {
	return op.Check("kubeadm.check-kept-store", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		k, err := readKept(ctx, h)
		if err != nil || k == nil {
			return nil, err
		}
		if whole, err := controlplane.Complete(ctx, h); err != nil || whole {
			return nil, err // it was taken up
		}
		want := keptOf(c)
		var out steps.Findings
		other := func(what, have, now, write string) {
			if have != now {
				out = append(out, steps.Finding{What: fmt.Sprintf("keeps etcd's data of a cluster with %s %s, and this one has %s", what, have, now),
					Advice: write + "; or give the data up: kubexm delete cluster --preserve-data=false"})
			}
		}
		other("etcd of type", k.Etcd, want.Etcd, "write spec.etcd.type: "+k.Etcd)
		other("its data in", k.DataDir, want.DataDir, "write spec.etcd.dataDir: "+k.DataDir)
		other("the first master", k.Master, want.Master, "name "+k.Master+" first in spec.roleGroups.master: it has the cluster's keys")
		other("the members", strings.Join(k.Members, ", "), strings.Join(want.Members, ", "), "let the same hosts run etcd, under the same addresses")
		other("Kubernetes", release(k.Kubernetes), release(want.Kubernetes), "install "+release(k.Kubernetes)+" of Kubernetes, as the data is of")
		if len(out) == 0 {
			keys, err := keysKept(ctx, h, c)
			if errors.Is(err, fs.ErrNotExist) {
				out = append(out, steps.Finding{What: "keeps etcd's data, and not all keys of its cluster in " + keptKeys(h),
					Advice: "bring them back; or give the data up: kubexm delete cluster --preserve-data=false"})
			} else if err != nil {
				return nil, err
			}
			if keys[manifest.EncryptionName] != nil && !controlplane.Encrypts(c) {
				out = append(out, steps.Finding{What: "keeps etcd's data with Secrets that are encrypted, and this config encrypts none: nobody would read them",
					Advice: "take encryption out of spec.kubernetes.hardening.relax; or give the data up: kubexm delete cluster --preserve-data=false"})
			}
		}
		return out, nil
	})
}

// release is the minor release of a version, "v1.32".
func release(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// keysKept reads the keys that a deletion kept.
func keysKept(ctx context.Context, h *steps.Host, c *manifest.Cluster) (map[string][]byte, error) {
	return readShared(ctx, h, c, keptKeys(h))
}

// TakeUp ends what Init began on a store that was preserved: nodes of the cluster
// before are forgotten, for their hosts join anew, and so is what was kept.
func TakeUp() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.take-up-store", Timeout: 5 * time.Minute, Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			exists, err := h.Exists(ctx, keptDir(h))
			return err == nil && !exists, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "nodes", "-o", readiness)
			if err != nil {
				return err
			}
			var stale []string
			for _, word := range strings.Fields(out) {
				if name, _, _ := strings.Cut(word, "="); name != h.Name {
					stale = append(stale, name)
				}
			}
			if len(stale) > 0 {
				if _, err := kubectl.Run(ctx, h, append([]string{"--request-timeout=30s", "delete", "node", "--ignore-not-found"}, stale...)...); err != nil {
					return err
				}
			}
			return h.RemoveAll(ctx, keptDir(h))
		},
	}
}
