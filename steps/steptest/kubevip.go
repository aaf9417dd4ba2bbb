package steptest

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

const (
	superAdminConf   = "/etc/kubernetes/super-admin.conf"
	kubeVIPSandbox   = "sandbox-of-kube-vip"
	kubeVIPContainer = "container-of-kube-vip"
)

var (
	kubeVIPMount  = regexp.MustCompile(`(?m)^ +path: (/etc/kubernetes/\S+\.conf)\n +type: File$`)
	kubeVIPDigest = regexp.MustCompile(`kubexm\.mensylisir\.io/kubeconfig: "([0-9a-f]+)"`)
)

// kubeVIPConf returns the kubeconfig of a master that the kubelet mounts into kube-vip; "" if it
// does not start the pod, or if the file does not exist.
func (k *Kube) kubeVIPConf(host string) string {
	s := k.hosts[host]
	if s == nil || !k.stands && (!s.Unit("kubelet.service").Active || !k.engineRuns(s)) {
		return ""
	}
	found := kubeVIPMount.FindStringSubmatch(s.Read(part.KubeVIPPod))
	if found == nil || s.Read(found[1]) == "" {
		return ""
	}
	return found[1]
}

// takesLease reports whether kube-vip on a master runs and may take its lease. It asks the API
// server of its own host.
func (k *Kube) takesLease(host string) bool {
	conf := k.kubeVIPConf(host)
	if conf == "" || !k.serves(host) {
		return false
	}
	switch conf {
	case superAdminConf:
		return true
	case adminConf: // from 1.29 on kubeadm makes it the administrator's in one of its last phases
		return minor(k.cluster) < 29 || k.named("apps/v1", "DaemonSet", "kube-system", "kube-proxy") != nil
	}
	const api = "rbac.authorization.k8s.io/v1"
	role, binding := k.named(api, "Role", "kube-system", "kube-vip"), k.named(api, "RoleBinding", "kube-system", "kube-vip")
	text := k.hosts[host].Read(conf)
	return binding != nil && allowsLease(role) && strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(Authority()))) &&
		strings.Contains(text, "client-key-data")
}

// allowsLease reports whether a Role allows what a lease lock does.
func allowsLease(role Object) bool {
	var allowed []string
	rules, _ := at(role, "rules").([]any)
	for _, r := range rules {
		verbs, _ := at(r, "verbs").([]any)
		for _, v := range verbs {
			if verb, ok := v.(string); ok {
				allowed = append(allowed, verb)
			}
		}
	}
	slices.Sort(allowed)
	return slices.Equal(allowed, []string{"create", "get", "update"})
}

// vipHolder returns the master on which kube-vip has assigned the virtual IP, or "". It changes
// only when that one cannot renew its lease.
func (k *Kube) vipHolder() string {
	if k.vip != "" && k.takesLease(k.vip) {
		return k.vip
	}
	k.vip = ""
	for _, m := range k.cluster.HostsWith(manifest.RoleMaster) {
		if k.takesLease(m.Name) {
			k.vip = m.Name
			break
		}
	}
	return k.vip
}

// VIPHosts returns the masters with the virtual IP on an interface.
func (k *Kube) VIPHosts() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, m := range k.cluster.HostsWith(manifest.RoleMaster) {
		if k.hasVIP(m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

func (k *Kube) hasVIP(host string) bool {
	if part.EndpointOf(k.cluster).Front != part.KubeVIPFront {
		return false
	}
	holder := k.vipHolder()
	if k.takesLease(host) && holder != host { // kube-vip removes the address when it starts
		delete(k.strayVIP, host)
	}
	return holder == host || k.strayVIP[host]
}

// lacksVIP reports whether kubeadm init waits in vain for the virtual IP.
func (k *Kube) lacksVIP() bool {
	return !k.stands && part.EndpointOf(k.cluster).Front == part.KubeVIPFront && k.vipHolder() == ""
}

// killKubeVIP ends kube-vip without its clean-up, as a reset may do: the address stays.
func (k *Kube) killKubeVIP(host string) {
	if part.EndpointOf(k.cluster).Front == part.KubeVIPFront && k.vipHolder() == host {
		k.strayVIP[host] = true
	}
}

// kubeVIPPods simulates crictl for kube-vip.
func (k *Kube) kubeVIPPods(c call) (connector.Result, bool) {
	switch {
	case c.words[0] == "pods" && c.flags["--label"] == "io.kubernetes.pod.name=kube-vip-"+c.host:
		if k.kubeVIPConf(c.host) == "" {
			return prints(`{"items":[]}`), true
		}
		digest := ""
		if found := kubeVIPDigest.FindStringSubmatch(c.sim.Read(part.KubeVIPPod)); found != nil {
			digest = found[1]
		}
		return prints(`{"items":[{"id":%q,"annotations":{"kubexm.mensylisir.io/kubeconfig":%q}}]}`, kubeVIPSandbox, digest), true
	case c.words[0] == "ps" && c.flags["--pod"] == kubeVIPSandbox:
		return prints("%s\n", kubeVIPContainer), true
	}
	return connector.Result{}, false
}

// addresses simulates ip for the virtual IP of kube-vip.
func (k *Kube) addresses(s *conntest.Sim, host string) {
	s.HandleProgram("ip", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		words := strings.Join(c.Argv[1:], " ")
		vip := part.EndpointOf(k.cluster).VIP + "/32"
		if strings.Contains(vip, ":") {
			vip = strings.TrimSuffix(vip, "32") + "128"
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		switch words {
		case "-o addr show to " + vip:
			if !k.hasVIP(host) {
				return prints(""), true
			}
			return prints("2: eth0    inet %s scope global eth0\\       valid_lft forever preferred_lft forever\n", vip), true
		case "addr del " + vip + " dev eth0":
			if !k.hasVIP(host) {
				return failed(2, "RTNETLINK answers: Cannot assign requested address"), true
			}
			delete(k.strayVIP, host) // one that runs assigns the address again
			return prints(""), true
		}
		return connector.Result{}, false
	})
}

// minor returns the minor version of Kubernetes.
func minor(c *manifest.Cluster) int {
	var n int
	if _, err := fmt.Sscanf(c.Spec.Kubernetes.Version, "v1.%d.", &n); err != nil {
		return 0
	}
	return n
}
