package part

// KubeVIPPod is the manifest of the static pod that runs kube-vip on a master, for KubeVIPFront.
const KubeVIPPod = "/etc/kubernetes/manifests/kube-vip.yaml"

// KubeVIPMetricsPort is the TCP port on the loopback address of a master on which kube-vip reports
// its metrics: the port of its default, which is on all addresses.
const KubeVIPMetricsPort = 2112
