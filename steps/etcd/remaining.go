package etcd

import (
	"context"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// RemovalBlockers returns all reasons why the members on some hosts may not be removed: another
// member that is missing, has not started, is a learner or does not answer a linearizable read.
// The members on those hosts may be lost already. c describes the cluster with them; h is the
// host of another member.
func RemovalBlockers(ctx context.Context, c *manifest.Cluster, h *steps.Host, without []manifest.Host) ([]string, error) {
	client := memberOn(c, h)
	all, silent, err := listed(ctx, client, h)
	if err != nil || len(silent) > 0 {
		return silent, err
	}
	leaves := func(m Member) bool {
		return slices.ContainsFunc(without, func(x manifest.Host) bool { return slices.Contains(m.PeerURLs, PeerURL(c, x)) })
	}
	all = slices.DeleteFunc(all, leaves)
	var names []string
	for _, x := range without {
		names = append(names, x.Name)
	}
	missing := absent(c.Without(names), all)
	for _, m := range all {
		if len(m.ClientURLs) == 0 {
			continue
		}
		switch healthy, err := client.serves(ctx, h, m); {
		case err != nil:
			return nil, err
		case !healthy:
			missing = append(missing, "member "+nameOf(c, m)+" is not healthy")
		}
	}
	return missing, nil
}

// RemoveMemberOf removes the member with the address of a host from the etcd cluster, through
// the member on h. It does nothing if there is none. etcd refuses it without a quorum.
func RemoveMemberOf(ctx context.Context, c *manifest.Cluster, h *steps.Host, x manifest.Host) error {
	client := memberOn(c, h)
	m, err := memberOf(ctx, client, c, h, x)
	if err != nil || m == nil {
		return err
	}
	h.Log.InfoContext(ctx, "remove an etcd member", "member", x.Name)
	return steps.Advise(client.Remove(ctx, h, *m), "etcd needs a quorum: run `kubexm etcd status`")
}

// HasMemberOf reports whether the etcd cluster has a member with the address of a host.
func HasMemberOf(ctx context.Context, c *manifest.Cluster, h *steps.Host, x manifest.Host) (bool, error) {
	m, err := memberOf(ctx, memberOn(c, h), c, h, x)
	return m != nil, err
}

func memberOf(ctx context.Context, client Client, c *manifest.Cluster, h *steps.Host, x manifest.Host) (*Member, error) {
	all, err := client.Members(ctx, h)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(m Member) bool { return slices.Contains(m.PeerURLs, PeerURL(c, x)) })
	if i < 0 {
		return nil, nil
	}
	return &all[i], nil
}
