package preflight_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestLeftovers(t *testing.T) {
	m := machine
	hold(t, "existing-installation", map[string]row{
		"a service":           {host: "w1", before: func(s *conntest.Sim) { s.AddUnit("kubelet.service", "[Service]\n", false, false) }, want: []string{"error: has files of another Kubernetes: /usr/lib/systemd/system/kubelet.service"}},
		"processes":           {host: "w1", before: m(func(m *conntest.Machine) { m.Processes = []string{"712 kubelet", "900 etcd"} }), want: []string{"error: runs another Kubernetes: kubelet (process 712)"}},
		"an etcd on a master": {host: "m1", before: m(func(m *conntest.Machine) { m.Processes = []string{"900 etcd"} }), want: []string{"error: runs another Kubernetes: etcd (process 900)"}},
		"a kubelet's data":    {host: "w1", before: file("/var/lib/kubelet/pki/kubelet.crt"), want: []string{"error: has files of another Kubernetes: /var/lib/kubelet/pki/kubelet.crt"}},
		"a network before":    {host: "w1", before: file("/etc/cni/net.d/10-calico.conflist"), want: []string{"error: /etc/cni/net.d contains the configuration of another pod network: 10-calico.conflist"}},
		"a network behind":    {host: "w1", before: file("/etc/cni/net.d/87-podman-bridge.conflist"), want: []string{"warning: /etc/cni/net.d contains the configuration of another pod network: 87-podman-bridge.conflist"}},
		"no network's":        {host: "w1", before: file("/etc/cni/net.d/README")},
		"on a registry host":  {host: "r1", before: func(s *conntest.Sim) { file("/etc/cni/net.d/10-calico.conflist")(s) }},
	})
}

func TestNames(t *testing.T) {
	called := func(name string, addresses ...string) func(*conntest.Sim) {
		return func(s *conntest.Sim) {
			s.SetHostname(name)
			s.SetMachine(func(m *conntest.Machine) { m.HostnameAddresses = addresses })
		}
	}
	keep := "  system: {keep: [hostname]}\n"
	hold(t, "host-name", map[string]row{
		"good":             {host: "w1", before: called("w1.site.example", "192.0.2.21")},
		"an underscore":    {host: "w1", before: called("web_1"), want: []string{`warning: the host name "web_1" is not a valid node name`}},
		"a capital, kept":  {host: "w1", before: called("Web1"), spec: keep, want: []string{`error: the host name "Web1" is not a valid node name`}},
		"good, kept":       {host: "w1", before: called("web-1"), spec: keep},
		"loopback":         {host: "w1", before: called("w1", "127.0.0.1"), want: []string{"warning: /etc/hosts maps the host name to 127.0.0.1"}},
		"loopback of IPv6": {host: "w1", before: called("w1", "::1"), want: []string{"warning: /etc/hosts maps the host name to ::1"}},
		"Debian's":         {host: "w1", before: called("w1", "127.0.1.1"), want: []string{"note: /etc/hosts maps the host name to 127.0.1.1"}},
	})
	says := func(text string) func(*conntest.Sim) { return machine(func(m *conntest.Machine) { m.Resolv = text }) }
	hold(t, "resolv-conf", map[string]row{
		"one server":       {host: "w1"},
		"missing":          {host: "w1", before: machine(func(m *conntest.Machine) { m.NoResolv = true }), want: []string{"error: /etc/resolv.conf does not exist"}},
		"empty":            {host: "w1", before: says(""), want: []string{"error: /etc/resolv.conf lists no name server"}},
		"no server":        {host: "w1", before: says("search site.example\n"), want: []string{"error: /etc/resolv.conf lists no name server"}},
		"one to come":      {host: "w1", before: says(""), spec: "  extra: {resolves: [192.0.2.53]}\n"},
		"itself":           {host: "w1", before: says("nameserver 127.0.0.1\n"), want: []string{"warning: /etc/resolv.conf lists 127.0.0.1, which is CoreDNS itself inside its pod"}},
		"itself, not used": {host: "w1", before: says("nameserver 127.0.0.1\n"), spec: "  dns: {coredns: {upstreamDNSServers: [192.0.2.53]}}\n"},
	})
	hold(t, "name-servers", map[string]row{
		"one answers": {host: "w1", before: func(s *conntest.Sim) {
			says("nameserver 192.0.2.53\nnameserver 192.0.2.54\n")(s)
			s.DropConnectionsTo("192.0.2.53:53")
		}},
		"none":            {host: "w1", before: func(s *conntest.Sim) { s.DropConnectionsTo("192.0.2.1:53") }, want: []string{"warning: cannot reach any of its name servers 192.0.2.1 by TCP"}},
		"not to be known": {host: "w1", before: func(s *conntest.Sim) { s.ForbidForwarding() }, want: []string{"note: connections to its name servers not tested: sshd forwards no connections"}},
		"no server":       {host: "w1", before: says("")},
	})
	hold(t, "time-service", map[string]row{
		"chrony": {host: "r1"},
		"none":   {host: "r1", before: machine(func(m *conntest.Machine) { m.TimeServices = nil }), want: []string{"warning: no time synchronisation service is active"}},
		"none to come": {host: "r1", before: machine(func(m *conntest.Machine) { m.TimeServices = nil }), spec: "  system: {ntpServers: [192.0.2.1]}\n",
			want: []string{"error: chrony is missing: spec.system.ntpServers requires it, and the bundle has no packages for this operating system"}},
		"one that follows": {host: "r1", before: machine(func(m *conntest.Machine) { m.TimeServices = []string{"systemd-timesyncd.service"} }), spec: "  system: {ntpServers: [m1]}\n"},
		"one that is to serve": {host: "r1", before: machine(func(m *conntest.Machine) { m.TimeServices = []string{"systemd-timesyncd.service"} }), spec: "  system: {ntpServers: [r1]}\n",
			want: []string{"error: chrony is missing: spec.system.ntpServers requires it, and the bundle has no packages for this operating system"}},
	})
	// With packages for the host chrony comes.
	c := steptest.Cluster(t, site+"  system: {ntpServers: [192.0.2.1]}\n")
	var said []string
	kase := steptest.Case{Cluster: c, Before: machine(func(m *conntest.Machine) { m.TimeServices = nil }), Report: func(f steps.Finding) { said = append(said, f.Level()+": "+f.What) }}
	found := steptest.Check(t, kase, step(t, "preflight.time-service", preflight.Options{Systems: []string{"debian-12"}}))
	if len(found) > 0 || len(said) != 1 || said[0] != "note: no time synchronisation service is active; kubexm sets up chrony, as spec.system.ntpServers requires" {
		t.Errorf("with packages: %v %v", found, said)
	}
}

func TestKernelSettings(t *testing.T) {
	sysctl := func(path, line string) func(*conntest.Sim) {
		return func(s *conntest.Sim) { s.AddFile(path, "# of the site\n"+line+"\n", 0o644) }
	}
	hold(t, "sysctls", map[string]row{
		"none":              {host: "w1"},
		"before ours":       {host: "w1", before: sysctl("/etc/sysctl.d/50-site.conf", "net.ipv4.ip_forward = 0")},
		"after ours":        {host: "w1", before: sysctl("/etc/sysctl.d/99-sysctl.conf", "net.ipv4.ip_forward = 0"), want: []string{"error: /etc/sysctl.d/99-sysctl.conf sets net.ipv4.ip_forward to 0, and systemd applies it after kubexm's 99-kubexm-cri.conf"}},
		"after, as we want": {host: "w1", before: sysctl("/etc/sysctl.d/99-sysctl.conf", "net.ipv4.ip_forward=1")},
		"elsewhere":         {host: "w1", before: sysctl("/usr/lib/sysctl.d/99-z.conf", "-net/bridge/bridge-nf-call-iptables=0"), want: []string{"error: /usr/lib/sysctl.d/99-z.conf sets net.bridge.bridge-nf-call-iptables to 0, and systemd applies it after kubexm's 99-kubexm-cri.conf"}},
		"not read at boot":  {host: "w1", before: sysctl("/etc/sysctl.conf", "net.ipv4.ip_forward=0")},
		"IPv6's":            {host: "w1", before: sysctl("/etc/sysctl.d/99-z.conf", "net.ipv6.conf.all.forwarding=0")},
		"inotify":           {host: "w1", before: func(s *conntest.Sim) { s.SetSysctl("fs.inotify.max_user_instances", "64") }, want: []string{"warning: fs.inotify.max_user_instances is 64: kubelet and containers run out of inotify instances"}},
		"inotify, more":     {host: "w1", before: func(s *conntest.Sim) { s.SetSysctl("fs.inotify.max_user_instances", "8192") }},
	})
	hold(t, "commands", map[string]row{
		"all":                  {host: "w1"},
		"none of kubeadm":      {host: "w1", before: machine(func(m *conntest.Machine) { m.NoCommands = []string{"iptables", "nsenter"} }), want: []string{"error: missing commands: iptables, nsenter"}},
		"conntrack":            {host: "w1", before: machine(func(m *conntest.Machine) { m.NoCommands = []string{"conntrack"} })},
		"conntrack under 1.31": {host: "w1", spec: "  kubernetes: {version: v1.31.0}\n", before: machine(func(m *conntest.Machine) { m.NoCommands = []string{"conntrack"} }), want: []string{"error: missing commands: conntrack"}},
	})
	hold(t, "inodes", map[string]row{
		"plenty": {host: "w1"},
		"few":    {host: "w1", before: machine(func(m *conntest.Machine) { m.InodesFree = 1000 }), want: []string{"warning: / has 1000 of 6553600 inodes free; a kubelet evicts pods under 5%"}},
	})
}

// TestSettingsOfTwoFamilies: what turns IPv6 off is in the way where pods have it.
func TestSettingsOfTwoFamilies(t *testing.T) {
	c := steptest.Cluster(t, site)
	c.Spec.Network.KubePodsCIDR = []string{"10.64.0.0/16", "fd00:10::/64"}
	got := look(t, c, "preflight.sysctls", "w1", func(s *conntest.Sim) {
		s.AddFile("/etc/sysctl.d/99-z.conf", "net.ipv6.conf.all.forwarding=0\n", 0o644)
		s.SetSysctl("net.ipv6.conf.all.disable_ipv6", "1")
	})
	want := "error: /etc/sysctl.d/99-z.conf sets net.ipv6.conf.all.forwarding to 0, and systemd applies it after kubexm's 99-kubexm-cri.conf; " +
		"error: IPv6 is disabled (net.ipv6.conf.all.disable_ipv6), but the cluster's pods have IPv6 addresses"
	if strings.Join(got, "; ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestPackagesInTheWay: what others do with packages is said, and not forced.
func TestPackagesInTheWay(t *testing.T) {
	repository := steptest.Artifacts{Repositories: map[string]steptest.Repository{"debian-12": {Format: manifest.Deb, Want: []string{"socat"}, Packages: []steptest.Package{{Name: "socat", Version: "1"}}}}}
	for name, c := range map[string]struct {
		before func(*conntest.Sim)
		want   string
	}{
		"nothing":          {func(*conntest.Sim) {}, ""},
		"somebody at it":   {func(s *conntest.Sim) { s.LockPackages("apt-get (process 7)", 50) }, "warning: apt-get (process 7) is changing packages"},
		"one of ours held": {machine(func(m *conntest.Machine) { m.Held = []string{"linux-image", "socat"} }), "warning: packages of the bundle are held: socat"},
		"another is held":  {machine(func(m *conntest.Machine) { m.Held = []string{"linux-image"} }), "note: packages are held: linux-image"},
	} {
		var got []string
		say := func(f steps.Finding) { got = append(got, f.Level()+": "+f.What) }
		kase := steptest.Case{Cluster: steptest.Cluster(t, site), Before: c.before, Artifacts: repository, Report: say}
		for _, f := range steptest.Check(t, kase, step(t, "preflight.packages", preflight.Options{Systems: []string{"debian-12"}})) {
			say(f)
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s: found %s, want %s", name, text, c.want)
		}
	}
}

// TestModulesOfAChoice: where another value of the config needs no module, the advice
// names it.
func TestModulesOfAChoice(t *testing.T) {
	for _, c := range []struct{ module, spec, advice string }{
		{"ip_vs_rr", "", "set spec.kubernetes.kubeProxy.mode to iptables"},
		{"vxlan", "", "set spec.network.flannel.backend to host-gw"},
		{"wireguard", "wireguard", "set spec.network.flannel.backend to vxlan"},
		{"ipip", "", "set spec.network.calico.vxlanMode to Always"},
		{"dummy", "", "set spec.dns.nodelocaldns.enabled to false"},
		{"iscsi_tcp", "", "remove longhorn from spec.addons"},
		{"nfs", "", "remove spec.storage.nfs"},
	} {
		config := site + "  dns: {nodelocaldns: {enabled: true}}\n  storage: {nfs: {server: 192.0.2.98, path: /srv}}\n  addons: [longhorn]\n"
		if c.spec != "" {
			config = strings.Replace(config, "{plugin: flannel}", "{plugin: flannel, flannel: {backend: "+c.spec+"}}", 1)
		}
		if c.module == "ipip" {
			config = strings.Replace(config, "{plugin: flannel}", "{plugin: calico}", 1)
		}
		kase := steptest.Case{Cluster: steptest.Cluster(t, config), Before: func(s *conntest.Sim) { s.SetModule(c.module, "absent") }}
		found := steptest.Check(t, kase, step(t, "preflight.kernel-modules", preflight.Options{Modules: []string{"overlay", c.module}}))
		if len(found) != 1 || !strings.Contains(found[0].Advice, c.advice) {
			t.Errorf("%s: %v", c.module, found)
		}
	}
}

func TestModules(t *testing.T) {
	for name, c := range map[string]struct{ state, want string }{
		"loaded": {"loaded", ""}, "part of the kernel": {"builtin", ""}, "to be loaded": {"available", ""},
		"absent": {"absent", "the kernel has no module ip_vs"},
	} {
		kase := steptest.Case{Cluster: steptest.Cluster(t, site), Before: func(s *conntest.Sim) { s.SetModule("ip_vs", c.state) }}
		found := steptest.Check(t, kase, step(t, "preflight.kernel-modules", preflight.Options{Modules: []string{"overlay", "ip_vs"}}))
		if len(found) == 0 && c.want == "" {
			continue
		}
		if len(found) != 1 || found[0].What != c.want || !strings.Contains(found[0].Advice, "kubeProxy.mode") {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// TestCommandsOfLonghorn: its managers call a program of the node.
func TestCommandsOfLonghorn(t *testing.T) {
	for _, c := range []struct{ addons, want string }{{"[longhorn]", "missing commands: iscsiadm"}, {"[metallb]", ""}} {
		kase := steptest.Case{Cluster: steptest.Cluster(t, site+"  addons: "+c.addons+"\n"), Before: machine(func(m *conntest.Machine) { m.NoCommands = []string{"iscsiadm"} })}
		found := steptest.Check(t, kase, step(t, "preflight.commands", preflight.Options{}))
		if got := found.Error(); got != c.want || c.want != "" && !strings.Contains(found[0].Advice, "open-iscsi") {
			t.Errorf("%s: %v, want %q", c.addons, found, c.want)
		}
	}
}

// TestNFS: nodes need the program that mounts volumes, and an answer from the server.
func TestNFS(t *testing.T) {
	c := steptest.Cluster(t, site+"  storage: {nfs: {server: nas.site.example, path: /srv}}\n")
	kase := steptest.Case{Cluster: c, Before: machine(func(m *conntest.Machine) { m.NoCommands = []string{"mount.nfs"} })}
	if found := steptest.Check(t, kase, step(t, "preflight.commands", preflight.Options{})); len(found) != 1 || found[0].What != "missing commands: mount.nfs" || !strings.Contains(found[0].Advice, "nfs-common") {
		t.Errorf("without the program: %v", found)
	}
	for name, x := range map[string]struct {
		before func(*conntest.Sim)
		want   string
	}{
		"there": {func(s *conntest.Sim) {
			s.AddListener("nas.site.example:2049", func() net.Conn {
				client, server := net.Pipe()
				_ = server.Close()
				return client
			})
		}, ""},
		"refuses": {func(*conntest.Sim) {}, "cannot reach the NFS server at nas.site.example:2049: connection refused"},
		"silent":  {func(s *conntest.Sim) { s.DropConnectionsTo("nas.site.example:2049") }, "cannot reach the NFS server at nas.site.example:2049: "},
		"unknown": {func(s *conntest.Sim) { s.DisableDNS("nas.site.example") }, "cannot resolve the NFS server nas.site.example"},
	} {
		found := steptest.Check(t, steptest.Case{Cluster: c, Before: x.before}, step(t, "preflight.reachability", preflight.Options{}))
		if x.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || x.want == "" || !strings.HasPrefix(found[0].What, x.want) || found[0].Advice == "" {
			t.Errorf("%s: %+v, want %q", name, found, x.want)
		}
	}
}

// TestCommandsThatPackagesBring: what the bundle's packages hold is not missed.
func TestCommandsThatPackagesBring(t *testing.T) {
	o := preflight.Options{Systems: []string{"debian-12"}}
	for _, c := range []struct{ packages, want string }{{"iptables", ""}, {"socat", "missing commands: iptables"}} {
		kase := steptest.Case{Cluster: steptest.Cluster(t, site), Before: machine(func(m *conntest.Machine) { m.NoCommands = []string{"iptables"} }),
			Artifacts: steptest.Artifacts{Repositories: map[string]steptest.Repository{"debian-12": {Format: manifest.Deb, Want: []string{c.packages}, Packages: []steptest.Package{{Name: c.packages, Version: "1"}}}}}}
		found := steptest.Check(t, kase, step(t, "preflight.commands", o))
		if got := found.Error(); got != c.want {
			t.Errorf("%s: %q, want %q", c.packages, got, c.want)
		}
	}
}

func TestReachability(t *testing.T) {
	c := steptest.Cluster(t, site)
	for name, x := range map[string]struct {
		from   int
		before func(*gathered)
		want   string
	}{
		"a master, all well":   {0, func(*gathered) {}, ""},
		"a worker, all well":   {1, func(*gathered) {}, ""},
		"a registry, all well": {2, func(*gathered) {}, ""},
		"a worker without the API server": {1, func(g *gathered) { g.sims["w1"].DropConnectionsTo("192.0.2.11:6443") },
			"w1 error: cannot reach port 6443 of m1, where the API server will listen"},
		"a worker without the registry": {1, func(g *gathered) { g.sims["w1"].DropConnectionsTo("192.0.2.31:443") },
			"w1 error: cannot reach port 443 of r1, where the registry will listen"},
		"a master without kubelets": {0, func(g *gathered) { g.sims["m1"].DropConnectionsTo("192.0.2.21:10250", "192.0.2.41:10250") },
			"m1 error: cannot reach port 10250 of a1 and w1, where the kubelet will listen"},
		"a port that nobody needs": {1, func(g *gathered) { g.sims["w1"].DropConnectionsTo("192.0.2.41:10250") }, ""},
		"a host without a kubelet": {0, func(g *gathered) { g.sims["m1"].DropConnectionsTo("192.0.2.31:10250") }, ""},
		"sshd forbids it": {1, func(g *gathered) { g.sims["w1"].ForbidForwarding() },
			"w1 note: connections to the other hosts not tested: sshd forwards no connections"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gather(t, c, nil)
			x.before(g)
			if got := strings.Join(g.lookFrom(t, c.Spec.Hosts[x.from], "reachability"), "\n"); got != x.want {
				t.Errorf("found\n%s\nwant\n%s", got, x.want)
			}
		})
	}
	// A firewall of the other host's goes before anything listens there.
	g := gather(t, c, map[string]func(*conntest.Machine){"m1": func(m *conntest.Machine) { m.Firewalls = []string{"firewalld"} }})
	g.sims["w1"].DropConnectionsTo("192.0.2.11:6443")
	if got := strings.Join(g.lookFrom(t, c.Spec.Hosts[1], "reachability"), "\n"); got != "w1 warning: cannot reach port 6443 of m1, where the API server will listen" {
		t.Errorf("found %s", got)
	}
}

func TestDisks(t *testing.T) {
	c := steptest.Cluster(t, site)
	const gib = 1 << 30
	writes := []preflight.Write{
		{What: "logs", Path: "/var/lib/etcd", Hosts: []string{"m1"}, Bytes: 2 * gib},
		{What: "images", Path: "/var/lib/containerd", Hosts: []string{"m1", "w1"}, Bytes: 3 * gib},
		{What: "others'", Path: "/", Hosts: []string{"r1"}, Bytes: 900 * gib},
	}
	for name, x := range map[string]struct {
		machine func(*conntest.Machine)
		want    string
	}{
		"room":      {nil, ""},
		"too small": {func(m *conntest.Machine) { m.FreeMiB = 4 << 10 }, "error: / has 4096 MiB free and needs 5120 MiB: 2048 MiB for logs, 3072 MiB for images"},
		"on disks of their own": {func(m *conntest.Machine) {
			m.FreeMiB, m.Mounts = 1<<10, map[string]int{"/var/lib/containerd": 8 << 10, "/var/lib/etcd": 3 << 10}
		}, ""},
		"one too small": {func(m *conntest.Machine) { m.Mounts = map[string]int{"/var/lib/etcd": 1 << 10} }, "error: /var/lib/etcd has 1024 MiB free and needs 2048 MiB: 2048 MiB for logs"},
		"nearly full": {func(m *conntest.Machine) { m.Mounts = map[string]int{"/var/lib/containerd": 4 << 10} },
			"warning: /var/lib/containerd will have 12% free after 3072 MiB more; a kubelet evicts pods when the disk with /var/lib/containerd has less than 15% free"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			say := func(f steps.Finding) { got = append(got, f.Level()+": "+f.What) }
			kase := steptest.Case{Cluster: c, Report: say, Before: func(s *conntest.Sim) {
				if x.machine != nil {
					s.SetMachine(x.machine)
				}
			}}
			for _, f := range steptest.Check(t, kase, step(t, "preflight.disk-space", preflight.Options{Writes: writes})) {
				say(f)
			}
			if text := strings.Join(got, "\n"); text != x.want {
				t.Errorf("found\n%s\nwant\n%s", text, x.want)
			}
		})
	}
}

// TestSizesOfTheBundle: what a step opens counts with what it takes on a disk.
func TestSizesOfTheBundle(t *testing.T) {
	binary := manifest.Need{Kind: manifest.Binary, Name: "kubelet"}
	image := manifest.Need{Kind: manifest.Image, Name: "pause"}
	kase := steptest.Case{Cluster: steptest.Cluster(t, site), Before: machine(func(m *conntest.Machine) { m.FreeMiB = 1 })}
	o := preflight.Options{Writes: []preflight.Write{{What: "all", Path: "/usr/local/bin", Hosts: []string{"m1"}, Needs: []manifest.Need{binary, image}, AllImages: true}}}
	s := step(t, "preflight.disk-space", o)
	h := kase.NewHost(t, kase.Sim(t), s)
	h.Artifacts = sized{}
	var found steps.Findings
	if err := s.Run(t.Context(), h.ForStep(s.Meta())); !errors.As(err, &found) {
		t.Fatal(err)
	}
	// 100 MiB of a program, 10 MiB of an image 4.5 times, and all images for all
	// platforms as they are: twice 10 MiB.
	if want := "/ has 1 MiB free and needs 165 MiB: 165 MiB for all"; found[0].What != want {
		t.Errorf("found %q, want %q", found[0].What, want)
	}
}

// TestSizesOnANodeWithoutARegistry: all images come to it, for its platform, and are unpacked.
func TestSizesOnANodeWithoutARegistry(t *testing.T) {
	kase := steptest.Case{Cluster: steptest.Cluster(t, site), Before: machine(func(m *conntest.Machine) { m.FreeMiB = 1 })}
	s := step(t, "preflight.disk-space", preflight.Options{Writes: []preflight.Write{{What: "images", Path: "/var/lib/containerd", Hosts: []string{"m1"}, PlatformImages: true}}})
	h := kase.NewHost(t, kase.Sim(t), s)
	h.Artifacts = sized{}
	var found steps.Findings
	if err := s.Run(t.Context(), h.ForStep(s.Meta())); !errors.As(err, &found) {
		t.Fatal(err)
	}
	if want := "/ has 1 MiB free and needs 45 MiB: 45 MiB for images"; found[0].What != want {
		t.Errorf("found %q, want %q", found[0].What, want)
	}
}

// sized is a bundle of one program and one image.
type sized struct{ steps.Artifacts }

func (sized) Lookup(manifest.Need, manifest.Platform) (manifest.Blob, error) {
	return manifest.Blob{Size: 100 << 20}, nil
}

func (s sized) Image(manifest.Need) (manifest.ImagePin, error) { return s.Images()[0], nil }

func (sized) Images() []manifest.ImagePin {
	return []manifest.ImagePin{{Platforms: []manifest.PlatformImage{
		{Platform: manifest.Platform{OS: "linux", Arch: "amd64"}, Content: 10 << 20}, {Platform: manifest.Platform{OS: "linux", Arch: "arm64"}, Content: 10 << 20},
	}}}
}
