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
	// Before its interface is deleted, by which it decides, and before the folders: containerd 2 ends when
	// /etc/cni/net.d is removed.
	errs = append(errs, clearIPVS(ctx, h))
	networks, err := usedNetworks(ctx, h)
	if err != nil {
		return err
	}
	dirs, links, tables := []string{"/var/lib/kubelet", "/etc/cni/net.d", "/var/lib/cni"}, []string{"cni0", part.NodeCacheLink}, []string{"filter", "nat", "mangle"}
	for _, n := range networks {
		dirs, links, tables = slices.Concat(dirs, n.Files, n.Dirs), append(links, n.Links...), append(tables, n.Tables...)
		for _, at := range n.Mounts {
			_, err := h.Run(ctx, runner.Cmd{Argv: []string{"umount", at}, OK: []int{1, 32}}) // 1, 32: it does not exist, or nothing is mounted there
			errs = append(errs, err)
		}
	}
	for _, dir := range append(dirs, "/run/kubexm/kubectl", "/run/kubexm/charts") {
		errs = append(errs, h.RemoveAll(ctx, dir))
	}
	errs = append(errs, stopPods(ctx, h))
	for _, j := range jobs {
		errs = append(errs, h.ClearJob(ctx, j))
	}
	for _, link := range append(links, "kube-ipvs0") {
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"ip", "link", "delete", link}, OK: []int{1, 2}}) // 1, 2: it does not exist
		errs = append(errs, err)
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, table := range tables {
			errs = append(errs, flush(ctx, h, tool, table))
		}
	}
	errs = append(errs, clearSets(ctx, h, networks))
	for _, n := range networks {
		errs = append(errs, clearRoutes(ctx, h, n), clearPodRanges(ctx, h, n), clearRules(ctx, h, n), clearMaps(ctx, h, n))
	}
	for _, r := range part.Unreachable(h.Cluster) { // nothing sends to pods any more
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"ip", IPFamily(r), "route", "delete", "unreachable", r, "metric", part.UnreachableMetric, "proto", "kernel"}, OK: []int{1, 2}}) // 1, 2: it does not exist
		errs = append(errs, err)
	}
	for _, family := range []string{"ip", "ip6"} { // of kube-proxy in mode nftables
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"nft", "delete", "table", family, "kube-proxy"}, OK: []int{1, 127}}) // 1: it does not exist
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return h.RemoveAll(ctx, "/etc/kubernetes")
}

// usedNetworks returns the network plugin of the config, and those that have left a folder: the config
// may have changed since.
func usedNetworks(ctx context.Context, h *steps.Host) ([]part.Network, error) {
	var out []part.Network
	for _, n := range part.Networks() {
		used := n.Name == part.NetworkOf(h.Cluster).Name
		if !used && len(n.Dirs) > 0 {
			var err error
			if used, err = h.Exists(ctx, n.Dirs[0]); err != nil {
				return nil, err
			}
		}
		if used {
			out = append(out, n)
		}
	}
	return out, nil
}

// clearRoutes deletes the routes that a network plugin leaves in the main table: those of address
// blocks, which drop packets to addresses without a pod.
func clearRoutes(ctx context.Context, h *steps.Host, n part.Network) error {
	if n.Routes == "" {
		return nil
	}
	var errs []error
	for _, family := range []string{"-4", "-6"} {
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"ip", family, "route", "flush", "table", "main", "proto", n.Routes}, OK: []int{1, 2}}) // 1, 2: there is none, or no such family
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// IPFamily returns the flag of the command ip for the IP family of an address or a range.
func IPFamily(address string) string {
	if strings.Contains(address, ":") {
		return "-6"
	}
	return "-4"
}

// clearPodRanges deletes routes to pods of a program that a site may run itself, and addresses of
// pods on interfaces that are not the plugin's alone. Those outside of the pods' ranges stay.
func clearPodRanges(ctx context.Context, h *steps.Host, n part.Network) error {
	var errs []error
	run := func(argv ...string) {
		_, err := h.Run(ctx, runner.Cmd{Argv: argv, OK: []int{1, 2}}) // 1, 2: there is none, no such interface, or no such family
		errs = append(errs, err)
	}
	for _, r := range h.Cluster.Spec.Network.KubePodsCIDR {
		family := IPFamily(r)
		if n.PodRoutes != "" {
			run("ip", family, "route", "flush", "table", "main", "root", r, "proto", n.PodRoutes)
		}
		for _, link := range n.Tunnels {
			run("ip", family, "address", "flush", "dev", link, "to", r)
		}
	}
	return errors.Join(errs...)
}

// clearRules deletes the routing tables of a network plugin with their rules, and moves the kernel's rule
// for local addresses back to the first place.
func clearRules(ctx context.Context, h *steps.Host, n part.Network) error {
	var errs []error
	run := func(argv ...string) {
		_, err := h.Run(ctx, runner.Cmd{Argv: argv, OK: []int{1, 2}}) // 1, 2: there is none, or no such family
		errs = append(errs, err)
	}
	for _, family := range []string{"-4", "-6"} {
		for _, table := range n.RuleTables {
			run("ip", family, "rule", "flush", "table", table)
			run("ip", family, "route", "flush", "table", table)
		}
		if n.MovesLocalRule != "" { // the new rule first: without any, the host does not answer
			run("ip", family, "rule", "add", "from", "all", "lookup", "local", "priority", "0", "protocol", "kernel") // as the kernel has it
			run("ip", family, "rule", "delete", "from", "all", "lookup", "local", "priority", n.MovesLocalRule)
		}
	}
	return errors.Join(errs...)
}

// clearMaps deletes the eBPF maps that a network plugin has made.
func clearMaps(ctx context.Context, h *steps.Host, n part.Network) error {
	if n.Maps == "" {
		return nil
	}
	const dir = "/sys/fs/bpf/tc/globals"
	_, err := h.Run(ctx, runner.Cmd{Argv: []string{"find", dir, "-maxdepth", "1", "-name", n.Maps + "*", "-delete"}, OK: []int{1}}) // 1: no such folder
	return err
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

// ofOurs checks the names of chains in a line of iptables-save, and what its comment begins with.
// Elsewhere a comment of another rule may contain such a name.
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
		if inside || i+1 == len(words) {
			continue
		}
		if slices.Contains([]string{"-A", "-j", "-g"}, w) && ourChain(words[i+1]) || w == "--comment" && ourComment(words[i+1]) {
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

func ourComment(comment string) bool {
	comment = strings.TrimPrefix(comment, `"`)
	for _, n := range part.Networks() {
		if slices.ContainsFunc(n.Comments, func(p string) bool { return strings.HasPrefix(comment, p) }) {
			return true
		}
	}
	return false
}
