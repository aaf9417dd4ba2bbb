package kubeadm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/etcd"
)

// object is a piece of a Kubernetes document.
type object = controlplane.Object

// api is the API version of kubeadm's configuration: v1beta4 exists from 1.31 on, and has
// lists of flags in place of maps.
func api(c *manifest.Cluster) string {
	if controlplane.Minor(c) >= 31 {
		return "kubeadm.k8s.io/v1beta4"
	}
	return "kubeadm.k8s.io/v1beta3"
}

// args returns flags in the form of the document's API version. If a flag occurs twice,
// the last one applies.
func args(c *manifest.Cluster, as manifest.Args) any {
	if len(as) == 0 {
		return nil
	}
	if controlplane.Minor(c) >= 31 {
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

// InitConfig returns the configuration of kubeadm init on h.
func InitConfig(c *manifest.Cluster, h *steps.Host) ([]byte, error) {
	store, err := etcdConfig(c, h)
	if err != nil {
		return nil, err
	}
	kubelet, err := controlplane.KubeletConfig(c)
	if err != nil {
		return nil, err
	}
	docs := []object{
		{
			"apiVersion": api(c), "kind": "InitConfiguration",
			// kubeadm always creates a token, with a lifetime of a day by default. Nodes join
			// with another token.
			"bootstrapTokens":  []object{{"ttl": tokenTTL, "description": "kubexm: of kubeadm init, for nobody"}},
			"localAPIEndpoint": listening(c, h),
			"nodeRegistration": registration(c, h),
		},
		clusterConfig(c, store), kubelet, controlplane.ProxyConfig(c),
	}
	return controlplane.Encode(docs...)
}

// listening returns the address that the API server of a master listens on.
func listening(c *manifest.Cluster, h *steps.Host) object {
	return object{"advertiseAddress": c.NodeAddresses(h.Host)[0], "bindPort": part.EndpointOf(c).Backend}
}

func registration(c *manifest.Cluster, h *steps.Host) object {
	ours := manifest.Args{{Name: "node-ip", Value: strings.Join(c.NodeAddresses(h.Host), ",")}, {Name: "resolv-conf", Value: controlplane.ResolvConf(h)}}
	o := object{
		"name": h.Name, "criSocket": part.RuntimeOf(c).Socket,
		"kubeletExtraArgs": args(c, controlplane.MergeFlags(ours, c.Spec.Kubernetes.Kubelet.ExtraArgs)),
	}
	// A master that is a worker too runs pods: it has no taint.
	if c.Spec.RoleGroups.Has(manifest.RoleWorker, h.Name) {
		o["taints"] = []object{}
	}
	return o
}

func clusterConfig(c *manifest.Cluster, store object) object {
	k, n := c.Spec.Kubernetes, c.Spec.Network
	flags := func(component string, users manifest.Args, ours ...manifest.Arg) any {
		return args(c, controlplane.Flags(c, component, users, ours...))
	}
	return object{
		"apiVersion": api(c), "kind": "ClusterConfiguration",
		"clusterName": "kubernetes", "kubernetesVersion": k.Version, "controlPlaneEndpoint": part.EndpointOf(c).Name(),
		"networking": object{
			"dnsDomain": k.ClusterName, "podSubnet": strings.Join(n.KubePodsCIDR, ","), "serviceSubnet": strings.Join(n.KubeServiceCIDR, ","),
		},
		"apiServer": object{
			"certSANs":     controlplane.SANs(c),
			"extraArgs":    flags(manifest.OfAPIServer, k.APIServer.ExtraArgs, manifest.Arg{Name: "service-node-port-range", Value: k.APIServer.ServiceNodePortRange}),
			"extraVolumes": volumes(c),
		},
		"controllerManager": object{"extraArgs": flags(manifest.OfControllerManager, k.ControllerManager.ExtraArgs, controlplane.NodeCIDRMaskFlags(c)...)},
		"scheduler":         object{"extraArgs": flags(manifest.OfScheduler, k.Scheduler.ExtraArgs)},
		"etcd":              store,
	}
}

// etcdConfig returns the etcd section: a local member on each master, which kubeadm runs,
// or an external cluster.
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
	// kubeadm has one default version of etcd; for another the image tag in the bundle must
	// be specified.
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
			return nil, fmt.Errorf("image %s has no tag, which kubeadm requires", im.Reference)
		}
		local["imageTag"] = tagged.Tag()
	}
	return object{"local": local}, nil
}

// stacked reports whether kubeadm runs an etcd member on each master.
func stacked(c *manifest.Cluster) bool { return part.StoreOf(c).Kind == part.Stacked }

// volumes returns the host folders that an API server mounts in addition to kubeadm's.
func volumes(c *manifest.Cluster) []object {
	out := []object{{"name": "kubexm", "hostPath": manifest.HardeningDir, "mountPath": manifest.HardeningDir, "readOnly": true, "pathType": "Directory"}}
	if !slices.Contains(c.Spec.Kubernetes.Hardening.Relax, manifest.RelaxAudit) {
		out = append(out, object{"name": "kubexm-audit", "hostPath": manifest.AuditDir, "mountPath": manifest.AuditDir, "pathType": "DirectoryOrCreate"})
	}
	return out
}
