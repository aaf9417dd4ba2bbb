package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// fieldsTookEffect asks the cluster for what testdata/walk.yaml says.
func (s *labSite) fieldsTookEffect(t testing.TB) {
	t.Helper()
	is := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in %q", what, want, got)
		}
	}
	node := func(name, path string) string { return s.kubectl(t, "get", "node", name, "-o", "jsonpath={"+path+"}") }
	is("maxPods", node("h5", ".status.capacity.pods"), "60")
	is("nodeCidrMaskSize", node("h5", ".spec.podCIDR"), "/25")
	is("kubePodsCIDR", node("h5", ".spec.podCIDR"), "10.201.")
	is("labels", node("h5", ".metadata.labels.disk"), "ssd")
	is("taints", node("h6", ".spec.taints"), `"key":"dedicated"`)
	is("kubeServiceCIDR", s.kubectl(t, "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"), "10.202.0.1")
	is("serviceNodePortRange", s.kubectl(t, "get", "service", "smoke", "-o", "jsonpath={.spec.ports[0].nodePort}"), "31")
	kubelet := s.kubectl(t, "get", "--raw", "/api/v1/nodes/h5/proxy/configz")
	for _, want := range []string{`"podPidsLimit":4096`, `"maxPods":60`, `"InPlacePodVerticalScaling":true`, `"clusterDomain":"site.local"`} {
		is("kubelet", kubelet, want)
	}
	is("kubelet.extraArgs", s.on(t, "h5", "tr '\\0' ' ' < /proc/$(pgrep -x kubelet)/cmdline"), "--v=3")
	proxy := s.kubectl(t, "-n", "kube-system", "get", "configmap", "kube-proxy", "-o", "jsonpath={.data.config\\.conf}")
	is("kubeProxy.mode", proxy, "mode: iptables")
	is("kubeProxy.masqueradeAll", proxy, "masqueradeAll: true")
	is("kubeProxy.masqueradeAll on the host", s.on(t, "h5", "iptables-save -t nat | grep -- 'KUBE-SVC.*KUBE-MARK-MASQ' | head -1"), "-j KUBE-MARK-MASQ")
	for component, want := range map[string]string{
		"kube-apiserver": "--event-ttl=2h0m0s", "kube-controller-manager": "--node-monitor-period=4s", "kube-scheduler": "--v=1",
	} {
		is(component, s.kubectl(t, "-n", "kube-system", "get", "pod", component+"-h2", "-o", "jsonpath={.spec.containers[0].command}"), want)
	}
	is("featureGates", s.kubectl(t, "-n", "kube-system", "get", "pod", "kube-apiserver-h2", "-o", "jsonpath={.spec.containers[0].command}"), "InPlacePodVerticalScaling=true")
	sans := s.on(t, "h2", "openssl x509 -in /etc/kubernetes/pki/apiserver.crt -noout -ext subjectAltName")
	for _, want := range []string{"DNS:api.lab.example", "DNS:api.site.example", "IP Address:192.0.2.77"} {
		is("certSANs", sans, want)
	}
	is("registryDataDir", s.on(t, "h1", "ls /srv/images/docker/registry/v2"), "blobs")
	is("extra.hosts", s.on(t, "h6", "getent ahostsv4 printer.site.example"), "192.0.2.6")
	is("controlPlaneEndpoint.domain", s.on(t, "h6", "grep server: /etc/kubernetes/kubelet.conf"), "https://api.site.example:6443")
	for name, want := range map[string]string{"files.site.example": "192.0.2.5", "old.site.example": "192.0.2.5", "smoke.default.svc.site.local": "10.202."} {
		pod := s.kubectl(t, "get", "pods", "-l", "app=smoke", "-o", "jsonpath={.items[0].metadata.name}")
		is("dns "+name, s.kubectl(t, "exec", pod, "--", "labtool", "resolve", name), want)
	}
	is("addons", s.kubectl(t, "-n", "notes", "get", "deployment/notes", "-o", "jsonpath={.status.readyReplicas}"), "1")
	is("record", s.kubectl(t, "-n", "kube-system", "get", "configmap", "kubexm", "-o", "jsonpath={.data}"), fmt.Sprintf("%q", "serial"))
}
