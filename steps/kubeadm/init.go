package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

const configFile = "/etc/kubernetes/kubexm-kubeadm.yaml"

// controlPlaneNeeds returns the images of a control plane. kubeadm finds them on the node,
// or the runtime pulls them from the site's registry.
func controlPlaneNeeds(c *manifest.Cluster) []manifest.Need {
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns", "pause"}
	return images(append(names, part.StoreOf(c).Images...)...)
}

// etcdImage is the image of etcd, which kubeadm runs on each master.
var etcdImage = manifest.Need{Kind: manifest.Image, Name: "etcd"}

func images(names ...string) []manifest.Need {
	var out []manifest.Need
	for _, n := range names {
		out = append(out, manifest.Need{Kind: manifest.Image, Name: n})
	}
	return out
}

// Init creates the first control plane with kubeadm init. It is done only when the result
// of kubeadm's last phase exists. An interrupted init is reset and repeated. A control
// plane that was complete once is never initialized again and never rolled back, even if
// its API server does not answer. kubeadm runs as a systemd unit on the host: it survives
// a lost connection, and the next run finds the unit and waits for it. pods are written right
// before kubeadm runs, because a reset empties their folder. A complete control plane that
// does not answer gets those that it lacks: one of them may be the way to it.
func Init(c *manifest.Cluster, pods ...controlplane.StaticPod) steps.Step {
	needs := controlPlaneNeeds(c)
	for _, p := range pods {
		needs = append(needs, p.Needs...)
	}
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.init", Final: true, Needs: needs, Timeout: 15 * time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if complete, err := controlplane.Complete(ctx, h); !complete || err != nil {
				return false, err
			}
			return controlplane.Running(ctx, h)
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			if err := controlplane.RestoreStaticPods(ctx, h, pods); err != nil {
				return err
			}
			if done, err := prepareMaster(ctx, h, initJob, controlplane.Running); done || err != nil {
				return err
			}
			text, err := InitConfig(c, h)
			if err != nil {
				return err
			}
			if err := forgetAuthority(ctx, h); err != nil {
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
			j.Argv = []string{"kubeadm", "init", "--config", configFile, "--skip-token-print", withoutCoreDNS}
			k, err := readPreserved(ctx, h)
			if err != nil {
				return err
			}
			var keys map[string][]byte
			if k != nil { // kubeadm uses existing keys; its check that the data folder is empty is skipped
				if keys, err = preservedKeys(ctx, h, c); err != nil {
					return err
				}
				if stacked(c) {
					j.Argv = append(j.Argv, "--ignore-preflight-errors=DirAvailable-"+strings.ReplaceAll(c.Spec.Etcd.DataDir, "/", "-"))
				}
			}
			if keys, err = controlplane.WithEncryption(h, c, keys); err != nil {
				return err
			}
			if err := installKeys(ctx, h, keys); err != nil {
				return err
			}
			if err := controlplane.WriteStaticPods(ctx, h, pods); err != nil {
				return err
			}
			if err := run(ctx, h, j); err != nil {
				return steps.Advise(err, "%s", initAdvice(h))
			}
			return controlplane.MarkComplete(ctx, h)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := undoMaster(ctx, h, initJob, controlplane.Running); err != nil {
				return err
			}
			if complete, err := controlplane.Complete(ctx, h); complete || err != nil {
				return err
			}
			return controlplane.RemoveStaticPods(ctx, h, pods)
		},
	}
}

// initAdvice returns what to check after kubeadm init failed.
func initAdvice(h *steps.Host) string {
	at := ""
	if e := part.EndpointOf(h.Cluster); e.Front == part.KubeVIPFront {
		at = ", and crictl logs of its container kube-vip, which has to hold " + e.VIP
	} else if e.Balanced() {
		at = fmt.Sprintf(", and check that %s forwards to port %d of it", e.At(), e.Backend)
	}
	return fmt.Sprintf("run journalctl -u kubelet and crictl ps -a on %s%s", h.Name, at)
}

// forgetAuthority removes the kubeconfig of an earlier cluster from the workdir host,
// because kubeadm will create a new CA. It does nothing if the earlier keys were preserved.
func forgetAuthority(ctx context.Context, h *steps.Host) error {
	if k, err := readPreserved(ctx, h); k != nil || err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(h.Workdir, controlplane.OperatorConf)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// The jobs of init and join. A run finds an earlier run's job by its name.
var (
	initJob = runner.Job{Name: "kubeadm-init"}
	joinJob = runner.Job{Name: "kubeadm-join"}
)

// prepare prepares a node for init or join: it waits for the job of an interrupted run, and
// resets an incomplete result. done reports that the job has succeeded.
func prepare(ctx context.Context, h *steps.Host, j runner.Job, ended observer) (done bool, err error) {
	s, err := h.Job(ctx, j, 0)
	if err != nil {
		return false, err
	}
	if s.Exists {
		err := watch(ctx, h, j, func(ctx context.Context) error {
			_, err := h.WaitJob(ctx, j)
			return err
		})
		// If kubeadm failed, the node is reset below.
		if err != nil && !runner.Refused(err) && !errors.Is(err, errKubeletExits) {
			return false, err
		}
		k, kerr := readPreserved(ctx, h)
		if kerr != nil {
			return false, kerr
		}
		if err == nil || k == nil { // a preserved store contains what ended checks for even if kubeadm failed
			if done, err := ended(ctx, h); done || err != nil {
				return done, err
			}
		}
	}
	half, err := controlplane.Started(ctx, h)
	if err != nil || !half {
		return false, err
	}
	return false, resetHalf(ctx, h)
}

// undoMaster undoes an incomplete init or join of a master. A control plane that is marked
// complete is left alone: it may be in use, with only its API server down. So is one on
// which kubeadm succeeded, but the connection broke before the host was marked.
func undoMaster(ctx context.Context, h *steps.Host, j runner.Job, ended observer) error {
	if err := h.ClearJob(ctx, j); err != nil { // it may still be running
		return err
	}
	if complete, err := controlplane.Complete(ctx, h); complete || err != nil {
		return err
	}
	sound, err := controlplane.Bootable(ctx, h)
	if err != nil {
		return err
	}
	if sound {
		done, err := poll(ctx, h, ended, rollbackTimeout)
		if err != nil {
			return err
		}
		if done {
			return controlplane.MarkComplete(ctx, h)
		}
	}
	half, err := controlplane.Started(ctx, h)
	if err != nil {
		return err
	}
	if half {
		if err := resetHalf(ctx, h); err != nil {
			return err
		}
	} else if err := h.Remove(ctx, manifest.EncryptionConfig); err != nil { // written before kubeadm runs
		return err
	}
	if k, err := readPreserved(ctx, h); err != nil || k != nil {
		return err
	}
	return removeStore(ctx, h)
}
