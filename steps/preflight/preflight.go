package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// The least that a node needs: kubeadm's own limits for processors, and the
// memory that the control plane and a few pods take. kubeadm refuses a master
// under 1700 MB.
const (
	minCPUs         = 2
	minMasterMemory = 1700 << 20
	minWorkerMemory = 700 << 20
)

// minKernel is the oldest kernel with which current runc and kubelet work.
var minKernel = semver.MustParse("4.19.0")

// Say hears of warnings.
type Say = func(steps.Finding)

// System holds what a host is against what kubexm needs: systemd, the
// architecture that the config declares, processors, memory, kernel.
func System(say Say) steps.Step {
	return op.Check("preflight.system", func(_ context.Context, h *steps.Host) (steps.Findings, error) {
		var out steps.Findings
		f := h.Facts
		if f.Arch != h.Arch {
			out = append(out, steps.Finding{What: fmt.Sprintf("the architecture is %s, the config says %s", f.Arch, h.Arch), Advice: "set arch of this host in spec.hosts, and build the bundle for it"})
		}
		if f.Systemd == 0 {
			out = append(out, steps.Finding{What: "process 1 is " + f.Init + ", not systemd", Advice: "use a distribution with systemd"})
		}
		if k := kernel(f.Kernel); k != nil && k.LessThan(minKernel) {
			out = append(out, steps.Finding{What: "kernel " + f.Kernel + " is too old", Advice: "use " + minKernel.String() + " or newer"})
		}
		if !node(h) {
			return out, nil
		}
		if f.CPUs < minCPUs && is(h, manifest.RoleMaster) {
			out = append(out, steps.Finding{What: fmt.Sprintf("has %d processor", f.CPUs), Advice: fmt.Sprintf("a master needs %d", minCPUs)})
		}
		need, role := int64(minWorkerMemory), "worker"
		if is(h, manifest.RoleMaster) {
			need, role = minMasterMemory, "master"
		}
		if f.Memory < need {
			out = append(out, steps.Finding{What: fmt.Sprintf("has %d MiB of memory", f.Memory>>20), Advice: fmt.Sprintf("a %s needs %d MiB", role, need>>20)})
		}
		if len(f.Swaps) > 0 {
			out = append(out, steps.Finding{What: "swap is on (" + strings.Join(f.Swaps, ", ") + ")", Advice: "run swapoff -a, and take it out of /etc/fstab"})
		}
		return out, nil
	}, say)
}

// kernel reads the numbers at the start of a kernel's release.
func kernel(release string) *semver.Version {
	end := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(release)
	}
	v, err := semver.NewVersion(strings.Trim(release[:end], "."))
	if err != nil {
		return nil
	}
	return v
}

// ports are what the roles listen on.
func ports(h *steps.Host) map[uint16]string {
	want := map[uint16]string{}
	if node(h) {
		want[10250] = "kubelet"
		want[10248] = "kubelet"
		want[10256] = "kube-proxy"
	}
	if is(h, manifest.RoleMaster) {
		want[uint16(h.Cluster.APIServerPort())] = "kube-apiserver" //nolint:gosec // a port
		want[10257] = "kube-controller-manager"
		want[10259] = "kube-scheduler"
	}
	if member(h) {
		want[2379], want[2380], want[2381] = "etcd", "etcd", "etcd"
	}
	if is(h, manifest.RoleRegistry) && h.Cluster.Spec.Registry.Type == "registry" {
		_, port, _ := strings.Cut(h.Cluster.Spec.Registry.PrivateRegistry, ":")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			n = 443 // what https means without a port
		}
		want[uint16(n)] = "the registry"
	}
	return want
}

// Ports finds ports that something else listens on. On a host that is part of
// this cluster already they are its own.
func Ports(say Say) steps.Step {
	return op.Check("preflight.ports", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		ours, err := Joined(ctx, h)
		if err != nil || ours {
			return nil, err
		}
		var out steps.Findings
		want := ports(h)
		for _, p := range h.Facts.Ports {
			if who, ok := want[p.Port]; ok && p.Proto == "tcp" {
				by := "something"
				if p.Process != "" {
					by = p.Process
				}
				out = append(out, steps.Finding{
					What:   fmt.Sprintf("port %d, which %s needs, is taken by %s", p.Port, who, by),
					Advice: fmt.Sprintf("stop it: ss -tlnp 'sport = :%d' on %s tells more", p.Port, h.Name),
				})
				delete(want, p.Port)
			}
		}
		return out, nil
	}, say)
}

// Existing finds a Kubernetes that is not this cluster's.
func Existing(say Say) steps.Step {
	return op.Check("preflight.existing-installation", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		ours, err := Joined(ctx, h)
		if err != nil || ours {
			return nil, err
		}
		var left, traces []string
		if node(h) {
			traces = append(traces, "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf")
		}
		if member(h) {
			traces = append(traces, path.Join(h.Cluster.Spec.Etcd.DataDir, "member"))
		}
		for _, p := range traces {
			_, err := h.Stat(ctx, p)
			if err == nil {
				left = append(left, p)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		if len(left) == 0 {
			return nil, nil
		}
		return steps.Findings{{What: "holds another Kubernetes: " + strings.Join(left, ", "), Advice: "if nobody needs it: kubexm reset -f CONFIG"}}, nil
	}, say)
}

// Joined tells whether kubexm has begun to make this host part of this very
// cluster: it keeps its records under the cluster's name from the first change on.
func Joined(ctx context.Context, h *steps.Host) (bool, error) {
	_, err := h.Stat(ctx, op.RecordDir(h))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func is(h *steps.Host, role string) bool {
	return slices.Contains(h.Cluster.Spec.RoleGroups.Names(role), h.Name)
}

func node(h *steps.Host) bool { return is(h, manifest.RoleMaster) || is(h, manifest.RoleWorker) }

// member tells whether the host is to run a member of the cluster's store.
func member(h *steps.Host) bool {
	switch h.Cluster.Spec.Etcd.Type {
	case "kubeadm":
		return is(h, manifest.RoleMaster)
	case "kubexm":
		return is(h, manifest.RoleEtcd)
	}
	return false
}
