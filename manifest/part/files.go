package part

import "github.com/mensylisir/kubexm/manifest"

// Settings lists all hardening settings in the order of docs/reference/hardening.md: those of package
// manifest, and the file modes, with the files of each supported runtime.
func Settings() []manifest.Setting { return append(manifest.Settings(), files(Runtimes()...)...) }

// FilesOf returns the files on this cluster's hosts that only root may read. The name of a
// Setting is a path with * for any name, and its value is a mode.
func FilesOf(c *manifest.Cluster) []manifest.Setting { return files(RuntimeOf(c)) }

func files(runtimes ...Runtime) []manifest.Setting {
	var out []manifest.Setting
	add := func(path, mode, why string) {
		out = append(out, manifest.Setting{Of: manifest.OfFile, Name: path, Value: mode, Why: why})
	}
	add("/etc/kubernetes/*.conf", "0600", "kubeconfig files of the administrator and of the components")
	add("/etc/kubernetes/manifests/*.yaml", "0600", "manifests of static pods")
	add("/etc/kubernetes/pki", "0700", "private keys of the cluster")
	add("/etc/kubernetes/pki/*", "0600", "private keys and certificates of the cluster")
	add("/etc/kubernetes/pki/etcd", "0700", "private keys of etcd, if kubeadm runs it")
	add("/etc/kubernetes/pki/etcd/*", "0600", "private keys of etcd, if kubeadm runs it")
	add(manifest.HardeningDir, "0700", "configuration files of the API server")
	add(manifest.HardeningDir+"/*", "0600", "configuration files of the API server")
	add(manifest.AuditDir, "0700", "audit log")
	add(manifest.AuditDir+"/*", "0600", "audit log")
	add("/var/lib/kubelet/config.yaml", "0600", "kubelet configuration")
	add("/etc/systemd/system/kubelet.service", "0600", "kubelet service file")
	add("/etc/cni/net.d/*", "0600", "CNI configuration")
	for _, r := range runtimes {
		if r.Config != "" {
			add(r.Config, "0600", r.Name+" configuration")
		}
	}
	add("/etc/etcd/pki", "0700", "private keys of etcd, if it is a service")
	add("/etc/etcd/pki/*.key", "0600", "private keys of etcd, if it is a service")
	add("/etc/kubernetes/etcd", "0700", "client keys of the API servers, if etcd is a service or external")
	add("/etc/kubernetes/etcd/*.key", "0600", "client keys of the API servers, if etcd is a service or external")
	return out
}
