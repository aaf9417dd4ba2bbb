package loadbalancer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

const (
	// kubeVIPConf is the kubeconfig of kube-vip. kubeadm reset does not delete it.
	kubeVIPConf = "/etc/kubernetes/kube-vip.conf"
	// kubeVIPLease decides which master holds the virtual IP. The name is kube-vip's default.
	kubeVIPLease = "plndr-cp-lock"
	// kubeVIPDigest is an annotation with the digest of the kubeconfig. kube-vip reads the
	// kubeconfig once, at its start: with another digest the kubelet starts it again.
	kubeVIPDigest = "kubexm.mensylisir.io/kubeconfig"
)

var kubeVIPImage = manifest.Need{Kind: manifest.Image, Name: "kube-vip"}

// variable is an environment variable of kube-vip.
type variable struct{ Name, Value string }

// kubeVIPManifest returns the static pod that mounts a kubeconfig. Sources: pkg/kubevip and
// pkg/manager of kube-vip v0.8.0 to v1.2.3.
//
// kube-vip expects the kubeconfig at /etc/kubernetes/admin.conf, and replaces its server by
// kubernetes:port, the API server on the same host (manager.New). The netmask is left out:
// vip_subnet is a number from v0.9.0 on and has a slash before, and all of these versions use
// /32 or /128 by default.
func kubeVIPManifest(c *manifest.Cluster, h *steps.Host, kubeconfig, digest string) ([]byte, error) {
	pin, err := h.Image(kubeVIPImage)
	if err != nil {
		return nil, err
	}
	name, err := Interface(c, h)
	if err != nil {
		return nil, err
	}
	e := part.EndpointOf(c)
	env := []variable{
		{"vip_arp", "true"}, {"address", e.VIP}, {"port", strconv.Itoa(e.Port)}, {"vip_interface", name}, {"vip_nodename", h.Name},
		{"cp_enable", "true"}, {"cp_namespace", "kube-system"},
		{"vip_leaderelection", "true"}, {"vip_leasename", kubeVIPLease},
		// Seconds. Another master takes over after at most lease duration and retry period.
		{"vip_leaseduration", "5"}, {"vip_renewdeadline", "3"}, {"vip_retryperiod", "1"},
		{"prometheus_server", "127.0.0.1:" + strconv.Itoa(part.KubeVIPMetricsPort)},
	}
	var b bytes.Buffer
	err = templates.ExecuteTemplate(&b, "kube-vip.yaml", map[string]any{
		"Image": pin.Reference, "Env": env, "Kubeconfig": kubeconfig, "Annotation": kubeVIPDigest, "Digest": digest,
	})
	return b.Bytes(), err
}

// KubeVIPForInit returns the static pod that kubeadm init starts on the first master, if
// kube-vip holds the virtual IP: kubeadm itself connects to that address before it ends. Until
// then only the administrator may take leases, and from Kubernetes 1.29 on only with
// super-admin.conf (CHANGELOG-1.29). kubeadm writes the file before it needs kube-vip. Once the
// cluster exists, InstallKubeVIP replaces the pod. If that pod's manifest was deleted on every
// master, no API server is reached before kube-vip runs on one of them again.
func KubeVIPForInit(c *manifest.Cluster) []controlplane.StaticPod {
	if part.EndpointOf(c).Front != part.KubeVIPFront {
		return nil
	}
	kubeconfig := controlplane.SuperAdminConf
	if controlplane.Minor(c) < 29 {
		kubeconfig = kubectl.AdminConf
	}
	return []controlplane.StaticPod{{
		Path: part.KubeVIPPod, Needs: []manifest.Need{kubeVIPImage},
		Body:  func(_ context.Context, h *steps.Host) ([]byte, error) { return kubeVIPManifest(c, h, kubeconfig, "") },
		Again: func(ctx context.Context, h *steps.Host) ([]byte, error) { return kubeVIPAgain(ctx, h, c) },
		Gone:  func(ctx context.Context, h *steps.Host) error { return release(ctx, h, c) },
	}}
}

// kubeVIPAgain returns the static pod on a master of a cluster that exists: with kube-vip's own
// kubeconfig if that is valid, otherwise with the administrator's, until InstallKubeVIP runs.
func kubeVIPAgain(ctx context.Context, h *steps.Host, c *manifest.Cluster) ([]byte, error) {
	conf, _, err := contentOf(ctx, h, kubeVIPConf)
	if err != nil {
		return nil, err
	}
	ca, err := controlplane.CA(ctx, h)
	if err != nil {
		return nil, err
	}
	if trustsKubeVIP(conf, ca, time.Now()) {
		return kubeVIPManifest(c, h, kubeVIPConf, digestOf(conf))
	}
	return kubeVIPManifest(c, h, kubectl.AdminConf, "")
}

// kubeVIPResources are kube-vip on a master of an existing cluster. A removal takes the pod
// first, and the kubeconfig last.
func kubeVIPResources(c *manifest.Cluster, conf kubectl.Body) []op.Resource {
	return []op.Resource{
		op.File{Path: kubeVIPConf, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: conf},
		virtualIP{cluster: c},
		kubeVIPPod{cluster: c, conf: conf},
		kubeVIPRuns{conf: conf},
	}
}

// InstallKubeVIP runs kube-vip on a master with a kubeconfig of its own, which may do nothing
// but take the lease. A further master gets it after its join: kube-vip uses the API server of
// its own host, which has none before, and the other masters hold the address meanwhile.
func InstallKubeVIP(c *manifest.Cluster, authority steps.Key[[]byte], client steps.Key[Probe]) steps.Step {
	return op.Ensure("loadbalancer.install-kube-vip", kubeVIPResources(c, kubeVIPConfText(c, authority, client)), func(m *steps.Meta) {
		m.Timeout = podTimeout + 2*time.Minute
		m.Reads = []steps.AnyKey{authority, client, Trusted}
	})
}

// UninstallKubeVIP is its inverse. It ends kube-vip, which hands the virtual IP to another
// master, and removes the address if it is still on the host.
func UninstallKubeVIP(c *manifest.Cluster) steps.Step {
	return op.Remove("loadbalancer.uninstall-kube-vip", kubeVIPResources(c, nil), func(m *steps.Meta) {
		m.Timeout = releaseTimeout + time.Minute
	})
}

// kubeVIPPod is the manifest of the static pod. It has no record of an earlier file: on the first
// master that is the one of KubeVIPForInit, and a removal must not restore it.
type kubeVIPPod struct {
	cluster *manifest.Cluster
	conf    kubectl.Body
}

func (kubeVIPPod) String() string { return "static pod " + part.KubeVIPPod }

func (kubeVIPPod) Needs() []manifest.Need { return []manifest.Need{kubeVIPImage} }

func (p kubeVIPPod) Want(ctx context.Context, h *steps.Host, changed bool) (*op.Change, error) {
	conf, err := p.conf(ctx, h)
	if err != nil {
		return nil, err
	}
	want, err := kubeVIPManifest(p.cluster, h, kubeVIPConf, digestOf(conf))
	if err != nil {
		return nil, err
	}
	file := op.File{Path: part.KubeVIPPod, Attr: runner.Attr{Mode: 0o600}, Body: func(context.Context, *steps.Host) ([]byte, error) { return want, nil }}
	change, err := file.Want(ctx, h, changed)
	if change == nil || err != nil {
		return nil, err
	}
	before, existed, err := contentOf(ctx, h, part.KubeVIPPod)
	if err != nil {
		return nil, err
	}
	change.Apply = func(ctx context.Context, h *steps.Host) error { return h.WriteFile(ctx, file.Path, want, file.Attr) }
	change.Undo = func(ctx context.Context, h *steps.Host) error {
		if existed {
			return h.WriteFile(ctx, file.Path, before, file.Attr)
		}
		return h.Remove(ctx, file.Path)
	}
	return change, nil
}

func (kubeVIPPod) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	ours, err := InstalledKubeVIP(ctx, h)
	if err != nil || !ours {
		return nil, err
	}
	return &op.Change{What: "remove " + part.KubeVIPPod, Apply: func(ctx context.Context, h *steps.Host) error {
		return h.Remove(ctx, part.KubeVIPPod)
	}}, nil
}

func contentOf(ctx context.Context, h *steps.Host, path string) (text []byte, exists bool, err error) {
	text, err = h.ReadFile(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return text, err == nil, err
}

// digestOf identifies a kubeconfig in the pod's annotation.
func digestOf(conf []byte) string { return op.Digest(conf)[:16] }

// virtualIP is the address on an interface of the host. kube-vip assigns it, and removes it when
// it ends, but not when it is killed.
type virtualIP struct {
	op.NoNeeds
	cluster *manifest.Cluster
}

func (v virtualIP) String() string { return "address " + part.EndpointOf(v.cluster).VIP }

// Want does nothing: kube-vip decides on which host the address is.
func (virtualIP) Want(context.Context, *steps.Host, bool) (*op.Change, error) { return nil, nil }

func (v virtualIP) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	on, err := holding(ctx, h, v.cluster)
	if err != nil || on == "" {
		return nil, err
	}
	return &op.Change{What: "remove " + v.String() + " from " + on, Apply: func(ctx context.Context, h *steps.Host) error {
		return release(ctx, h, v.cluster)
	}}, nil
}

// prefixOf returns the virtual IP with the prefix length that kube-vip assigns.
func prefixOf(c *manifest.Cluster) string { return valuesOf(c).VIP }

// holding returns the interface of the host that has the virtual IP now, or "". The host's facts
// are older than the moves of the address during a deletion.
func holding(ctx context.Context, h *steps.Host, c *manifest.Cluster) (string, error) {
	out, err := h.Exec(ctx, "ip", "-o", "addr", "show", "to", prefixOf(c))
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(out)) // 2: eth0    inet 192.0.2.100/32 scope global eth0
	if len(words) < 2 {
		return "", nil
	}
	name, _, _ := strings.Cut(words[1], "@")
	return name, nil
}

// releaseTimeout is how long the kubelet may take to end kube-vip after its manifest is gone: it
// looks at the folder every 20 seconds, and waits 30 for a container. After a reset no kubelet
// runs, and nothing is waited for.
const releaseTimeout = time.Minute

// release waits until kube-vip has removed the virtual IP from the host, and removes it if
// kube-vip does not: while it runs, it assigns the address again.
func release(ctx context.Context, h *steps.Host, c *manifest.Cluster) error {
	u, err := h.Unit(ctx, "kubelet.service")
	if err != nil {
		return err
	}
	for end := time.Now().Add(releaseTimeout); ; {
		on, err := holding(ctx, h, c)
		if err != nil || on == "" {
			return err
		}
		if !u.IsActive() || time.Now().After(end) {
			_, err := h.Exec(ctx, "ip", "addr", "del", prefixOf(c), "dev", on)
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// InstalledKubeVIP reports whether kubexm has installed kube-vip on a host: the virtual IP is the
// cluster's own.
func InstalledKubeVIP(ctx context.Context, h *steps.Host) (bool, error) {
	text, exists, err := contentOf(ctx, h, part.KubeVIPPod)
	return exists && bytes.HasPrefix(text, []byte("# Written by kubexm.")), err
}
