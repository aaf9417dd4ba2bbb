package kubeadm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
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
	return parseMembers(out)
}

func parseMembers(text []byte) ([]member, error) {
	var list struct {
		Members []member `json:"members"`
	}
	// What follows is what etcdctl said on standard error: crictl prints both.
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&list); err != nil {
		return nil, fmt.Errorf("etcdctl member list: %w", err)
	}
	if len(list.Members) == 0 {
		return nil, errors.New("etcdctl member list names nobody")
	}
	return list.Members, nil
}

// etcdctl runs in the container of the member on h. The container runtime is asked
// and not the API server: it would go through the kubelet, which has no certificate
// to serve with before the cluster is complete.
func etcdctl(ctx context.Context, h *steps.Host, args ...string) ([]byte, error) {
	found, err := h.Exec(ctx, "crictl", "ps", "--quiet", "--state", "Running", "--name", "^etcd$", "--label", "io.kubernetes.pod.namespace=kube-system")
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(found))
	if len(ids) == 0 {
		return nil, steps.Advise(errors.New("no container of etcd runs"), "see `crictl ps -a --name etcd` and `journalctl -u kubelet` on %s", h.Name)
	}
	return h.Exec(ctx, append([]string{"crictl", "exec", "--sync", "--timeout", "30", ids[0]}, etcdctlArgv(args...)...)...)
}

// etcdctlArgv is etcdctl with what it needs in the container of a member.
func etcdctlArgv(args ...string) []string {
	const keys = controlplane.PKIDir + "/etcd/"
	return append([]string{"etcdctl", "--endpoints=https://localhost:2379", "--command-timeout=10s",
		"--cacert=" + keys + "ca.crt", "--cert=" + keys + "healthcheck-client.crt", "--key=" + keys + "healthcheck-client.key"}, args...)
}
