package controlplane

import "testing"

func TestWithoutOurs(t *testing.T) {
	for name, c := range map[string]struct {
		in, out string
		changed bool
	}{
		"nothing": {"", "", false},
		"nobody's of ours": {
			"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n",
			"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\nCOMMIT\n", false,
		},
		"chains and those who use them": {
			"*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n:CNI-HOSTPORT-DNAT - [0:0]\n:FLANNEL-POSTRTG - [0:0]\n" +
				"-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n-A POSTROUTING -m comment --comment \"flanneld masq\" -j FLANNEL-POSTRTG\n" +
				"-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\nCOMMIT\n",
			"*nat\n:PREROUTING ACCEPT [0:0]\n-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\nCOMMIT\n", true,
		},
		"a rule of somebody's that speaks of one": {
			"*filter\n-A INPUT -m comment --comment \"not KUBE-like at all\" -j DROP\n-A INPUT -m comment --comment \"flanneld is dead\" -j DROP\n-A INPUT -j MYKUBE-IN\nCOMMIT\n",
			"*filter\n-A INPUT -m comment --comment \"not KUBE-like at all\" -j DROP\n-A INPUT -m comment --comment \"flanneld is dead\" -j DROP\n-A INPUT -j MYKUBE-IN\nCOMMIT\n", false,
		},
		"flannel's forward rules": {
			"*filter\n:FLANNEL-FWD - [0:0]\n-A FORWARD -m comment --comment \"flanneld forward\" -j FLANNEL-FWD\n-A FLANNEL-FWD -s 10.233.64.0/18 -m comment --comment \"flanneld forward\" -j ACCEPT\nCOMMIT\n",
			"*filter\nCOMMIT\n", true,
		},
		"calico's rules in a chain of the kernel": {
			"*filter\n:FORWARD ACCEPT [0:0]\n:cali-FORWARD - [0:0]\n-A FORWARD -m comment --comment \"cali:wUHhoiAYhphO9Mso\" -j cali-FORWARD\n" +
				"-A FORWARD -m comment --comment \"cali:S93hcgKJrXEqnTfs\" -m comment --comment \"Policy explicitly accepted packet.\" -m mark --mark 0x10000/0x10000 -j ACCEPT\n" +
				"-A FORWARD -m comment --comment cali:mp77cMpurHhyjLrM -j MARK --set-xmark 0x10000/0x10000\n-A FORWARD -m comment --comment \"not of cali: at all\" -j DROP\nCOMMIT\n",
			"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m comment --comment \"not of cali: at all\" -j DROP\nCOMMIT\n", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := withoutOurs(c.in)
			if got != c.out || changed != c.changed {
				t.Errorf("changed %t, got\n%s", changed, got)
			}
		})
	}
}
