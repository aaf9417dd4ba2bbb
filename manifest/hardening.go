package manifest

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Hardening says how much of what makes a cluster hard to break into is left
// out. All of it is on by default, and docs/hardening.md lists it; extraArgs of
// a component overrule single flags.
type Hardening struct {
	// Relax names groups of settings that stay as Kubernetes and kubeadm have
	// them: anonymous lets everybody ask the API server for more than its health,
	// audit keeps no log of who asked for what, encryption leaves Secrets readable
	// in etcd, kernelDefaults lets kubelets change kernel settings,
	// kubeletCertificates has kubelets sign their own, profiling serves profiles, tls
	// takes every cipher. Each one named is warned of.
	Relax []string `yaml:"relax,omitempty" enum:"anonymous|audit|encryption|kernelDefaults|kubeletCertificates|profiling|tls" effect:"apiserver,controller-manager,scheduler,kubelet"`
	// PodSecurity is the level of the Pod Security Standards that is enforced in
	// namespaces without a label of their own. What restricted refuses is warned of
	// and audited, whatever is enforced.
	PodSecurity string `yaml:"podSecurity,omitempty" default:"baseline" enum:"privileged|baseline|restricted" effect:"apiserver"`
	// PrivilegedNamespaces may run any pod. kube-system, the pod network's and those
	// that charts of the add-ons are installed into are so already; default never is
	// unless it is written here.
	PrivilegedNamespaces []string `yaml:"privilegedNamespaces,omitempty" format:"label" effect:"apiserver"`
}

// What spec.kubernetes.hardening.relax may name.
const (
	RelaxAnonymous           = "anonymous"
	RelaxAudit               = "audit"
	RelaxEncryption          = "encryption"
	RelaxKernelDefaults      = "kernelDefaults"
	RelaxKubeletCertificates = "kubeletCertificates"
	RelaxProfiling           = "profiling"
	RelaxTLS                 = "tls"
)

// keeps tells whether a group of settings is in force; "" is one that no word
// relaxes.
func (h Hardening) keeps(group string) bool { return group == "" || !slices.Contains(h.Relax, group) }

// KubeletsAreSigned tells whether kubelets serve with certificates of the cluster's
// CA: not where that is relaxed, where its feature gate is off, or where flags give
// them a certificate of another's.
func (c *Cluster) KubeletsAreSigned() bool {
	k := c.Spec.Kubernetes
	on, written := k.FeatureGates["RotateKubeletServerCertificate"]
	return k.Hardening.keeps(RelaxKubeletCertificates) && (on || !written) && !slices.ContainsFunc(k.Kubelet.ExtraArgs, func(a Arg) bool {
		return a.Name == "tls-cert-file" || a.Name == "rotate-server-certificates" && a.Value == "false"
	})
}

func (d *config) validateHardening(c *Cluster) {
	h := c.Spec.Kubernetes.Hardening
	const relax = "spec.kubernetes.hardening.relax"
	means := map[string]string{
		RelaxAnonymous: "who is nobody may ask the API server for all that RBAC gives to nobody", RelaxAudit: "no log says who asked the API server for what",
		RelaxEncryption: "who reads etcd's data or a backup of it reads every Secret", RelaxKernelDefaults: "kubelets change kernel settings, and start on whatever they are",
		RelaxKubeletCertificates: "who is between API server and kubelet hears and answers what logs and exec say",
		RelaxProfiling:           "profiles of the control plane are served to who may ask for them", RelaxTLS: "weak ciphers are spoken with who asks for them",
	}
	for i, group := range h.Relax {
		if slices.Contains(h.Relax[:i], group) {
			d.Warn(document.Indexed(relax, i), "write it once", "%s stands twice", group)
			continue
		}
		if what, ok := means[group]; ok {
			d.Warn(document.Indexed(relax, i), "take it out, if nothing needs it", "%s is relaxed: %s", group, what)
		}
	}
	if h.PodSecurity == "privileged" {
		d.Warn("spec.kubernetes.hardening.podSecurity", "write baseline, and the namespaces that need more in privilegedNamespaces", "any pod may take over its node, in every namespace without a label")
	}
}
