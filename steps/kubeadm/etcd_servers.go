package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// apiServerManifest is the manifest of a master's API server.
const apiServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"

// etcdServers matches the flag with which kubeadm lists the members of an external etcd.
var etcdServers = regexp.MustCompile(`(?m)^(\s*- --etcd-servers=)(\S*)$`)

// UpdateEtcdServers makes the API server of a master use the etcd members of c, which run as
// services. The API server restarts if its list differs. Nothing is done on a host without an API
// server. kubeadm writes the same list for masters that join later; see UpdateConfig.
func UpdateEtcdServers(c *manifest.Cluster) steps.Step {
	want := strings.Join(part.StoreOf(c).Endpoints, ",")
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.update-etcd-servers", Timeout: restartTimeout + time.Minute, Risk: steps.Disruptive},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			now, was, err := listing(ctx, h, want)
			return err == nil && now == was, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			now, was, err := listing(ctx, h, want)
			if err != nil || now == was {
				return err
			}
			before, err := sandbox(ctx, h, "kube-apiserver")
			if err != nil {
				return err
			}
			if err := h.WriteFile(ctx, apiServerManifest, []byte(now), runner.Attr{Mode: 0o600}); err != nil {
				return err
			}
			return waitRestarted(ctx, h, "kube-apiserver", before)
		},
	}
}

// listing returns the text of the API server's manifest with a list of etcd's members, and as it is.
// Both are empty on a host without an API server.
func listing(ctx context.Context, h *steps.Host, servers string) (now, was string, err error) {
	text, err := h.ReadFile(ctx, apiServerManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	was = string(text)
	found := etcdServers.FindStringSubmatch(was)
	switch {
	case found == nil:
		return "", "", steps.Advise(fmt.Errorf("%s has no flag --etcd-servers", apiServerManifest), "compare it with the one on another master")
	case slices.Equal(sorted(found[2]), sorted(servers)): // another order is no reason to restart
		return was, was, nil
	}
	return etcdServers.ReplaceAllString(was, "${1}"+strings.ReplaceAll(servers, "$", "$$")), was, nil
}

// sorted returns the words of a list that commas separate.
func sorted(list string) []string {
	all := strings.Split(list, ",")
	slices.Sort(all)
	return all
}
