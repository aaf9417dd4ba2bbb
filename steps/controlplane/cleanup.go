package controlplane

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// CleanUp removes from a host what a control plane, a kubelet and their pods leave behind.
// It removes /etc/kubernetes last, because the files in it show that a clean-up is needed.
// jobs are those that created the node: a broken connection may have left their units.
func CleanUp(ctx context.Context, h *steps.Host, jobs ...runner.Job) error {
	errs := []error{removePods(ctx, h)}
	dirs, links := []string{"/var/lib/kubelet", "/etc/cni/net.d", "/var/lib/cni"}, []string{"cni0"}
	for _, n := range part.Networks() { // the config may have changed since
		dirs, links = append(dirs, n.Dirs...), append(links, n.Links...)
	}
	for _, dir := range append(dirs, "/run/kubexm/kubectl", "/run/kubexm/charts") {
		errs = append(errs, h.RemoveAll(ctx, dir))
	}
	errs = append(errs, stopPods(ctx, h))
	for _, j := range jobs {
		errs = append(errs, h.ClearJob(ctx, j))
	}
	errs = append(errs, clearIPVS(ctx, h)) // before its interface is deleted, by which it decides
	for _, link := range append(links, "kube-ipvs0") {
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"ip", "link", "delete", link}, OK: []int{1, 2}}) // 1, 2: it does not exist
		errs = append(errs, err)
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{"filter", "nat", "mangle"} {
			errs = append(errs, flush(ctx, h, tool, table))
		}
	}
	errs = append(errs, clearSets(ctx, h))
	for _, family := range []string{"ip", "ip6"} { // of kube-proxy in mode nftables
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"nft", "delete", "table", family, "kube-proxy"}, OK: []int{1, 127}}) // 1: it does not exist
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return h.RemoveAll(ctx, "/etc/kubernetes")
}

// flush removes the chains of kube-proxy and pod networks from one table. It preserves all
// other rules.
func flush(ctx context.Context, h *steps.Host, tool, table string) error {
	save, err := h.Run(ctx, runner.Cmd{Argv: []string{tool + "-save", "-t", table}, OK: []int{1, 127}})
	if err != nil || save.Exit != 0 {
		return err
	}
	clean, changed := withoutOurs(string(save.Stdout))
	if !changed {
		return nil
	}
	_, err = h.Run(ctx, runner.Cmd{Argv: []string{tool + "-restore"}, Stdin: strings.NewReader(clean)})
	return err
}

// withoutOurs removes the chains of kube-proxy, the kubelet, pod networks and CNI plugins,
// with their rules and the rules that jump to them.
func withoutOurs(rules string) (clean string, changed bool) {
	var b strings.Builder
	for line := range strings.Lines(rules) {
		if ofOurs(line) {
			changed = true
			continue
		}
		b.WriteString(line)
	}
	return b.String(), changed
}

// ofOurs checks only the names of chains in a line of iptables-save, because a comment of
// another rule may contain such a name.
func ofOurs(line string) bool {
	if chain, ok := strings.CutPrefix(line, ":"); ok {
		return ourChain(chain)
	}
	words := strings.Fields(line)
	quoted := false
	for i, w := range words {
		inside := quoted
		if strings.Count(w, `"`)%2 == 1 {
			quoted = !quoted
		}
		if !inside && i+1 < len(words) && slices.Contains([]string{"-A", "-j", "-g"}, w) && ourChain(words[i+1]) {
			return true
		}
	}
	return false
}

func ourChain(name string) bool {
	prefixes := []string{"KUBE-", "CNI-"}
	for _, n := range part.Networks() {
		prefixes = append(prefixes, n.Chains...)
	}
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
