package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// ipvsLink is the interface that kube-proxy makes in mode ipvs, and in no other.
const ipvsLink = "/sys/class/net/kube-ipvs0"

// clearIPVS has kube-proxy take back what it made in mode ipvs: virtual servers, which
// hold the kernel's modules, and sets of addresses. `kubeadm reset` leaves both, and
// its documentation names ipvsadm, which few hosts have. kube-proxy's own clean-up is in
// an image that every node has and keeps. It is run when nothing of kube-proxy runs any
// more that would make them again.
func clearIPVS(ctx context.Context, h *steps.Host) error {
	if _, err := h.Stat(ctx, ipvsLink); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	ctr := []string{"ctr", "--namespace", "k8s.io"}
	list, err := h.Run(ctx, runner.Cmd{Argv: append(ctr[:3:3], "images", "list", "--quiet"), OK: []int{1, 127}}) // 1, 127: containerd is gone already
	if err != nil {
		return err
	}
	for ref := range strings.FieldsSeq(string(list.Stdout)) {
		if name, _, _ := strings.Cut(path.Base(ref), ":"); name != "kube-proxy" {
			continue
		}
		const id = "kubexm-kube-proxy-cleanup"
		// One whose end a broken connection kept from being seen.
		if _, err := h.Run(ctx, runner.Cmd{Argv: append(ctr[:3:3], "containers", "delete", id), OK: []int{1}}); err != nil { // 1: there is none
			return err
		}
		argv := append(ctr[:3:3], "run", "--rm", "--net-host", "--privileged", "--cgroup", "",
			"--mount", "type=bind,src=/lib/modules,dst=/lib/modules,options=rbind:ro", ref, id, "/usr/local/bin/kube-proxy", "--cleanup")
		_, err := h.Run(ctx, runner.Cmd{Argv: argv})
		return err
	}
	return nil // what is left then holds no address any more, and goes with the next boot
}

// clearSets destroys the sets of addresses that kube-proxy's clean-up leaves: those of
// IPv6. It runs when no rule names them any more.
func clearSets(ctx context.Context, h *steps.Host) error {
	list, err := h.Run(ctx, runner.Cmd{Argv: []string{"ipset", "list", "-name"}, OK: []int{1, 127}}) // 1, 127: no kernel support, no ipset
	if err != nil {
		return err
	}
	var errs []error
	for name := range strings.FieldsSeq(string(list.Stdout)) {
		if strings.HasPrefix(name, "KUBE-") {
			_, err := h.Exec(ctx, "ipset", "destroy", name)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
