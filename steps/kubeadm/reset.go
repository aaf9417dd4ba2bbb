package kubeadm

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// reset takes back what init or join did to a node. Where kubeadm runs no member
// of the store on it, its phase for that is passed over: what it finds no member
// in, it takes for a member's remains, and empties /var/lib/etcd (1.31 and newer).
// The same phase would empty a store that is to be kept.
func reset(ctx context.Context, h *steps.Host, keep bool) error {
	argv := []string{"kubeadm", "reset", "--force", "--cri-socket", part.RuntimeOf(h.Cluster).Socket}
	if keep || !stacked(h.Cluster) || !slices.Contains(h.Cluster.Spec.RoleGroups.Names(manifest.RoleMaster), h.Name) {
		argv = append(argv, "--skip-phases=remove-etcd-member")
	}
	_, err := h.Run(ctx, runner.Cmd{Argv: argv, Timeout: 8 * time.Minute}) // where most members are dead it waits for each answer in vain
	return err
}

// goingFile says that a host is being cleaned. kubeadm's own reset takes every
// trace away by which a node is known, and what it leaves is still to go then.
const goingFile = "/etc/kubernetes/kubexm-going"

// resetHalf resets what was left half way. A store that an earlier deletion
// preserved is not what this run brought.
func resetHalf(ctx context.Context, h *steps.Host) error {
	k, err := readKept(ctx, h)
	if err != nil {
		return err
	}
	return reset(ctx, h, k != nil)
}

// ResetWorker takes Kubernetes off a worker: kubeadm's own reset, then what it
// leaves behind.
func ResetWorker() steps.Step { return resetNode("kubeadm.reset-worker", false) }

// ResetMaster does the same to a master, with its member of the store.
func ResetMaster() steps.Step { return resetNode("kubeadm.reset-master", false) }

// ResetMasterKeepingStore leaves the member's data where it is, if KeepKeys has found
// that it is of use.
func ResetMasterKeepingStore() steps.Step { return resetNode("kubeadm.reset-master", true) }

func resetNode(name string, keep bool) steps.Step {
	left := func(ctx context.Context, h *steps.Host) (bool, error) {
		for _, p := range append(slices.Clone(traces), manifest.EncryptionConfig, completeFile, goingFile) {
			if _, err := h.Stat(ctx, p); !errors.Is(err, fs.ErrNotExist) {
				return err == nil, err
			}
		}
		return false, nil
	}
	// What was never whole has left no keys, and its store is of no use.
	staying := func(ctx context.Context, h *steps.Host) (bool, error) {
		if !keep {
			return false, nil
		}
		k, err := readKept(ctx, h)
		return k != nil, err
	}
	return &op.Do{
		M: steps.Meta{Name: name, Timeout: 10 * time.Minute, Risk: steps.Destroys},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if is, err := left(ctx, h); err != nil || is {
				return false, err
			}
			stays, err := staying(ctx, h)
			if err != nil || stays {
				return err == nil, err
			}
			kept, err := storeKept(ctx, h) // by a deletion that preserved it
			return err == nil && !kept, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			is, err := left(ctx, h)
			if err != nil {
				return err
			}
			stays, err := staying(ctx, h)
			if err != nil {
				return err
			}
			if is {
				if _, err := h.Mkdir(ctx, "/etc/kubernetes", runner.Attr{}); err != nil {
					return err
				}
				if err := h.WriteFile(ctx, goingFile, []byte("kubexm takes Kubernetes off this host\n"), runner.Attr{Mode: 0o600}); err != nil {
					return err
				}
				if err := reset(ctx, h, stays); err != nil {
					return err
				}
			}
			if !stays {
				if err := removeStore(ctx, h); err != nil { // on a worker nothing is on record
					return err
				}
			}
			return cleanUp(ctx, h)
		},
	}
}

// cleanUp removes what kubeadm reset leaves, as it says itself, and at the very
// end what says that there is something to remove.
func cleanUp(ctx context.Context, h *steps.Host) error {
	errs := []error{removePods(ctx, h)}
	dirs, links := []string{"/var/lib/kubelet", "/etc/cni/net.d", "/var/lib/cni"}, []string{"cni0"}
	for _, n := range part.Networks() { // whatever the config says by now
		dirs, links = append(dirs, n.Dirs...), append(links, n.Links...)
	}
	for _, dir := range append(dirs, "/run/kubexm/kubectl", "/run/kubexm/charts") {
		errs = append(errs, h.RemoveAll(ctx, dir))
	}
	errs = append(errs, stopPods(ctx, h))
	for _, j := range []runner.Job{initJob, joinJob} { // one whose end a broken connection kept from being written down
		errs = append(errs, h.ClearJob(ctx, j))
	}
	errs = append(errs, clearIPVS(ctx, h)) // by its interface it knows that there is something
	for _, link := range append(links, "kube-ipvs0") {
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"ip", "link", "delete", link}, OK: []int{1, 2}}) // 1, 2: there is none
		errs = append(errs, err)
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{"filter", "nat", "mangle"} {
			errs = append(errs, flush(ctx, h, tool, table))
		}
	}
	errs = append(errs, clearSets(ctx, h))
	for _, family := range []string{"ip", "ip6"} { // kube-proxy's own, in mode nftables
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"nft", "delete", "table", family, "kube-proxy"}, OK: []int{1, 127}}) // 1: there is none
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return h.RemoveAll(ctx, "/etc/kubernetes")
}

// flush removes the chains of kube-proxy and pod networks from one table, and leaves
// every other rule alone.
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

// withoutOurs drops the chains of kube-proxy, the kubelet, pod networks and the
// CNI plugins, with the rules in them and those that lead to them.
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

// ofOurs looks at the names of chains in a line of iptables-save alone: what a
// comment says is anybody's.
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
