package manifest

// Setting is one hardening setting. The components are configured from the table of settings,
// docs/reference/hardening.md is generated from it, and a test compares it with a running cluster.
type Setting struct {
	Of    string // a component, "kernel" or "file"
	Name  string // a flag without dashes, a path in the kubelet's configuration, a kernel setting, or a file's path with * for any name
	Value string // for a file, its mode
	Group string // the value of spec.kubernetes.hardening.relax that leaves the setting out; "" for none
	Field string // the field that can change the setting as well; "" for none
	From  int    // the first minor version of Kubernetes 1 with this setting; 0 for all
	Why   string // the purpose, for docs/reference/hardening.md
}

// The values of Setting.Of.
const (
	OfAPIServer         = "kube-apiserver"
	OfControllerManager = "kube-controller-manager"
	OfScheduler         = "kube-scheduler"
	OfKubelet           = "kubelet"
	OfEtcd              = "etcd"
	OfKernel            = "kernel"
	OfFile              = "file"
)

// The configuration files of the API server on each master, and the folder of its audit log.
const (
	HardeningDir     = "/etc/kubernetes/kubexm"
	AuditPolicy      = HardeningDir + "/audit-policy.yaml"
	AdmissionConfig  = HardeningDir + "/admission.yaml"
	AuthConfig       = HardeningDir + "/authentication.yaml"
	EncryptionName   = "encryption.yaml" // in kubeadm's PKI folder
	EncryptionConfig = "/etc/kubernetes/pki/" + EncryptionName
	AuditDir         = "/var/log/kubernetes/audit"
)

// Ciphers are the TLS 1.2 cipher suites with forward secrecy and authenticated encryption:
// ECDHE with AES-GCM or ChaCha20-Poly1305. All cipher suites of TLS 1.3 have these properties
// and cannot be configured. A test compares the list with crypto/tls.
const Ciphers = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256," +
	"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384," +
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

// configurableAnonymous is the first minor version whose API server can restrict anonymous
// requests to some paths by a file (feature gate AnonymousAuthConfigurableEndpoints, beta and
// enabled by default; k8s.io/apiserver v0.32.2, pkg/features/kube_features.go).
const configurableAnonymous = 32

// Settings lists the settings except file modes, in the order of docs/reference/hardening.md. File modes
// depend on the parts of a cluster: part.Settings lists them as well.
func Settings() []Setting {
	out := append(serverSettings(), kubeletSettings()...)
	for _, s := range []struct{ name, value, why string }{
		{"client-cert-auth", "true", "clients need a certificate signed by etcd's CA"},
		{"peer-client-cert-auth", "true", "peers need a certificate signed by etcd's CA"},
	} {
		out = append(out, Setting{Of: OfEtcd, Name: s.name, Value: s.value, Field: "spec.etcd.extraArgs", Why: s.why})
	}
	return append(out, kernelSettings()...)
}

func serverSettings() []Setting {
	const apiServer = "spec.kubernetes.apiServer.extraArgs"
	server := func(name, value, group, why string) Setting {
		return Setting{Of: OfAPIServer, Name: name, Value: value, Group: group, Field: apiServer, Why: why}
	}
	anonymous := server("authentication-config", AuthConfig, RelaxAnonymous,
		"anonymous requests are accepted only for /livez, /readyz and /healthz (probes of kubelets and load balancers) and for the ConfigMap kube-public/cluster-info (read by kubeadm join); the flag is left out if extraArgs have anonymous-auth or oidc-…")
	anonymous.From = configurableAnonymous
	out := []Setting{
		anonymous,
		server("audit-policy-file", AuditPolicy, RelaxAudit, "audit logging is enabled: changes of permissions are logged with their content, Secrets and ConfigMaps never with content"),
		server("audit-log-path", AuditDir+"/audit.log", RelaxAudit, "the audit log is a file on the master, in a directory that only root can read"),
		server("audit-log-maxage", "30", RelaxAudit, "days for which audit log files are retained"),
		server("audit-log-maxbackup", "10", RelaxAudit, "number of rotated audit log files that are retained"),
		server("audit-log-maxsize", "100", RelaxAudit, "size in megabytes at which an audit log file is rotated: at most 1.1 GB on each master"),
		server("admission-control-config-file", AdmissionConfig, "", "Pod Security admission enforces the level of spec.kubernetes.hardening.podSecurity in every namespace without its own label; violations of restricted cause warnings and audit annotations"),
		server("encryption-provider-config", EncryptionConfig, RelaxEncryption, "Secrets are encrypted at rest in etcd, with secretbox (XSalsa20 and Poly1305)"),
		server("kubelet-certificate-authority", "/etc/kubernetes/pki/ca.crt", RelaxKubeletCertificates, "the API server verifies the kubelet's server certificate: connections for logs, exec and metrics cannot be intercepted"),
		server("enable-admission-plugins", "NodeRestriction", "", "kubelets can modify only their own Node object and the pods bound to it; kubeadm sets it"),
		server("service-account-lookup", "true", "", "a service account token is valid only while its service account exists"),
	}
	for _, of := range []struct{ component, field string }{
		{OfAPIServer, apiServer}, {OfControllerManager, "spec.kubernetes.controllerManager.extraArgs"}, {OfScheduler, "spec.kubernetes.scheduler.extraArgs"},
	} {
		add := func(name, value, group, why string) {
			out = append(out, Setting{Of: of.component, Name: name, Value: value, Group: group, Field: of.field, Why: why})
		}
		if of.component != OfAPIServer {
			add("bind-address", "127.0.0.1", "", "metrics and health endpoints listen on the loopback address only; kubeadm sets it")
		}
		add("profiling", "false", RelaxProfiling, "profiling is disabled: profiles expose program details and cost performance")
		add("tls-min-version", "VersionTLS12", RelaxTLS, "the minimum version is TLS 1.2: older versions are insecure")
		add("tls-cipher-suites", Ciphers, RelaxTLS, "only cipher suites with forward secrecy and authenticated encryption are accepted")
	}
	return out
}

func kubeletSettings() []Setting {
	var out []Setting
	for _, s := range []struct{ name, value, group, why string }{
		{"authentication.anonymous.enabled", "false", "", "anonymous requests are rejected"},
		{"authentication.webhook.enabled", "true", "", "bearer tokens are authenticated by the API server (TokenReview)"},
		{"authorization.mode", "Webhook", "", "requests are authorized by the API server (SubjectAccessReview)"},
		{"readOnlyPort", "0", "", "the read-only port, which requires no authentication, is disabled"},
		{"rotateCertificates", "true", "", "the kubelet's client certificate is renewed before it expires"},
		{"serverTLSBootstrap", "true", RelaxKubeletCertificates, "the kubelet requests its server certificate from the cluster's CA; a run of kubexm approves the request and its renewals if the names in it are those of the node"},
		{"protectKernelDefaults", "true", RelaxKernelDefaults, "the kubelet changes no kernel settings, and does not start if one differs from the value that it requires; kubexm sets them"},
		{"makeIPTablesUtilChains", "true", "", "the kubelet creates the iptables chains that drop invalid traffic to loopback addresses"},
		{"streamingConnectionIdleTimeout", "4h0m0s", "", "idle streaming connections, such as exec, are closed"},
		{"eventRecordQPS", "50", "", "events are recorded, with a rate limit"},
		{"tlsMinVersion", "VersionTLS12", RelaxTLS, "the minimum version is TLS 1.2: older versions are insecure"},
		{"tlsCipherSuites", Ciphers, RelaxTLS, "only cipher suites with forward secrecy and authenticated encryption are accepted"},
	} {
		out = append(out, Setting{Of: OfKubelet, Name: s.name, Value: s.value, Group: s.group, Field: "spec.kubernetes.kubelet.extraArgs", Why: s.why})
	}
	return out
}

// kernelSettings are the kernel settings that a kubelet with protectKernelDefaults requires
// (setupKernelTunables of kubernetes v1.32.2, pkg/kubelet/cm/container_manager_linux.go, with
// the values of k8s.io/component-helpers v0.32.2, node/util/sysctl).
func kernelSettings() []Setting {
	var out []Setting
	for _, s := range []struct{ name, value, why string }{
		{"vm.overcommit_memory", "1", "memory overcommit is always allowed"},
		{"vm.panic_on_oom", "0", "if memory runs out, the kernel kills a process and does not panic"},
		{"kernel.panic", "10", "seconds after which the host reboots after a kernel panic"},
		{"kernel.panic_on_oops", "1", "the kernel panics on an oops"},
		{"kernel.keys.root_maxkeys", "1000000", "maximum number of root's keys: each container uses one"},
		{"kernel.keys.root_maxbytes", "25000000", "maximum size of root's keys in bytes: 25 for each"},
	} {
		out = append(out, Setting{Of: OfKernel, Name: s.name, Value: s.value, Group: RelaxKernelDefaults, Why: s.why})
	}
	return out
}

// SettingsOf returns the settings of a component in this cluster, without relaxed ones.
func (c *Cluster) SettingsOf(component string) []Setting {
	var out []Setting
	for _, s := range Settings() {
		m := minor(c.Spec.Kubernetes.Version)
		if s.Of == component && s.From <= m && c.Spec.Kubernetes.Hardening.keeps(s.Group) && (s.Group != RelaxKubeletCertificates || c.KubeletsAreSigned()) {
			out = append(out, s)
		}
	}
	return out
}
