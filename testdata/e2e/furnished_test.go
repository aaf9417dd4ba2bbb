package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/testdata/lab"
)

// TestHostsFurnishedEmulated makes a host ready that has swap, firewalld,
// NetworkManager, systemd-resolved and systemd-timesyncd, has it restart, and gives it
// back: once where systemd-resolved writes resolv.conf, and once where NetworkManager does.
func TestHostsFurnishedEmulated(t *testing.T) {
	l := lab.Start(t, 1, lab.WithRoots(lab.Furnished), lab.Alone()) // inventories are compared
	l.AllowEgress()                                                 // systemd-timesyncd asks for the distribution's servers, systemd-resolved for its link's names
	text, err := os.ReadFile("testdata/furnished.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &labSite{Lab: l, dir: t.TempDir(), config: l.Config(string(text))}
	config := s.write(t, "config.yaml", s.config)
	s.on(t, "h1", `dd if=/dev/zero of=/swapfile bs=1M count=64 status=none; chmod 600 /swapfile; mkswap -q /swapfile
		echo '/swapfile none swap sw,pri=7 0 0' >>/etc/fstab; systemctl daemon-reload; swapon -a
		firewall-cmd -q --permanent --add-port=8443/tcp; firewall-cmd -q --reload
		ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf`)

	resolved := map[string]string{
		"readlink /etc/resolv.conf":                       "../run/systemd/resolve/stub-resolv.conf",
		"resolvectl dns | sed -n 's/^Global: //p'":        s.Gateway(),
		"resolvectl dns eth0 | sed 's/.*: //'":            s.Elsewhere().Address,
		"ls /etc/systemd/resolved.conf.d 2>&1 | cat":      "kubexm.conf",
		"ls /etc/NetworkManager/conf.d 2>/dev/null | cat": "90-kubexm-pod-network.conf",
	}
	t.Run("systemd-resolved", func(t *testing.T) { s.preparedAndRestored(t, config, resolved) })

	// NetworkManager writes the file itself where nobody else does. With the package of
	// systemd-resolved goes its resolvconf, which NetworkManager would call.
	s.on(t, "h1", `dpkg --purge systemd-resolved && rm -rf /etc/resolv.conf /run/systemd/resolve && systemctl restart NetworkManager
		until grep -q nameserver /etc/resolv.conf; do test $SECONDS -lt 120 || exit 1; sleep 1; done`)
	managed := map[string]string{
		"grep ^nameserver /etc/resolv.conf":                                      "nameserver " + s.Gateway() + "\nnameserver " + s.Elsewhere().Address,
		"ls /etc/NetworkManager/conf.d":                                          "90-kubexm-pod-network.conf\n90-kubexm.conf",
		"ls /etc/systemd/resolved.conf.d 2>/dev/null | cat":                      "",
		"test -f /etc/resolv.conf && ! test -L /etc/resolv.conf && echo its own": "its own",
	}
	t.Run("NetworkManager", func(t *testing.T) { s.preparedAndRestored(t, config, managed) })
}

// device has NetworkManager look at an interface of that name, and tells what it makes of it.
func device(name string) string {
	return fmt.Sprintf("ip link add %[1]s type dummy; ip link set %[1]s up; ip addr add 192.0.2.9/32 dev %[1]s; sleep 5; nmcli -g GENERAL.STATE device show %[1]s; ip link delete %[1]s", name)
}

// preparedAndRestored makes the host ready, holds it to that before and after a restart,
// and gives it back.
func (s *labSite) preparedAndRestored(t *testing.T, config string, more map[string]string) {
	t.Helper()
	before := s.inventories(t)
	prepare := []string{"hosts", "prepare", "-f", config}
	said(t, s.kubexm(t, prepare...), 0, "prepare of cluster site: done")
	s.getsAlong(t, more)
	said(t, s.kubexm(t, prepare...), 0, "0 steps ran")
	if err := s.Reboot(t.Context(), &s.Hosts[0]); err != nil {
		t.Fatal(err)
	}
	s.getsAlong(t, more)
	said(t, s.kubexm(t, prepare...), 0, "0 steps ran")
	said(t, s.kubexm(t, "hosts", "restore", "-f", config, "--yes"), 0, "restore of cluster site: done")
	for what, want := range map[string]string{
		"swapon --show=NAME,PRIO --noheadings":             "/swapfile    7",
		"systemctl is-active firewalld systemd-timesyncd":  "active\nactive",
		"firewall-cmd --list-ports":                        "8443/tcp",
		"timedatectl show-timesync -p SystemNTPServers":    "SystemNTPServers=",
		"systemctl is-enabled firewalld systemd-timesyncd": "enabled\nenabled",
		device("cali0"): "100 (connected (externally))",
	} {
		if got := s.on(t, "h1", what); got != want {
			t.Errorf("given back: %s: %q, want %q", what, got, want)
		}
	}
	s.asBefore(t, before)
}

// getsAlong looks at what hosts prepare made of the host.
func (s *labSite) getsAlong(t *testing.T, more map[string]string) {
	t.Helper()
	for _, all := range []map[string]string{more, {
		device("cali0"):                                        "10 (unmanaged)",
		device("other0"):                                       "100 (connected (externally))",
		"swapon --show=NAME --noheadings":                      "",
		"systemctl is-active firewalld || true":                "inactive",
		"systemctl is-enabled firewalld || true":               "disabled",
		"nft list tables":                                      "",
		"systemctl is-active NetworkManager systemd-timesyncd": "active\nactive",
		"timedatectl show-timesync -p SystemNTPServers":        "SystemNTPServers=" + s.Workdir().Address,
		"date +%Z": "CST",
		"lsmod | grep -cE '^(overlay|br_netfilter|ip_vs|ip_vs_rr|vxlan) '":              "5",
		"sysctl -n net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables | tr -d '\n'": "11",
	}} {
		for what, want := range all {
			if got := s.on(t, "h1", what); got != want {
				t.Errorf("%s: %q, want %q", strings.TrimSpace(what), got, want)
			}
		}
	}
}
