package e2e

import (
	"strings"
	"testing"
	"time"
)

// neglect makes hosts what nobody has looked after: other names, firewalls, swap to
// come with the next boot, no time kept, name servers and time zones of any kind.
func (s *labSite) neglect(t *testing.T) {
	t.Helper()
	for _, h := range s.Hosts {
		s.on(t, h.Name, `
			echo "old-`+h.Name+`" >/etc/hostname; sysctl -q -w kernel.hostname="old-`+h.Name+`"
			printf '# <file system> <mount point>\n/dev/vdz none swap sw,pri=5 0 0\n/swapfile\tswap\tswap\tdefaults\t0\t0\n' >>/etc/fstab
			sed -i "s/`+h.Name+`/old-`+h.Name+`/" /etc/hosts
			systemctl daemon-reload`)
	}
	// A firewall that lets everything through which is on, and starts at boot.
	for _, name := range []string{"h1", "h2"} {
		s.on(t, name, "systemctl enable -q --now nftables")
	}
	s.on(t, "h3", `printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/firewalld.service
		systemctl daemon-reload; systemctl enable -q --now firewalld`)
	s.on(t, "h1", "systemctl disable -q --now chrony; rm -f /var/lib/chrony/*; ln -sf /usr/share/zoneinfo/Europe/Berlin /etc/localtime; echo Europe/Berlin >/etc/timezone")
	s.on(t, "h2", "sed -i 's/^pool/#pool/' /etc/chrony/chrony.conf; systemctl enable -q --now chrony; cp --remove-destination /usr/share/zoneinfo/America/Lima /etc/localtime")
	s.on(t, "h3", "rm -f /etc/localtime; cp --remove-destination /etc/resolv.conf /etc/resolv.new; mv /etc/resolv.new /etc/resolv.conf")
}

// areReady looks at what hosts prepare made of them.
func (s *labSite) areReady(t *testing.T) {
	t.Helper()
	one := s.Hosts[0].Address
	for _, h := range s.Hosts {
		for what, want := range map[string]string{
			"hostname; cat /etc/hostname":                                                             h.Name + "\n" + h.Name,
			"grep -c '^[^#].*swap' /etc/fstab || true":                                                "0",
			"systemctl is-active nftables firewalld | sort -u":                                        "inactive",
			"systemctl is-enabled nftables firewalld 2>/dev/null | grep enabled | cat":                "",
			"realpath /etc/localtime; date +%Z":                                                       "/usr/share/zoneinfo/Asia/Shanghai\nCST",
			"for n in h1 printer.site.example; do getent ahostsv4 $n; done | awk '{print $1}' | uniq": one + "\n192.0.2.6",
			"getent ahostsv4 $(hostname) | awk '{print $1}' | sort -u":                                h.Address,
			"grep -m 1 ^nameserver /etc/resolv.conf":                                                  "nameserver " + strings.TrimSuffix(one, "1"), // its gateway's
			"systemctl is-active chrony chronyd | sort -u | head -n 1":                                "active",
			"sysctl -n net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables | tr -d '\n'":           "11",
		} {
			if got := s.on(t, h.Name, what); got != want {
				t.Errorf("%s: %s: %q, want %q", h.Name, what, got, want)
			}
		}
	}
	// The others follow the one that is named.
	for _, name := range []string{"h2", "h3"} {
		for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Second) {
			got := s.on(t, name, "chronyc -n -c sources")
			if strings.HasPrefix(got, "^,*,"+one+",") {
				break
			}
			if time.Now().After(until) {
				t.Errorf("%s does not follow h1: %s", name, got)
				break
			}
		}
	}
}
