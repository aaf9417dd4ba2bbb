package manifest

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Hardening relaxes the security settings of the cluster. All settings in docs/reference/hardening.md
// are enabled by default. A flag in the extraArgs of a component overrides a single setting.
type Hardening struct {
	// Relax lists groups of settings that stay at the defaults of Kubernetes and kubeadm.
	// anonymous: anonymous requests are accepted for more than health checks. audit: audit
	// logging is disabled. encryption: Secrets are stored in etcd without encryption.
	// kernelDefaults: kubelets may change kernel settings. kubeletCertificates: kubelets use
	// self-signed server certificates. profiling: profiling endpoints are enabled. tls: weak
	// TLS versions and cipher suites are accepted. Each listed group causes a warning.
	Relax []string `yaml:"relax,omitempty" enum:"anonymous|audit|encryption|kernelDefaults|kubeletCertificates|profiling|tls" effect:"apiserver,controller-manager,scheduler,kubelet"`
	// PodSecurity is the Pod Security Standards level that is enforced in namespaces without
	// their own label. Violations of restricted are always warned about and audited.
	PodSecurity string `yaml:"podSecurity,omitempty" default:"baseline" enum:"privileged|baseline|restricted" effect:"apiserver"`
	// PrivilegedNamespaces are exempt from Pod Security admission: any pod may run there.
	// kube-system, the pod network's namespace and the namespaces of add-on charts are always
	// exempt, except default. The namespace default is exempt only if it is listed here.
	PrivilegedNamespaces []string `yaml:"privilegedNamespaces,omitempty" format:"label" effect:"apiserver"`
}

// The values of spec.kubernetes.hardening.relax.
const (
	RelaxAnonymous           = "anonymous"
	RelaxAudit               = "audit"
	RelaxEncryption          = "encryption"
	RelaxKernelDefaults      = "kernelDefaults"
	RelaxKubeletCertificates = "kubeletCertificates"
	RelaxProfiling           = "profiling"
	RelaxTLS                 = "tls"
)

// keeps reports whether a group of settings is enabled. The group "" cannot be relaxed.
func (h Hardening) keeps(group string) bool { return group == "" || !slices.Contains(h.Relax, group) }

// KubeletsAreSigned reports whether the cluster's CA signs the kubelets' server certificates.
// It is false if kubeletCertificates is relaxed, if the feature gate
// RotateKubeletServerCertificate is disabled, or if kubelet flags set another certificate.
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
		RelaxAnonymous:           "the API server accepts anonymous requests for everything that RBAC allows",
		RelaxAudit:               "audit logging is disabled",
		RelaxEncryption:          "Secrets are readable in etcd's data and in its backups",
		RelaxKernelDefaults:      "kubelets change kernel settings, and start with any values",
		RelaxKubeletCertificates: "the API server does not verify kubelet certificates: kubectl logs and exec can be intercepted",
		RelaxProfiling:           "profiling endpoints of the control plane are enabled",
		RelaxTLS:                 "weak TLS cipher suites are accepted",
	}
	for i, group := range h.Relax {
		if slices.Contains(h.Relax[:i], group) {
			d.Warn(document.Indexed(relax, i), "write it once", "%s is listed twice", group)
			continue
		}
		if what, ok := means[group]; ok {
			d.Warn(document.Indexed(relax, i), "remove it unless it is required", "%s is relaxed: %s", group, what)
		}
	}
	if h.PodSecurity == "privileged" {
		d.Warn("spec.kubernetes.hardening.podSecurity", "write baseline, and list namespaces that need more in privilegedNamespaces", "pods with full access to their node are admitted in every namespace without a label")
	}
}
