package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// ipvsLink is the interface that kube-proxy creates only in mode ipvs.
const ipvsLink = "/sys/class/net/kube-ipvs0"

// clearIPVS removes what kube-proxy created in mode ipvs: virtual servers, which keep kernel
// modules in use, and IP sets. kubeadm reset leaves both, and its documentation refers to
// ipvsadm, which few hosts have. kube-proxy's own --cleanup is in an image that every node
// has. It runs after kube-proxy was stopped, which would recreate them.
func clearIPVS(ctx context.Context, h *steps.Host) error {
	if _, err := h.Stat(ctx, ipvsLink); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	ctr := []string{"ctr", "--namespace", "k8s.io"}
	list, err := h.Run(ctx, runner.Cmd{Argv: append(ctr[:3:3], "images", "list", "--quiet"), OK: []int{1, 127}}) // 1, 127: containerd does not run any more
	if err != nil {
		return err
	}
	for ref := range strings.FieldsSeq(string(list.Stdout)) {
		if name, _, _ := strings.Cut(path.Base(ref), ":"); name != "kube-proxy" {
			continue
		}
		const id = "kubexm-kube-proxy-cleanup"
		// A container may remain if the connection of an earlier run broke.
		if _, err := h.Run(ctx, runner.Cmd{Argv: append(ctr[:3:3], "containers", "delete", id), OK: []int{1}}); err != nil { // 1: it does not exist
			return err
		}
		argv := append(ctr[:3:3], "run", "--rm", "--net-host", "--privileged", "--cgroup", "",
			"--mount", "type=bind,src=/lib/modules,dst=/lib/modules,options=rbind:ro", ref, id, "/usr/local/bin/kube-proxy", "--cleanup")
		_, err := h.Run(ctx, runner.Cmd{Argv: argv})
		return err
	}
	return nil // what remains has no address any more, and disappears at the next boot
}

// clearSets destroys the IP sets that kube-proxy --cleanup leaves, those of IPv6, and those of
// network plugins. It runs when no rule refers to them any more.
func clearSets(ctx context.Context, h *steps.Host, networks []part.Network) error {
	prefixes := []string{"KUBE-"}
	for _, n := range networks {
		prefixes = append(prefixes, n.Sets...)
	}
	list, err := h.Run(ctx, runner.Cmd{Argv: []string{"ipset", "list", "-name"}, OK: []int{1, 127}}) // 1, 127: no kernel support, no ipset
	if err != nil {
		return err
	}
	var errs []error
	for name := range strings.FieldsSeq(string(list.Stdout)) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			_, err := h.Exec(ctx, "ipset", "destroy", name)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
