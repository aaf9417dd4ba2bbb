package kubeadm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// member is one of the store's, as etcdctl lists it.
type member struct {
	ID       uint64   `json:"ID"`
	Name     string   `json:"name"` // empty until it has started
	PeerURLs []string `json:"peerURLs"`
}

// ClearMember removes, on the first master, the store's member in the place of a
// master that is still to be joined. It is one that was added and never started,
// or one whose host was made anew: either counts among those who have to agree,
// and would never do so.
func ClearMember(c *manifest.Cluster, joining manifest.Host) steps.Step {
	url := "https://" + net.JoinHostPort(c.NodeAddresses(joining)[0], "2380")
	dead := func(ctx context.Context, h *steps.Host) ([]member, error) {
		vacant, err := Vacant.On(joining.Name).Get(h)
		if err != nil || !vacant {
			return nil, err
		}
		all, err := members(ctx, h)
		return slices.DeleteFunc(all, func(m member) bool { return !slices.Contains(m.PeerURLs, url) }), err
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
				_, err := etcdctl(ctx, h, "member", "remove", strconv.FormatUint(m.ID, 16))
				if err != nil {
					return steps.Advise(err, "most members have to run: see `crictl ps -a --name etcd` on the other masters")
				}
			}
			return nil
		},
	}
}

// members lists the store's members, as the one on h knows them.
func members(ctx context.Context, h *steps.Host) ([]member, error) {
	out, err := etcdctl(ctx, h, "member", "list", "--write-out=json")
	if err != nil {
		return nil, err
	}
	return parseMembers([]byte(out))
}

func parseMembers(text []byte) ([]member, error) {
	var list struct {
		Members []member `json:"members"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("etcdctl member list: %w", err)
	}
	if len(list.Members) == 0 {
		return nil, errors.New("etcdctl member list names nobody")
	}
	return list.Members, nil
}

// etcdctl runs it in the container of the member on h, which has one.
func etcdctl(ctx context.Context, h *steps.Host, args ...string) (string, error) {
	const keys = pkiDir + "/etcd/"
	return Kubectl(ctx, h, append([]string{"--request-timeout=30s", "-n", "kube-system", "exec", "etcd-" + h.Name, "--", "etcdctl", "--endpoints=https://localhost:2379",
		"--cacert=" + keys + "ca.crt", "--cert=" + keys + "healthcheck-client.crt", "--key=" + keys + "healthcheck-client.key"}, args...)...)
}
