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

// controlPlaneNeeds are the images of a control plane; kubeadm finds them on the
// node, or asks the runtime, which asks the site's registry.
func controlPlaneNeeds(c *manifest.Cluster) []manifest.Need {
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns", "pause"}
	return images(append(names, part.StoreOf(c).Images...)...)
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

// Init makes the first control plane. It counts as done only when kubeadm's last
// phase is seen: one that was cut off half way is reset and run again, one that
// was whole once is never run again and never taken back, whether its API server
// answers just now or not. It runs as a unit of the host's, so a lost connection
// does not end it, and the next run finds it and waits.
func Init(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.init", Final: true, Needs: controlPlaneNeeds(c), Timeout: 15 * time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if whole, err := controlplane.Complete(ctx, h); !whole || err != nil {
				return false, err
			}
			return controlplane.Running(ctx, h)
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			if done, err := found(ctx, h, initJob, controlplane.Running); done || err != nil {
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
			j.Argv = []string{"kubeadm", "init", "--config", configFile, "--skip-token-print"}
			k, err := readKept(ctx, h)
			if err != nil {
				return err
			}
			var keys map[string][]byte
			if k != nil { // kubeadm takes the keys that it finds, and must not mind the data
				if keys, err = keysKept(ctx, h, c); err != nil {
					return err
				}
				if stacked(c) {
					j.Argv = append(j.Argv, "--ignore-preflight-errors=DirAvailable-"+strings.ReplaceAll(c.Spec.Etcd.DataDir, "/", "-"))
				}
			}
			if keys, err = controlplane.WithEncryption(h, c, keys); err != nil {
				return err
			}
			if err := giveKeys(ctx, h, keys); err != nil {
				return err
			}
			if err := run(ctx, h, j); err != nil {
				return steps.Advise(err, "%s", whatToSee(h))
			}
			return controlplane.MarkComplete(ctx, h)
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return takeBack(ctx, h, initJob, controlplane.Running) },
	}
}

// whatToSee says where to look when kubeadm failed on a first master.
func whatToSee(h *steps.Host) string {
	at := ""
	if e := part.EndpointOf(h.Cluster); e.Exists() {
		at = fmt.Sprintf(", and whether %s leads to port %d of it", e.At(), e.Backend)
	}
	return fmt.Sprintf("see `journalctl -u kubelet` and `crictl ps -a` on %s%s", h.Name, at)
}

// forgetAuthority removes the kubeconfig of an earlier cluster from the workdir
// host: kubeadm is about to make a new CA, unless the earlier one's keys were preserved.
func forgetAuthority(ctx context.Context, h *steps.Host) error {
	if k, err := readKept(ctx, h); k != nil || err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(h.Workdir, controlplane.OperatorConf)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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
		// After a refusal, what it left behind is taken back.
		if err != nil && !runner.Refused(err) && !errors.Is(err, errKubeletEnds) {
			return false, err
		}
		k, kerr := readKept(ctx, h)
		if kerr != nil {
			return false, kerr
		}
		if err == nil || k == nil { // in a store that was preserved there is all that is looked for, whatever failed
			if done, err := look(ctx, h); done || err != nil {
				return done, err
			}
		}
	}
	half, err := controlplane.Begun(ctx, h)
	if err != nil || !half {
		return false, err
	}
	return false, resetHalf(ctx, h)
}

// takeBack undoes init or join of a master as far as it came. What was whole is
// left alone: it may be somebody's cluster, of which only the API server is away.
// So is what kubeadm ended well with, and the connection broke before that was
// written down.
func takeBack(ctx context.Context, h *steps.Host, j runner.Job, ended look) error {
	if err := h.ClearJob(ctx, j); err != nil { // it may be at work still
		return err
	}
	if whole, err := controlplane.Complete(ctx, h); whole || err != nil {
		return err
	}
	sound, err := controlplane.Bootable(ctx, h)
	if err != nil {
		return err
	}
	if sound {
		done, err := soon(ctx, h, ended, breath)
		if err != nil {
			return err
		}
		if done {
			return controlplane.MarkComplete(ctx, h)
		}
	}
	half, err := controlplane.Begun(ctx, h)
	if err != nil {
		return err
	}
	if half {
		if err := resetHalf(ctx, h); err != nil {
			return err
		}
	} else if err := h.Remove(ctx, manifest.EncryptionConfig); err != nil { // written before kubeadm wrote anything
		return err
	}
	if k, err := readKept(ctx, h); err != nil || k != nil {
		return err
	}
	return removeStore(ctx, h)
}
