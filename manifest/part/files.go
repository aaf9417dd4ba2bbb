package part

import "github.com/mensylisir/kubexm/manifest"

// Settings lists everything that makes a cluster hard to break into, in the order of
// docs/hardening.md: what package manifest has, and the files of each runtime that is
// supported.
func Settings() []manifest.Setting { return append(manifest.Settings(), files(Runtimes()...)...) }

// FilesOf are the files of this cluster's hosts that root alone may read: a Setting's name is
// a path, with * for any name, and its value is a mode.
func FilesOf(c *manifest.Cluster) []manifest.Setting { return files(RuntimeOf(c)) }

func files(runtimes ...Runtime) []manifest.Setting {
	var out []manifest.Setting
	add := func(path, mode, why string) {
		out = append(out, manifest.Setting{Of: manifest.OfFile, Name: path, Value: mode, Why: why})
	}
	add("/etc/kubernetes/*.conf", "0600", "credentials of the cluster's administrator and components")
	add("/etc/kubernetes/manifests/*.yaml", "0600", "what the kubelet runs as root")
	add("/etc/kubernetes/pki", "0700", "the cluster's keys")
	add("/etc/kubernetes/pki/*", "0600", "the cluster's keys and certificates")
	add("/etc/kubernetes/pki/etcd", "0700", "the store's keys, where kubeadm runs it")
	add("/etc/kubernetes/pki/etcd/*", "0600", "the store's keys, where kubeadm runs it")
	add(manifest.HardeningDir, "0700", "what the API server reads")
	add(manifest.HardeningDir+"/*", "0600", "what the API server reads")
	add(manifest.AuditDir, "0700", "the audit log")
	add(manifest.AuditDir+"/*", "0600", "the audit log")
	add("/var/lib/kubelet/config.yaml", "0600", "the kubelet's configuration")
	add("/etc/systemd/system/kubelet.service", "0600", "the kubelet's unit")
	add("/etc/cni/net.d/*", "0600", "the pod network's configuration")
	for _, r := range runtimes {
		if r.Config != "" {
			add(r.Config, "0600", r.Name+"'s configuration")
		}
	}
	add("/etc/etcd/pki", "0700", "keys of etcd as a service")
	add("/etc/etcd/pki/*.key", "0600", "keys of etcd as a service")
	add("/etc/kubernetes/etcd", "0700", "what API servers reach an etcd with that is no pod of theirs")
	add("/etc/kubernetes/etcd/*.key", "0600", "what API servers reach an etcd with that is no pod of theirs")
	return out
}
