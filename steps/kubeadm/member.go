package kubeadm

import (
	"context"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/op"
)

// ClearMember removes, through the lead, the store's member in the place of a
// master that is still to be joined. It is one that was added and never started,
// or one whose host was made anew: either counts among those who have to agree,
// and would never do so.
func ClearMember(c *manifest.Cluster, joining manifest.Host) steps.Step {
	url, store := etcd.PeerURL(c, joining), memberHere()
	dead := func(ctx context.Context, h *steps.Host) ([]etcd.Member, error) {
		vacant, err := Vacant.On(joining.Name).Get(h)
		if err != nil || !vacant {
			return nil, err
		}
		all, err := store.Members(ctx, h)
		return slices.DeleteFunc(all, func(m etcd.Member) bool { return !slices.Contains(m.PeerURLs, url) }), err
	}
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.clear-member", Reads: []steps.AnyKey{Vacant}, Timeout: 2 * time.Minute, Risk: steps.Disruptive,
			Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			all, err := dead(ctx, h)
			return err == nil && len(all) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			all, err := dead(ctx, h)
			if err != nil {
				return err
			}
			for _, m := range all {
				h.Log.InfoContext(ctx, "remove a member that is dead", "member", m.Name, "url", url)
				if err := store.Remove(ctx, h, m); err != nil {
					return steps.Advise(err, "most members have to run: see `crictl ps -a --name etcd` on the other masters")
				}
			}
			return nil
		},
	}
}

// memberHere asks the store through the member that kubeadm runs on a master.
func memberHere() etcd.Client { return etcd.InContainer(etcd.StackedKeys) }
