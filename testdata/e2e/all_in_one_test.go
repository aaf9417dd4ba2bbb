package e2e

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/lab"
)

// TestAllInOneEmulated is the life of a cluster of one host with a kernel of its own:
// control groups of version 2, kube-proxy in mode ipvs, and a host that restarts.
func TestAllInOneEmulated(t *testing.T) { allInOne(t, lab.Machine, "all-in-one.yaml", "amd64") }

// TestAllInOneARM64Emulated is that of a host of arm64. Its bundle is built, and carried in,
// by a kubexm for this machine's architecture.
func TestAllInOneARM64Emulated(t *testing.T) {
	allInOne(t, lab.MachineARM64, "all-in-one-arm64.yaml", "arm64")
}

func allInOne(t *testing.T, root, config, arch string) {
	begun := time.Now()
	took := func(what string) {
		t.Logf("%s: %.0f s", what, time.Since(begun).Seconds())
		begun = time.Now()
	}
	s, config := newScenarioSite(t, 1, config, lab.WithRoots(root))
	took("the machine's start and the bundle")
	s.on(t, "h1", "modprobe nf_conntrack") // its settings come with the first rule that asks for it, and stay
	before := s.inventories(t)
	took("what the host is")

	said(t, s.install(t, config), 0, "create of cluster site: done")
	took("create")
	s.smokeOnOne(t)
	took("smoke")
	s.hasItsOwnKernel(t)
	if got := s.kubectl(t, "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.architecture}"); got != arch {
		t.Errorf("the node's architecture is %q, not %s", got, arch)
	}

	since := s.on(t, "h1", "date -u +%Y-%m-%dT%H:%M:%SZ")
	begun = time.Now()
	if err := s.Reboot(t.Context(), &s.Hosts[0]); err != nil {
		t.Fatal(err)
	}
	took("restart")
	// What the store says of before holds until the kubelet says otherwise: its lease tells.
	s.on(t, "h1", fmt.Sprintf(`export KUBECONFIG=/etc/kubernetes/admin.conf
ready() {
    test "$(kubectl --request-timeout=20s -n kube-node-lease get leases h1 -o jsonpath='{.spec.renewTime}')" \> %q &&
        kubectl --request-timeout=20s wait --for=condition=Ready nodes --all --timeout=60s &&
        kubectl --request-timeout=20s wait --for=condition=Ready pods --all -A --timeout=60s
}
until ready; do
    test $SECONDS -lt 480 || exit 1
    sleep 2
done`, since))
	took("from the host to pods that are ready")
	s.smokeOnOne(t)
	took("smoke")
	said(t, s.install(t, config), 0, "0 steps ran")
	took("a second run")

	s.deleted(t, config)
	took("delete")
	s.asBefore(t, before)
	took("what the host is")
}

// smokeOnOne is smoke where one node is all there is.
func (s *labSite) smokeOnOne(t *testing.T) {
	t.Helper()
	smoke := lab.Smoke{Lab: s.Lab, Cache: s.cache, Kubeconfig: s.kubeconfig(), Nodes: 1, Say: func(what string) { t.Log(what) }}
	if err := smoke.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// hasItsOwnKernel asks for what other hosts of the lab cannot show.
func (s *labSite) hasItsOwnKernel(t *testing.T) {
	t.Helper()
	for what, script := range map[string]string{
		"control groups of version 2":      "test $(stat -fc %T /sys/fs/cgroup) = cgroup2fs",
		"systemd makes the groups of pods": "systemctl is-active kubepods.slice && ls -d /sys/fs/cgroup/kubepods.slice/*/*/cri-containerd-*.scope",
		"kube-proxy's addresses":           "ip -4 -br addr show kube-ipvs0 | grep -F 10.204.0.1/32",
		"the API server's Service":         fmt.Sprintf("grep -i %s /proc/net/ip_vs", hexadecimal("10.204.0.1", 443)),
		"its modules are loaded at a boot": "grep -x ip_vs_rr /etc/modules-load.d/kubexm.conf",
		"pods run beside the master":       "kubectl --kubeconfig /etc/kubernetes/admin.conf get node h1 -o jsonpath='{.spec.taints}' | grep -q . && exit 1 || true",
	} {
		s.on(t, "h1", "# "+what+"\n"+script)
	}
	if got := s.kubectl(t, "-n", "kube-system", "get", "configmap", "kube-proxy", "-o", `jsonpath={.data.config\.conf}`); !strings.Contains(got, "mode: ipvs") {
		t.Errorf("kube-proxy's mode:\n%s", got)
	}
	config := filepath.Join(s.dir, "config.yaml")
	said(t, s.kubexm(t, "get", "nodes", "-f", config), 0, "h1", "Ready")
}

// hexadecimal is how the kernel writes an address and a port.
func hexadecimal(address string, port uint16) string {
	b := netip.MustParseAddr(address).As4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", b[0], b[1], b[2], b[3], port)
}
