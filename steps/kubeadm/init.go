package kubeadm

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// AdminConf is the administrator's kubeconfig on a master.
const AdminConf = "/etc/kubernetes/admin.conf"

const configFile = "/etc/kubernetes/kubexm-kubeadm.yaml"

// controlPlaneNeeds are the images of a control plane; kubeadm finds them on the
// node, or asks the runtime, which asks the site's registry.
func controlPlaneNeeds(c *manifest.Cluster) []manifest.Need {
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns", "pause"}
	if c.Spec.Etcd.Type == "kubeadm" {
		names = append(names, "etcd")
	}
	return images(names...)
}

// etcdImage is the store's; kubeadm runs it on each master.
var etcdImage = manifest.Need{Kind: manifest.Image, Name: "etcd"}

func images(names ...string) []manifest.Need {
	var out []manifest.Need
	for _, n := range names {
		out = append(out, manifest.Need{Kind: manifest.Image, Name: n})
	}
	return out
}

// Kubectl runs kubectl on a master with the administrator's rights.
func Kubectl(ctx context.Context, h *steps.Host, args ...string) (string, error) {
	out, err := h.Exec(ctx, op.Kubectl(AdminConf, args...)...)
	return string(out), err
}

// Init makes the first control plane. It counts as done only when kubeadm's last
// phase is seen: one that was cut off half way is reset and run again, one that
// is whole is never run again. It runs as a unit of the host's, so a lost
// connection does not end it, and the next run finds it and waits.
func Init(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M:    steps.Meta{Name: "kubeadm.init", Needs: controlPlaneNeeds(c), Timeout: 15 * time.Minute},
		Done: initialized,
		Act: func(ctx context.Context, h *steps.Host) error {
			if done, err := prepare(ctx, h, initJob, initialized); done || err != nil {
				return err
			}
			text, err := InitConfig(c, h)
			if err != nil {
				return err
			}
			if _, err := h.Mkdir(ctx, "/etc/kubernetes", runner.Attr{}); err != nil {
				return err
			}
			if err := makeStore(ctx, h); err != nil {
				return err
			}
			if err := h.WriteFile(ctx, configFile, text, runner.Attr{Mode: 0o600}); err != nil {
				return err
			}
			j := initJob
			j.Argv = []string{"kubeadm", "init", "--config", configFile, "--skip-token-print"}
			return steps.Advise(run(ctx, h, j), "see `journalctl -u kubelet` and `crictl ps -a` on %s", h.Name)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.ClearJob(ctx, initJob); err != nil { // it may be at work still
				return err
			}
			if err := reset(ctx, h); err != nil {
				return err
			}
			return removeStore(ctx, h)
		},
	}
}

// The jobs by which a run finds what an earlier one began.
var (
	initJob = runner.Job{Name: "kubeadm-init"}
	joinJob = runner.Job{Name: "kubeadm-join"}
)

// prepare makes a node ready for init or join: it waits for the job of a run that
// was cut off, and takes back what one left half way. done says that the job
// brought the node where it should be.
func prepare(ctx context.Context, h *steps.Host, j runner.Job, look func(context.Context, *steps.Host) (bool, error)) (done bool, err error) {
	s, err := h.Job(ctx, j, 0)
	if err != nil {
		return false, err
	}
	if s.Exists {
		err := attend(ctx, h, j, func(ctx context.Context) error {
			_, err := h.WaitJob(ctx, j)
			return err
		})
		var failed *runner.CmdError // what it left behind is taken back
		if err != nil && !errors.As(err, &failed) && !errors.Is(err, errKubeletEnds) {
			return false, err
		}
		if done, err := look(ctx, h); done || err != nil {
			return done, err
		}
	}
	half, err := begun(ctx, h)
	if err != nil || !half {
		return false, err
	}
	return false, reset(ctx, h)
}

// initialized looks for what the last phases of kubeadm init leave behind, and
// asks the API server itself.
func initialized(ctx context.Context, h *steps.Host) (bool, error) {
	if _, err := h.Stat(ctx, AdminConf); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	out, err := Kubectl(ctx, h, "--request-timeout=10s", "-n", "kube-system", "get", "daemonset/kube-proxy", "configmap/kubeadm-config", "-o", "name")
	var cmd *runner.CmdError
	if errors.As(err, &cmd) {
		return false, nil
	}
	return err == nil && strings.Contains(out, "kube-proxy"), err
}

// Running tells whether the control plane answers.
func Running(ctx context.Context, h *steps.Host) (bool, error) { return initialized(ctx, h) }

// begun tells whether kubeadm init or join left something behind.
func begun(ctx context.Context, h *steps.Host) (bool, error) {
	for _, p := range []string{"/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt", AdminConf} {
		_, err := h.Stat(ctx, p)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, nil
}

// reset takes back what init or join did to a node.
func reset(ctx context.Context, h *steps.Host) error {
	_, err := h.Run(ctx, runner.Cmd{Argv: []string{"kubeadm", "reset", "--force", "--cri-socket", "unix:///run/containerd/containerd.sock"}, Timeout: 5 * time.Minute})
	return err
}

// ResetWorker takes Kubernetes off a worker: kubeadm's own reset, then what it
// leaves behind.
func ResetWorker() steps.Step { return resetNode("kubeadm.reset-worker") }

// ResetMaster does the same to a master, with the cluster's store.
func ResetMaster() steps.Step { return resetNode("kubeadm.reset-master") }

func resetNode(name string) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: name, Timeout: 10 * time.Minute, Risk: steps.Destroys},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			half, err := begun(ctx, h)
			return err == nil && !half, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			if err := reset(ctx, h); err != nil {
				return err
			}
			if err := removeStore(ctx, h); err != nil { // on a worker nothing is on record
				return err
			}
			return cleanUp(ctx, h)
		},
	}
}

// cleanUp removes what kubeadm reset leaves, as it says itself.
func cleanUp(ctx context.Context, h *steps.Host) error {
	var errs []error
	for _, dir := range []string{"/etc/kubernetes", "/var/lib/kubelet", "/etc/cni/net.d", "/var/lib/cni", "/run/flannel"} {
		errs = append(errs, h.RemoveAll(ctx, dir))
	}
	for _, link := range []string{"cni0", "flannel.1", "flannel-v6.1", "flannel-wg", "flannel-wg-v6", "kube-ipvs0"} {
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"ip", "link", "delete", link}, OK: []int{1, 2}}) // 1, 2: there is none
		errs = append(errs, err)
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{"filter", "nat", "mangle"} {
			errs = append(errs, flush(ctx, h, tool, table))
		}
	}
	for _, family := range []string{"ip", "ip6"} { // kube-proxy's own, in mode nftables
		_, err := h.Run(ctx, runner.Cmd{Argv: []string{"nft", "delete", "table", family, "kube-proxy"}, OK: []int{1, 127}}) // 1: there is none
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// flush removes the chains of kube-proxy and flannel from one table, and leaves
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

// withoutOurs drops the chains of kube-proxy, the kubelet, flannel and the CNI
// plugins, with the rules in them and those that lead to them.
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
	return strings.HasPrefix(name, "KUBE-") || strings.HasPrefix(name, "FLANNEL-") || strings.HasPrefix(name, "CNI-")
}
