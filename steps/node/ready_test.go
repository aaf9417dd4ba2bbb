package node_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

const fstab = `# <file system> <mount point> <type> <options> <dump> <pass>
UUID=1 / ext4 defaults 0 1
#/dev/vdc none swap sw 0 0
/dev/vdb none swap sw,pri=5 0 0
/swap/file	none	swap	sw	0	0
UUID=2 /var/swap ext4 noswap 0 2`

const selinuxConfig = "# SELINUX= can take one of these three values:\n#     enforcing - SELinux security policy is enforced.\nSELINUX=enforcing\nSELINUXTYPE=targeted\n"

const firewallUnit = "[Service]\nExecStart=/usr/sbin/firewalld\n[Install]\nWantedBy=multi-user.target\n"

// ready are the steps that make any host ready, with a host that needs each.
var ready = map[string]struct {
	before          func(*conntest.Sim)
	install, remove func() steps.Step
}{
	"swap in fstab, without a newline at its end": {func(s *conntest.Sim) {
		s.AddFile("/etc/fstab", fstab, 0o600)
		s.AddSwap("/dev/vdb", "5")
		s.AddSwap("/swap/file", "-2")
	}, node.DisableSwap, node.RestoreSwap},
	"swap in fstab that is off": {func(s *conntest.Sim) { s.AddFile("/etc/fstab", fstab, 0o644) }, node.DisableSwap, node.RestoreSwap},
	"swap by hand":              {func(s *conntest.Sim) { s.AddSwap("/mnt/a swap", "-2") }, node.DisableSwap, node.RestoreSwap},
	"swap of a generator's units": {func(s *conntest.Sim) {
		s.AddFile("/dev/zram0", "", 0o600)
		s.GenerateUnit("dev-zram0.swap", "[Swap]\nWhat=/dev/zram0\n")
		s.AddUnit("zramswap.service", firewallUnit, true, true)
	}, node.DisableSwap, node.RestoreSwap},
	"swap of a unit of the host's own": {func(s *conntest.Sim) {
		s.AddFile("/data/swap", "", 0o600)
		s.AddFile("/etc/systemd/system/data-swap.swap", "[Swap]\nWhat=/data/swap\n[Install]\nWantedBy=swap.target\n", 0o644)
		s.AddLink("/etc/systemd/system/swap.target.wants/data-swap.swap", "/etc/systemd/system/data-swap.swap")
		s.StartUnit("data-swap.swap")
	}, node.DisableSwap, node.RestoreSwap},
	"SELinux": {func(s *conntest.Sim) {
		s.SetMachine(func(m *conntest.Machine) { m.SELinux = "Enforcing" })
		s.AddFile("/etc/selinux/config", selinuxConfig, 0o644)
		s.AddLink("/etc/sysconfig/selinux", "../selinux/config")
	}, node.DisableSELinux, node.RestoreSELinux},
	"SELinux, permissive until a boot": {func(s *conntest.Sim) {
		s.SetMachine(func(m *conntest.Machine) { m.SELinux = "Permissive" })
		s.AddFile("/etc/selinux/config", selinuxConfig, 0o600)
	}, node.DisableSELinux, node.RestoreSELinux},
	"firewalld": {func(s *conntest.Sim) { s.AddUnit("firewalld.service", firewallUnit, true, true) }, node.DisableFirewall, node.RestoreFirewall},
	"firewalls, one that runs and one that is to start": {func(s *conntest.Sim) {
		s.AddUnit("firewalld.service", firewallUnit, true, false)
		s.AddUnit("nftables.service", firewallUnit, false, true)
	}, node.DisableFirewall, node.RestoreFirewall},
	"ufw":       {func(s *conntest.Sim) { s.AddUFW(true) }, node.DisableFirewall, node.RestoreFirewall},
	"host name": {func(s *conntest.Sim) { s.SetHostname("Old_Name") }, node.SetHostname, node.RestoreHostname},
	"host name of a boot, without a file": {func(s *conntest.Sim) {
		s.SetHostname("localhost")
		s.RemoveAll("/etc/hostname")
	}, node.SetHostname, node.RestoreHostname},
}

func TestReadyKeepsItsLaws(t *testing.T) {
	for name, r := range ready {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steptest.Ensure(t, steptest.Case{Before: r.before}, r.install(), r.remove())
		})
	}
}

// TestReadyIsLeftAlone: a host that has none of it, or has it as it should be.
func TestReadyIsLeftAlone(t *testing.T) {
	for name, before := range map[string]func(*conntest.Sim){
		"none of it": func(*conntest.Sim) {},
		"as it should be": func(s *conntest.Sim) {
			s.AddUFW(false)
			s.AddUnit("firewalld.service", firewallUnit, false, false)
			s.SetMachine(func(m *conntest.Machine) { m.SELinux = "Permissive" })
			s.AddFile("/etc/selinux/config", "SELINUX=permissive\n", 0o644)
		},
		"disabled": func(s *conntest.Sim) {
			s.SetMachine(func(m *conntest.Machine) { m.SELinux = "Disabled" })
			s.AddFile("/etc/selinux/config", "SELINUX=disabled\n", 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Case{Before: before}
			s := c.Sim(t)
			for _, step := range []steps.Step{node.DisableSwap(), node.DisableSELinux(), node.DisableFirewall(), node.SetHostname()} {
				if v, err := step.Precheck(t.Context(), c.NewHost(t, s, step)); err != nil || v != steps.Done {
					t.Errorf("%s: %v %v", step.Meta().Name, v, err)
				}
			}
		})
	}
}

// TestReadyAfterABoot: what was made so is so after a boot, and what was there
// before comes back all the same.
func TestReadyAfterABoot(t *testing.T) {
	for name, r := range ready {
		t.Run(name, func(t *testing.T) {
			c := steptest.Case{Before: r.before}
			s := c.Sim(t)
			s.Reboot()
			first := s.Snapshot()
			install, remove := r.install(), r.remove()
			v, err := install.Precheck(t.Context(), c.NewHost(t, s, install))
			if err != nil {
				t.Fatal(err)
			}
			if v == steps.Done {
				t.Skip("nothing of it is there after a boot")
			}
			if err := install.Run(t.Context(), c.NewHost(t, s, install)); err != nil {
				t.Fatal(err)
			}
			end := s.Snapshot()
			s.Reboot()
			if v, err := install.Precheck(t.Context(), c.NewHost(t, s, install)); err != nil || v != steps.Done {
				t.Errorf("after a boot there is something to do: %v %v\n%s", v, err, conntest.Diff(end, s.Snapshot()))
			}
			if err := remove.Run(t.Context(), c.NewHost(t, s, remove)); err != nil {
				t.Fatal(err)
			}
			if d := conntest.Diff(first, s.Snapshot()); d != "" {
				t.Errorf("removed after a boot:\n%s", d)
			}
		})
	}
}
