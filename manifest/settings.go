package manifest

// Setting is one thing that makes a cluster hard to break into. The components
// are configured from this table, docs/hardening.md is written from it, and a
// running cluster is held against that.
type Setting struct {
	Of    string // a component, "kernel" or "file"
	Name  string // a flag without dashes, a path into the kubelet's configuration, a kernel setting, a file's path with * for any name
	Value string // of a file its mode
	Group string // the word of spec.kubernetes.hardening.relax that leaves it out; "" none
	Field string // what changes it otherwise; "" nothing does
	From  int    // the first minor release of Kubernetes 1 that has it; 0 all
	Why   string
}

// What a Setting is of.
const (
	OfAPIServer         = "kube-apiserver"
	OfControllerManager = "kube-controller-manager"
	OfScheduler         = "kube-scheduler"
	OfKubelet           = "kubelet"
	OfEtcd              = "etcd"
	OfKernel            = "kernel"
	OfFile              = "file"
)

// The files of a master that its API server reads, and the folder of its audit log.
const (
	HardeningDir     = "/etc/kubernetes/kubexm"
	AuditPolicy      = HardeningDir + "/audit-policy.yaml"
	AdmissionConfig  = HardeningDir + "/admission.yaml"
	AuthConfig       = HardeningDir + "/authentication.yaml"
	EncryptionName   = "encryption.yaml" // in kubeadm's folder of keys
	EncryptionConfig = "/etc/kubernetes/pki/" + EncryptionName
	AuditDir         = "/var/log/kubernetes/audit"
)

// Ciphers are those of TLS 1.2 that keep what was said secret when a key is
// lost later, and that nobody can change on the way: ECDHE with AES-GCM or ChaCha20. Those
// of TLS 1.3 are all so, and cannot be chosen. A test holds the list against crypto/tls.
const Ciphers = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256," +
	"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384," +
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

// configurableAnonymous is the release from which the API server limits by a file
// what nobody may ask for (feature gate AnonymousAuthConfigurableEndpoints, beta and on;
// k8s.io/apiserver v0.32.2, pkg/features/kube_features.go).
const configurableAnonymous = 32

// Settings lists those that no host's files hold, in the order of the document. Files are of
// the parts that a cluster is made of: part.Settings has them as well.
func Settings() []Setting {
	out := append(serverSettings(), kubeletSettings()...)
	for _, s := range []struct{ name, value string }{
		{"client-cert-auth", "true"}, {"peer-client-cert-auth", "true"},
	} {
		out = append(out, Setting{Of: OfEtcd, Name: s.name, Value: s.value, Field: "spec.etcd.extraArgs", Why: "who has no certificate of its CA is not heard"})
	}
	return append(out, kernelSettings()...)
}

func serverSettings() []Setting {
	const apiServer = "spec.kubernetes.apiServer.extraArgs"
	server := func(name, value, group, why string) Setting {
		return Setting{Of: OfAPIServer, Name: name, Value: value, Group: group, Field: apiServer, Why: why}
	}
	anonymous := server("authentication-config", AuthConfig, RelaxAnonymous,
		"nobody is answered about /livez, /readyz and /healthz, which kubelet and load balancers ask, and about ConfigMap kube-public/cluster-info, which a node reads before it joins, and about nothing else; left out where extraArgs have anonymous-auth or oidc-…")
	anonymous.From = configurableAnonymous
	out := []Setting{
		anonymous,
		server("audit-policy-file", AuditPolicy, RelaxAudit, "who asked for what is written down: changes of rights with their content, Secrets and ConfigMaps never with theirs"),
		server("audit-log-path", AuditDir+"/audit.log", RelaxAudit, "on the master, in a folder that root alone reads"),
		server("audit-log-maxage", "30", RelaxAudit, "days that it is kept"),
		server("audit-log-maxbackup", "10", RelaxAudit, "files that it is kept in"),
		server("audit-log-maxsize", "100", RelaxAudit, "megabytes of one file: 1.1 GB at most on each master"),
		server("admission-control-config-file", AdmissionConfig, "", "Pod Security admission: the level of spec.kubernetes.hardening.podSecurity is enforced in every namespace without a label of its own, restricted is warned of and audited"),
		server("encryption-provider-config", EncryptionConfig, RelaxEncryption, "Secrets are encrypted in etcd, by secretbox (XSalsa20 and Poly1305)"),
		server("kubelet-certificate-authority", "/etc/kubernetes/pki/ca.crt", RelaxKubeletCertificates, "logs, exec and metrics come from the kubelet that is asked, and from nobody between"),
		server("enable-admission-plugins", "NodeRestriction", "", "a kubelet changes its own node and pods alone; kubeadm sets it"),
		server("service-account-lookup", "true", "", "a token is good for as long as its service account is there"),
	}
	for _, of := range []struct{ component, field string }{
		{OfAPIServer, apiServer}, {OfControllerManager, "spec.kubernetes.controllerManager.extraArgs"}, {OfScheduler, "spec.kubernetes.scheduler.extraArgs"},
	} {
		add := func(name, value, group, why string) {
			out = append(out, Setting{Of: of.component, Name: name, Value: value, Group: group, Field: of.field, Why: why})
		}
		if of.component != OfAPIServer {
			add("bind-address", "127.0.0.1", "", "metrics and health are served to the host alone; kubeadm sets it")
		}
		add("profiling", "false", RelaxProfiling, "profiles tell of the inside, and cost time")
		add("tls-min-version", "VersionTLS12", RelaxTLS, "older ones are broken")
		add("tls-cipher-suites", Ciphers, RelaxTLS, "ciphers with forward secrecy and authenticated encryption alone")
	}
	return out
}

func kubeletSettings() []Setting {
	var out []Setting
	for _, s := range []struct{ name, value, group, why string }{
		{"authentication.anonymous.enabled", "false", "", "nobody is not heard"},
		{"authentication.webhook.enabled", "true", "", "the API server is asked who it is"},
		{"authorization.mode", "Webhook", "", "and whether he may"},
		{"readOnlyPort", "0", "", "no port that answers everybody"},
		{"rotateCertificates", "true", "", "a client's certificate is renewed before it expires"},
		{"serverTLSBootstrap", "true", RelaxKubeletCertificates, "a kubelet asks the cluster's CA for the certificate that it serves with; a run of kubexm approves it, and its renewals, where its names are the node's"},
		{"protectKernelDefaults", "true", RelaxKernelDefaults, "a kubelet changes no kernel setting, and does not start where one is not as it needs it; kubexm sets them"},
		{"makeIPTablesUtilChains", "true", "", "the chains that drop what has no business on loopback addresses"},
		{"streamingConnectionIdleTimeout", "4h0m0s", "", "an exec that nobody uses ends"},
		{"eventRecordQPS", "50", "", "events are kept, and no flood of them"},
		{"tlsMinVersion", "VersionTLS12", RelaxTLS, "older ones are broken"},
		{"tlsCipherSuites", Ciphers, RelaxTLS, "ciphers with forward secrecy and authenticated encryption alone"},
	} {
		out = append(out, Setting{Of: OfKubelet, Name: s.name, Value: s.value, Group: s.group, Field: "spec.kubernetes.kubelet.extraArgs", Why: s.why})
	}
	return out
}

// kernelSettings are what a kubelet with protectKernelDefaults asks for
// (setupKernelTunables of kubernetes v1.32.2, pkg/kubelet/cm/container_manager_linux.go,
// with the values of k8s.io/component-helpers v0.32.2, node/util/sysctl).
func kernelSettings() []Setting {
	var out []Setting
	for _, s := range []struct{ name, value, why string }{
		{"vm.overcommit_memory", "1", "memory is promised freely"},
		{"vm.panic_on_oom", "0", "where there is none left, one process ends and not the host"},
		{"kernel.panic", "10", "a host whose kernel has stopped boots after as many seconds"},
		{"kernel.panic_on_oops", "1", "a kernel that is damaged stops"},
		{"kernel.keys.root_maxkeys", "1000000", "each container takes a key of root's"},
		{"kernel.keys.root_maxbytes", "25000000", "25 bytes for each"},
	} {
		out = append(out, Setting{Of: OfKernel, Name: s.name, Value: s.value, Group: RelaxKernelDefaults, Why: s.why})
	}
	return out
}

// SettingsOf are those that a component of this cluster gets.
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
