package controlplane

// Certificates are the files with certificates that kubeadm and the kubelet have on a node.
// Source: the constants of kubeadm (cmd/kubeadm/app/constants), and the kubelet's certificate
// store (/var/lib/kubelet/pki).
func Certificates() []string {
	var out []string
	for _, name := range []string{
		"pki/ca.crt", "pki/front-proxy-ca.crt", "pki/etcd/ca.crt",
		"pki/apiserver.crt", "pki/apiserver-kubelet-client.crt", "pki/apiserver-etcd-client.crt", "pki/front-proxy-client.crt",
		"pki/etcd/server.crt", "pki/etcd/peer.crt", "pki/etcd/healthcheck-client.crt",
		"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf",
	} {
		out = append(out, "/etc/kubernetes/"+name)
	}
	return append(out, "/var/lib/kubelet/pki/kubelet-client-current.pem", "/var/lib/kubelet/pki/kubelet-server-current.pem")
}
