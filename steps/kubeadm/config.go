package kubeadm

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
)

// object is a piece of a Kubernetes document; yaml sorts its keys, so equal
// values are equal bytes.
type object = map[string]any

// api is the version of kubeadm's own documents: v1beta4 exists from 1.31 on,
// and turns flags into lists.
func api(c *manifest.Cluster) string {
	if minor(c) >= 31 {
		return "kubeadm.k8s.io/v1beta4"
	}
	return "kubeadm.k8s.io/v1beta3"
}

func minor(c *manifest.Cluster) int {
	var major, n int
	if _, err := fmt.Sscanf(c.Spec.Kubernetes.Version, "v%d.%d", &major, &n); err != nil {
		return 0
	}
	return n
}

// args gives flags in the form that the version of the document wants. Of a flag
// that stands twice the last one counts.
func args(c *manifest.Cluster, as manifest.Args) any {
	if len(as) == 0 {
		return nil
	}
	if minor(c) >= 31 {
		var out []object
		for _, a := range as {
			out = append(out, object{"name": a.Name, "value": a.Value})
		}
		return out
	}
	out := object{}
	for _, a := range as {
		out[a.Name] = a.Value
	}
	return out
}

// with puts ours before the user's own: theirs count.
func with(ours manifest.Args, users manifest.Args) manifest.Args {
	out := slices.Clone(ours)
	for _, u := range users {
		out = slices.DeleteFunc(out, func(a manifest.Arg) bool { return a.Name == u.Name })
	}
	return append(out, users...)
}

// InitConfig is the configuration of kubeadm init on h.
func InitConfig(c *manifest.Cluster, h *steps.Host) ([]byte, error) {
	store, err := etcdConfig(c, h)
	if err != nil {
		return nil, err
	}
	kubelet, err := kubeletConfig(c)
	if err != nil {
		return nil, err
	}
	docs := []object{
		{
			"apiVersion": api(c), "kind": "InitConfiguration",
			// kubeadm makes a token whether one is wanted or not, and would let it live for a
			// day. Nodes join with one of their own.
			"bootstrapTokens":  []object{{"ttl": tokenTTL, "description": "kubexm: of kubeadm init, for nobody"}},
			"localAPIEndpoint": listening(c, h),
			"nodeRegistration": registration(c, h),
		},
		clusterConfig(c, store), kubelet, proxyConfig(c),
	}
	return encode(docs...)
}

func encode(docs ...object) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, d := range docs {
		if err := e.Encode(d); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), e.Close()
}

// listening is where the API server of a master listens.
func listening(c *manifest.Cluster, h *steps.Host) object {
	return object{"advertiseAddress": c.NodeAddresses(h.Host)[0], "bindPort": c.APIServerPort()}
}

// Endpoint is the control plane's name and port.
func Endpoint(c *manifest.Cluster) string {
	return c.Spec.ControlPlaneEndpoint.Domain + ":" + strconv.Itoa(c.Spec.ControlPlaneEndpoint.Port)
}

func registration(c *manifest.Cluster, h *steps.Host) object {
	ours := manifest.Args{{Name: "node-ip", Value: strings.Join(c.NodeAddresses(h.Host), ",")}, {Name: "resolv-conf", Value: resolvConf(h)}}
	o := object{
		"name": h.Name, "criSocket": part.RuntimeOf(c).Socket,
		"kubeletExtraArgs": args(c, with(ours, c.Spec.Kubernetes.Kubelet.ExtraArgs)),
	}
	// A master that is a worker too runs pods: it has no taint.
	if slices.Contains(c.Spec.RoleGroups.Names(manifest.RoleWorker), h.Name) {
		o["taints"] = []object{}
	}
	return o
}

// resolvConf is the file of name servers that pods on h get. It is a flag of each
// node: kubeadm puts the first master's into the configuration of all kubelets.
func resolvConf(h *steps.Host) string {
	// The stub of systemd-resolved answers on the loopback address: to a pod
	// that is the pod itself, and CoreDNS would ask itself for ever.
	if h.Facts.Resolv.Kind == "systemd-resolved-stub" {
		return "/run/systemd/resolve/resolv.conf"
	}
	return "/etc/resolv.conf"
}

func clusterConfig(c *manifest.Cluster, store object) object {
	k, n := c.Spec.Kubernetes, c.Spec.Network
	sans := append([]string{c.Spec.ControlPlaneEndpoint.Domain}, k.APIServer.CertSANs...)
	if a := c.Spec.ControlPlaneEndpoint.Address; a != "" {
		sans = append(sans, a)
	}
	for _, m := range c.HostsWith(manifest.RoleMaster) {
		sans = append(sans, m.Name, m.Name+"."+k.ClusterName, m.Address) // as /etc/hosts has them
		sans = append(sans, m.InternalAddress...)
	}
	slices.Sort(sans)
	gates := featureGates(c)
	flags := func(component string, users manifest.Args, ours ...manifest.Arg) any {
		return args(c, with(slices.Concat(ours, gates, hardened(c, component, users)), users))
	}
	return object{
		"apiVersion": api(c), "kind": "ClusterConfiguration",
		"clusterName": "kubernetes", "kubernetesVersion": k.Version, "controlPlaneEndpoint": Endpoint(c),
		"networking": object{
			"dnsDomain": k.ClusterName, "podSubnet": strings.Join(n.KubePodsCIDR, ","), "serviceSubnet": strings.Join(n.KubeServiceCIDR, ","),
		},
		"apiServer": object{
			"certSANs":     slices.Compact(sans),
			"extraArgs":    flags(manifest.OfAPIServer, k.APIServer.ExtraArgs, manifest.Arg{Name: "service-node-port-range", Value: k.APIServer.ServiceNodePortRange}),
			"extraVolumes": volumes(c),
		},
		"controllerManager": object{"extraArgs": flags(manifest.OfControllerManager, k.ControllerManager.ExtraArgs, masks(c)...)},
		"scheduler":         object{"extraArgs": flags(manifest.OfScheduler, k.Scheduler.ExtraArgs)},
		"etcd":              store,
	}
}

// masks are the sizes of the nodes' ranges, by family: kubeadm holds the pods'
// ranges against these flags alone. The older flag for both excludes them.
func masks(c *manifest.Cluster) manifest.Args {
	k, out := c.Spec.Kubernetes, manifest.Args{}
	if slices.ContainsFunc(k.ControllerManager.ExtraArgs, func(a manifest.Arg) bool { return strings.HasPrefix(a.Name, "node-cidr-mask-size") }) {
		return out
	}
	for _, r := range c.Spec.Network.KubePodsCIDR {
		a := manifest.Arg{Name: "node-cidr-mask-size-ipv4", Value: strconv.Itoa(k.NodeCIDRMaskSize)}
		if strings.Contains(r, ":") {
			a = manifest.Arg{Name: "node-cidr-mask-size-ipv6", Value: strconv.Itoa(k.NodeCIDRMaskSizeIPv6)}
		}
		out = append(out, a)
	}
	return out
}

// etcdConfig says where the store is: on each master, which kubeadm sees to, or
// elsewhere.
func etcdConfig(c *manifest.Cluster, h *steps.Host) (object, error) {
	if !stacked(c) {
		out := object{"endpoints": part.StoreOf(c).Endpoints}
		ca, cert, key := etcd.ClientFiles(c)
		for name, file := range map[string]string{"caFile": ca, "certFile": cert, "keyFile": key} {
			if file != "" {
				out[name] = file
			}
		}
		return object{"external": out}, nil
	}
	local := object{"dataDir": c.Spec.Etcd.DataDir, "extraArgs": args(c, etcd.Flags(c))}
	// kubeadm knows one version of etcd alone; for another it has to be told what
	// the bundle holds.
	if c.Spec.Etcd.Version != "" {
		im, err := h.Image(etcdImage)
		if err != nil {
			return nil, err
		}
		ref, err := reference.ParseNormalizedNamed(im.Reference)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", im.Reference, err)
		}
		tagged, ok := ref.(reference.Tagged)
		if !ok {
			return nil, fmt.Errorf("image %s has no tag, which kubeadm asks for", im.Reference)
		}
		local["imageTag"] = tagged.Tag()
	}
	return object{"local": local}, nil
}

// stacked tells whether kubeadm runs a member of the store on each master.
func stacked(c *manifest.Cluster) bool { return part.StoreOf(c).Kind == part.Stacked }

// featureGates as one flag; gates that the version no longer knows are left out.
func featureGates(c *manifest.Cluster) manifest.Args {
	var words []string
	for name, on := range knownGates(c) {
		words = append(words, fmt.Sprintf("%s=%t", name, on))
	}
	if len(words) == 0 {
		return nil
	}
	slices.Sort(words)
	return manifest.Args{{Name: "feature-gates", Value: strings.Join(words, ",")}}
}

func knownGates(c *manifest.Cluster) map[string]bool {
	out := map[string]bool{}
	for name, on := range c.Spec.Kubernetes.FeatureGates {
		if !manifest.GateGone(name, c.Spec.Kubernetes.Version) {
			out[name] = on
		}
	}
	return out
}

func kubeletConfig(c *manifest.Cluster) (object, error) {
	k := c.Spec.Kubernetes
	o := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": k.Kubelet.CgroupDriver, "maxPods": k.MaxPods, "podPidsLimit": k.PodPidsLimit,
	}
	if gates := knownGates(c); len(gates) > 0 {
		o["featureGates"] = gates
	}
	if minor(c) >= 35 { // one configuration for all kubelets, and any host may have cgroup v1
		o["failCgroupV1"] = false
	}
	return o, hardenKubelet(c, o)
}

func proxyConfig(c *manifest.Cluster) object {
	p := c.Spec.Kubernetes.KubeProxy
	o := object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": p.Mode, "clusterCIDR": strings.Join(c.Spec.Network.KubePodsCIDR, ","),
	}
	if p.Mode == "nftables" { // each mode reads its own block, and ipvs that of iptables too
		o["nftables"] = object{"masqueradeAll": p.MasqueradeAll}
	} else {
		o["iptables"] = object{"masqueradeAll": p.MasqueradeAll}
	}
	if p.Mode == "ipvs" {
		o["ipvs"] = object{"excludeCIDRs": p.IPVS.ExcludeCIDRs, "strictARP": true}
	}
	if gates := knownGates(c); len(gates) > 0 {
		o["featureGates"] = gates
	}
	return o
}
